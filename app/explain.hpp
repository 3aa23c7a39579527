// `weir explain`: what a counter means.
#pragma once

#include <string>
#include <vector>

namespace weir::app {

/// Runs `weir explain ARGS`; returns the exit status.
int explain_command(const std::vector<std::string>& args);

}  // namespace weir::app
