// Runs a check with each instruction set that Highway has for this machine.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "reduce/pixels/pixels.hpp"

namespace weir::reduce {

/// Instruction sets of this machine, one bit each.
std::int64_t supported_targets();
/// What is used from now on; 0: whatever this machine has, as at the start.
void use_targets(std::int64_t targets);

/// Calls `check` with each instruction set chosen in turn.
template <class Check>
void with_every_target(Check check) {
    const std::int64_t targets = supported_targets();
    for (std::int64_t left = targets; left != 0; left &= left - 1) {
        use_targets(left & -left);
        SCOPED_TRACE(simd_target());
        check();
    }
    use_targets(0);
}

}  // namespace weir::reduce
