// DPDK's memory: pools of packet buffers, rings and tables, each on the NUMA node of the lcores that use it, added up
// before EAL starts.
#pragma once

#include <cstdint>

#include "config/run_config.hpp"

namespace weir::plan {

struct Plan;

/// Decides `pools`, and adds up `pool_buffers` and the sums of memory of EAL, nodes and buffers; everything else has
/// its size by then. Warns of nodes whose hugepages do not suffice, where `hugepages` are needed.
void size_memory(const config::RunConfig& config, bool replay, bool hugepages, Plan& plan);

}  // namespace weir::plan
