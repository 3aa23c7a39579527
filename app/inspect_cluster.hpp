// `weir inspect` of a run that is spread over the nodes of a cluster.
#pragma once

#include <string>

#include "store/cluster_run.hpp"

namespace weir::app {

struct InspectCluster {
    bool quick = false;  ///< all but the payload
    bool json = false;
    std::string require;  ///< required_lossless()
};

/// Reads it and prints to standard output. Returns the exit status: 1 if something is wrong, 3 if not, but what is
/// required of the verdict does not hold, else 0.
int inspect_cluster(const store::ClusterRun& cluster, const InspectCluster& options);

}  // namespace weir::app
