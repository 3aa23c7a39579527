// A node of a cluster that does nothing but manage: it has no pipeline.
#pragma once

#include "run/run.hpp"

namespace weir::run {

/// Until all readout nodes have ended, or a signal. Returns the exit status. Wants `options.cluster`. Throws
/// core::UsageError and core::RunError.
int execute_manager(const RunOptions& options);

}  // namespace weir::run
