// `weir send`: the detector simulator as a command.
#pragma once

#include <string>
#include <vector>

namespace weir::app {

/// `args` are what follows "send". Returns the exit status; throws core::UsageError (2) and core::RunError (1).
int send_command(const std::vector<std::string>& args);

}  // namespace weir::app
