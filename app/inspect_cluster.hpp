// `weir inspect` of a run that is spread over the nodes of a cluster.
#pragma once

#include <string>

#include "event_table.hpp"
#include "store/cluster_run.hpp"

namespace weir::app {

struct InspectCluster {
    TableOptions table;  ///< events are listed if it wants all, or the incomplete ones
    bool json = false;
    bool digest = false;  ///< in JSON: of every event that is listed; then all are
    std::string require;  ///< required_lossless()
};

/// Reads it and prints to standard output. `run`: all of it as one. Returns the exit status: 1 if something is wrong, 3
/// if not, but what is required of the verdict does not hold, else 0.
int inspect_cluster(const store::ClusterRun& cluster, const store::RunReader& run, const InspectCluster& options);

}  // namespace weir::app
