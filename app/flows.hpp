#pragma once

#include <string>
#include <vector>

namespace weir::app {

/// `weir flows check FILE`: reads flow rules and says what they do to the packets of a capture. Returns the exit
/// status.
int flows_command(const std::vector<std::string>& args);

}  // namespace weir::app
