// `weir bench compare`: what has changed between two results, beyond the noise.
#pragma once

#include <string>
#include <vector>

namespace weir::app {

/// Returns the exit status: 1 if something is worse.
int bench_compare_command(const std::vector<std::string>& args);

}  // namespace weir::app
