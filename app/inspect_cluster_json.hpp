// A cluster's run for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "store/cluster_run.hpp"
#include "store/cluster_run_events.hpp"
#include "store/cluster_run_ledger.hpp"

namespace weir::app {

/// All that `weir inspect` has to say of it.
[[nodiscard]] nlohmann::json cluster_json(const store::ClusterRun& cluster, const store::ClusterEvents& events,
                                          const store::ClusterLedger& ledger);

}  // namespace weir::app
