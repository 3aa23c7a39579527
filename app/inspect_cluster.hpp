// `weir inspect` of a run that is spread over the nodes of a cluster.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "store/cluster_run.hpp"
#include "store/cluster_run_events.hpp"
#include "store/cluster_run_ledger.hpp"

namespace weir::app {

/// Reads it, all or all but the payload, and prints to standard output. Returns the exit status: 0 if nothing is wrong,
/// else 1.
int inspect_cluster(const store::ClusterRun& cluster, bool quick, bool as_json);

/// All of it for programs.
[[nodiscard]] nlohmann::json cluster_json(const store::ClusterRun& cluster, const store::ClusterEvents& events,
                                          const store::ClusterLedger& ledger);

}  // namespace weir::app
