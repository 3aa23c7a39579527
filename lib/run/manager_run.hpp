// A node of a cluster that does nothing but manage: it has no pipeline.
#pragma once

#include <string>

#include "run/cluster_part.hpp"

namespace weir::run {

/// Until all readout nodes have ended, or a signal. Returns the exit status. `report`: where its account goes; empty:
/// nowhere. Throws core::RunError.
int execute_manager(const ClusterPart& part, bool quiet, const std::string& report);

}  // namespace weir::run
