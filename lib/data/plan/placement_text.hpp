// What a placement means, in words: a line per lcore, and warnings with their reasons; and for the run report.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plan/placement.hpp"
#include "port/host_topology.hpp"

namespace weir::plan {

/// Fills in `lines` and `warnings` of a placement that is decided.
void explain(const port::HostTopology& host, const PlacementInput& input, Placement& placement);

/// For the run report: `machine.topology` and `machine.placement`.
[[nodiscard]] nlohmann::json topology_json(const port::HostTopology& host);
[[nodiscard]] nlohmann::json placement_json(const port::HostTopology& host, const Placement& placement);

}  // namespace weir::plan
