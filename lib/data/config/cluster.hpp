// [cluster] and [[node]]: event building over many nodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/settings.hpp"
#include "options/place.hpp"

namespace weir::config {

using options::Place;

struct RunConfig;

enum class NodeRole : std::uint8_t {
    readout,  ///< streams arrive at it
    builder,  ///< it builds events and writes them
    manager,  ///< it does nothing but manage
};

/// One [[node]].
struct ClusterNode {
    std::string name;
    std::string address;  ///< "HOST:PORT" or "[V6]:PORT": where the others reach it
    NodeRole role = NodeRole::readout;
    bool manages = false;      ///< it may manage the cluster
    std::uint32_t weight = 1;  ///< a builder: how many blocks it gets, beside the others
    bool spare = false;        ///< it may be absent
    std::string serve;  ///< "HOST:PORT": its page and API, for people and the other nodes; empty: as [serve] says
    Place place;

    bool operator==(const ClusterNode&) const = default;
};

/// [cluster], with its nodes. A node is called by its place among them.
struct ClusterConfig {
    std::uint64_t block = 16;  ///< event numbers of a block
    cluster::Strategy strategy = cluster::Strategy::pull;
    cluster::Order order = cluster::Order::linear;
    std::vector<std::string> list;  ///< Order::listed: names of the readout nodes and builders, each once
    cluster::Keep keep = cluster::Keep::assembled;
    cluster::QuorumOf quorum = cluster::QuorumOf::nodes;
    std::uint32_t credits = 16;
    std::uint32_t parallel = 4;
    bool barrier = false;
    std::uint32_t slot_us = 0;     ///< 0: no slots
    std::uint32_t hold_ms = 1000;  ///< 0: until the block is full
    std::uint32_t timeout_ms = 2000;
    std::uint32_t join_wait_ms = 10'000;
    std::uint32_t silence_ms = 2000;
    std::uint32_t return_ms = 5000;
    std::uint32_t leave_ms = 5000;
    std::uint32_t alone_ms = 60'000;
    std::uint64_t memory_bytes = std::uint64_t{1} << 30;  ///< of a readout node, for parts
    std::string transports = "all";                       ///< of UCX
    std::string secret_file;                              ///< what is in it all nodes have to know; empty: nothing
    std::vector<ClusterNode> nodes;
    Place place;

    bool operator==(const ClusterConfig&) const = default;
};

/// What the nodes agree on; wants `run.cluster`.
[[nodiscard]] cluster::Settings cluster_settings(const RunConfig& run);

/// The place of the node of this name. Throws core::UsageError if there is none, or no [cluster].
[[nodiscard]] std::uint32_t find_node(const RunConfig& run, std::string_view name);

/// A number that is the same for two configurations if their nodes can work together: it is made of the cluster and its
/// nodes, the streams and what an event is, not of what may differ from node to node (sinks, reducers, ports, lcores,
/// memory). Of the configuration as it was read, not of a view.
[[nodiscard]] std::uint64_t agreement(const RunConfig& run);

}  // namespace weir::config
