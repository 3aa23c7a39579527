// What a run has to do with a cluster: which node it is of, and what makes its member.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "fabric/cluster_thread.hpp"
#include "pipeline/finding.hpp"
#include "store/event_sink.hpp"

namespace weir::run {

/// A node of a cluster, and the configuration of all of them.
struct ClusterPart {
    config::RunConfig whole;
    std::uint32_t node = 0;
    cluster::NodeSet left_out{};  ///< which the run is started without

    /// Whether nobody misses the node where it is not there.
    [[nodiscard]] bool may_be_absent(std::uint32_t other) const {
        return whole.cluster->nodes[other].spare || left_out.contains(static_cast<cluster::NodeId>(other));
    }
    [[nodiscard]] const config::ClusterNode& self() const { return whole.cluster->nodes[node]; }
    /// What this node does by itself.
    [[nodiscard]] config::RunConfig view() const;
};

/// The nodes of these names, which are separated by spaces. Throws core::UsageError.
[[nodiscard]] cluster::NodeSet nodes_named(const config::RunConfig& whole, std::string_view names);

/// Listens from then on. `run`: a number that all nodes of this run were given. Throws core::RunError.
[[nodiscard]] std::unique_ptr<fabric::ClusterThread> make_cluster_thread(const ClusterPart& part,
                                                                         std::optional<std::uint32_t> run);
/// What takes the events of a readout node. `is_replay`: time is a capture's, and says nothing while nothing comes.
[[nodiscard]] std::unique_ptr<store::EventSink> make_part_sink(const ClusterPart& part, bool is_replay,
                                                               fabric::ClusterThread& member);

/// Why a node ends that is alone (fabric::ClusterThread::is_alone).
[[nodiscard]] std::string alone_text(const ClusterPart& part);

/// Lines for the start of a run, and its summary.
[[nodiscard]] std::string cluster_start_text(const ClusterPart& part, const fabric::ClusterThread& member);
[[nodiscard]] std::string cluster_text(const ClusterPart& part, const fabric::Account& account);
/// What a builder misses of whole nodes.
void add_cluster_findings(const ClusterPart& part, const fabric::Account& account,
                          std::vector<pipeline::Finding>& findings);
/// `cluster` of the report: docs/reference/REPORT.md.
[[nodiscard]] nlohmann::json cluster_json(const ClusterPart& part, const fabric::Account& account);
/// The same without lists that grow, for who watches: docs/reference/WATCH_API.md.
[[nodiscard]] nlohmann::json shown_cluster_json(const ClusterPart& part, const fabric::Account& account);

}  // namespace weir::run
