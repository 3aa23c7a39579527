// `weir bench`: the highest rate without loss, for each way to receive.
#pragma once

#include <string>
#include <vector>

namespace weir::app {

int bench_command(const std::vector<std::string>& args);

}  // namespace weir::app
