// What a run that worked was worth: its exit status.
#pragma once

#include "observe/verdict.hpp"
#include "run/run.hpp"

namespace weir::run {

/// 0, 1 (nothing came, and that is not as it should be) or 3 (--require-lossless does not hold); says why, if not 0.
[[nodiscard]] int exit_status(const RunOptions& options, const observe::Verdict& verdict);

}  // namespace weir::run
