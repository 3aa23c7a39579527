// `weir export`: a run as arrays, as plain bytes, or as packets again.
#pragma once

#include <string>
#include <vector>

namespace weir::app {

/// Returns the exit status: 0, or 1 when something that was asked for could not be exported. Throws core::UsageError
/// (bad options) and core::RunError (no such run or event, a file that cannot be written).
int export_command(const std::vector<std::string>& args);

}  // namespace weir::app
