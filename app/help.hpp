// What `weir` says about itself: `weir --help`, and the answer to a command that does not exist.
#pragma once

#include <string>
#include <vector>

namespace weir::app {

[[nodiscard]] std::string help_text();

/// The error for `name`, with the closest of the `commands` as a suggestion.
[[nodiscard]] std::string unknown_command_text(const std::string& name, const std::vector<std::string>& commands);

}  // namespace weir::app
