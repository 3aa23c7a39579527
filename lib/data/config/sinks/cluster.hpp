// [[sink]] of kind "cluster": where a readout node's parts of events go. It has no keys.
#pragma once

namespace weir::config {

struct ClusterSinkConfig {
    bool operator==(const ClusterSinkConfig&) const = default;
};

}  // namespace weir::config
