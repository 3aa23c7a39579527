// `weir inspect` of a run that is spread over the nodes of a cluster.
#pragma once

#include "store/cluster_run.hpp"

namespace weir::app {

/// Reads it, all or all but the payload, and prints to standard output. Returns the exit status: 0 if nothing is wrong,
/// else 1.
int inspect_cluster(const store::ClusterRun& cluster, bool quick, bool as_json);

}  // namespace weir::app
