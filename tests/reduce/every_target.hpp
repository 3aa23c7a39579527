// Runs a check with each instruction set that Highway has for this machine.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

namespace weir::reduce {

/// Instruction sets of this machine, one bit each.
std::int64_t supported_targets();
/// What is used from now on; 0: whatever this machine has, as at the start.
void use_targets(std::int64_t targets);
/// As Highway calls one of them ("AVX3_ZEN4").
const char* name_of(std::int64_t target);

/// Calls `check` with each instruction set chosen in turn.
template <class Check>
void with_every_target(Check check) {
    const std::int64_t targets = supported_targets();
    for (std::int64_t left = targets; left != 0; left &= left - 1) {
        use_targets(left & -left);
        SCOPED_TRACE(name_of(left & -left));
        check();
    }
    use_targets(0);
}

}  // namespace weir::reduce
