// What all nodes of a cluster agree on before they start.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/node_set.hpp"
#include "core/units.hpp"

namespace weir::cluster {

/// Who begins to move a part: the builder that wants it, or the readout node that has it.
enum class Strategy : std::uint8_t { pull, push };

/// In which order a node turns to the others.
enum class Order : std::uint8_t {
    linear,  ///< with the one after itself, and on: no two nodes turn to the same one at the same time
    random,  ///< another one for each block
    listed,  ///< linear in a list: where the places in the network differ from the numbers of nodes
};

/// Until when a readout node keeps a part, in case that its builder goes away.
enum class Keep : std::uint8_t { assembled, written };

/// Of which nodes more than half have to be in reach of whoever manages, or half with the first of them.
enum class QuorumOf : std::uint8_t { nodes, readouts, managers, none };

struct Settings {
    std::uint16_t nodes = 0;
    std::uint64_t block = 1;  ///< event numbers of a block
    NodeSet readouts;
    NodeSet builders;
    NodeSet managers;  ///< who may manage; the lowest that is there does
    /// They may be absent: nobody waits for them, nor do they count for a quorum where others do. No readout nodes.
    NodeSet spares{};
    /// Which this run was started without: nobody waits for them, of any role. One that comes is as any other.
    NodeSet left_out{};
    std::vector<std::uint32_t> weights{};  ///< by node, of builders: how many blocks each gets; empty: all as many
    Strategy strategy = Strategy::pull;
    Order order = Order::linear;
    std::vector<NodeId> list;  ///< Order::listed: every node once
    Keep keep = Keep::assembled;
    QuorumOf quorum = QuorumOf::nodes;
    std::uint32_t credits = 16;  ///< blocks that a builder has room for
    /// Parts on their way: of one block to a builder that pulls; from a readout node that pushes. Of the latter
    /// those do not count that have been under way for long: their builder stands still, and gets no more for a while.
    std::uint32_t parallel = 1;
    /// Parts that a readout node has on their way to each builder. Where builders pull, the fewer these are, the more
    /// nodes a builder gets parts of at a time: without a limit all its blocks are with the same node, and go to the
    /// next one together. 0: so many that there are 8 for all builders, but one for each of them at least.
    std::uint32_t sends = 0;
    /// Where readout nodes push: they turn to their next builder together, once each of them has sent what it had for
    /// the one before (linear shift with a barrier). For clusters whose nodes are alike: the slowest one sets the pace.
    bool barrier = false;
    /// Where readout nodes push: they turn to their next builder at the same time, every so long, and send it one part
    /// (linear shift by time). For nodes whose clocks agree to much less than that. 0: not by time.
    core::TimeNs slot_ns = 0;
    /// For a readout node that does not get on although others do. One that has a part is waited for as long as it
    /// lives, and as parts arrive: see Builder.
    core::TimeNs timeout_ns = 2 * core::ns_per_s;
    /// For a witness: one that stands still must not hold up what others build.
    core::TimeNs witness_wait_ns = 200 * core::ns_per_ms;
    core::TimeNs join_wait_ns = 10 * core::ns_per_s;  ///< for nodes that are listed, at the start
    /// Up to so many readout nodes each tell the manager of each block; of more, one tells, and others if it does not.
    std::uint16_t tellers = 16;
    std::uint64_t seed = 1;  ///< of Order::random

    [[nodiscard]] std::uint32_t weight_of(NodeId builder) const noexcept {
        return weights.empty() ? 1 : weights[builder];
    }
};

}  // namespace weir::cluster
