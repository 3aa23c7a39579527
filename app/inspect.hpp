// `weir inspect`: lists a run, verifies it, and gives single events back.
#pragma once

#include <string>
#include <vector>

namespace weir::app {

/// Returns the exit status: 0 when everything verifies, 1 when not. Throws core::UsageError (bad options) and
/// core::RunError (no such run or event, a file that cannot be written).
int inspect_command(const std::vector<std::string>& args);

}  // namespace weir::app
