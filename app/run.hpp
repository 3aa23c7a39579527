// `weir run`: the appliance, live on DPDK ports.
#pragma once

#include <string>
#include <vector>

namespace weir::app {

int run_command(const std::vector<std::string>& args);

}  // namespace weir::app
