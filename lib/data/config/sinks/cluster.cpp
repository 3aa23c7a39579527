// [[sink]] of kind "cluster": readout nodes have one in front of what they record (node_view.hpp).
#include "config/sinks/cluster.hpp"

#include "config/sinks/entry.hpp"
#include "core/error.hpp"

namespace weir::config {

namespace {

std::unique_ptr<store::EventSink> open_cluster(const SinkContext& context) {
    if (context.cluster_sink == nullptr || !*context.cluster_sink)
        throw core::RunError("a sink of kind \"cluster\" needs the nodes of a cluster, and this run has none");
    return (*context.cluster_sink)();
}

}  // namespace

SinkEntry cluster_sink() {
    return {.kind = options::kind_of("cluster", options::OptionTable<ClusterSinkConfig>()),
            .meaning = "to builders",
            .has_path = false,
            .by_itself = "a [[node]] with role = \"readout\" sends its parts of events to builders by itself",
            .open = open_cluster};
}

}  // namespace weir::config
