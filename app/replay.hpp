// `weir replay`: the same pipeline, fed from capture files.
#pragma once

#include <string>
#include <vector>

namespace weir::app {

int replay_command(const std::vector<std::string>& args);

}  // namespace weir::app
