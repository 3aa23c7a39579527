// Runs a check with each instruction set that Highway has for this machine.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "reduce/pixels/pixels.hpp"

namespace weir::reduce {

/// Calls `check` with each instruction set chosen in turn.
template <class Check>
void with_every_target(Check check) {
    const std::int64_t targets = hwy::SupportedTargets();
    for (std::int64_t left = targets; left != 0; left &= left - 1) {
        hwy::SetSupportedTargetsForTest(left & -left);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        SCOPED_TRACE(simd_target());
        check();
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace weir::reduce
