// What a node of a cluster has counted, as it stands in its manifest and in its report: the member `cluster` of both.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace weir::store {

/// A line of the list of nodes, which all nodes have alike.
struct ClusterNodeName {
    std::string name;
    std::string role;  ///< "readout", "builder" or "manager"
    bool operator==(const ClusterNodeName&) const = default;
};

/// One of which nothing was built.
struct LostBlock {
    std::uint64_t last = 0;  ///< of its event numbers
    std::string cause;
};
/// By the first of their event numbers.
using LostBlocks = std::map<std::uint64_t, LostBlock>;

/// Outside of the account, because clang 14 takes them for incomplete within it.
struct ClusterManagerCounts {
    std::uint64_t assigned = 0;  ///< blocks, each once
    std::uint64_t assigned_again = 0;
};
struct ClusterBuilderCounts {
    std::uint64_t complete = 0;  ///< blocks that were built with all parts
    std::uint64_t incomplete = 0;
    std::uint64_t empty = 0;
    std::uint64_t given_up = 0;  ///< of these, blocks that it left without having written them
    std::uint64_t malformed_parts = 0;
};
struct ClusterReadoutCounts {
    std::uint64_t events_too_late = 0;
    std::uint64_t events_left = 0;  ///< that nobody had taken when it ended
};

struct ClusterAccount {
    /// What a builder got of one readout node.
    struct Received {
        std::uint64_t parts = 0;
        std::uint64_t late = 0;                        ///< parts whose block had been built without them
        std::map<std::string, std::uint64_t> missing;  ///< parts, by cause
    };
    using Manager = ClusterManagerCounts;
    using Builder = ClusterBuilderCounts;
    using Readout = ClusterReadoutCounts;

    std::string node;
    std::string role;
    std::uint64_t block = 0;  ///< event numbers of a block
    std::uint64_t lives = 1;  ///< above 1: the others took it for dead, and it began anew
    std::vector<ClusterNodeName> nodes;
    std::optional<Manager> manager;
    std::optional<Builder> builder;
    std::optional<Readout> readout;
    std::map<std::string, Received> received;          ///< of a builder, by readout node
    std::map<std::string, std::uint64_t> handed_over;  ///< of a readout node: parts, by builder
    LostBlocks lost;                                   ///< whole; the first thousand
    std::map<std::string, std::uint64_t> lost_counts;  ///< all of them, by cause

    /// Of another start of the same node.
    ClusterAccount& operator+=(const ClusterAccount& other);
};

/// Nothing where `section` is not what a node writes. Single numbers that are not there count as 0.
[[nodiscard]] std::optional<ClusterAccount> read_cluster_account(const nlohmann::json& section);
/// The list of nodes, of a report's section or of a configuration; of anything else none.
[[nodiscard]] std::vector<ClusterNodeName> read_cluster_nodes(const nlohmann::json& list);

}  // namespace weir::store
