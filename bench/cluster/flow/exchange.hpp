// Every node sends to every other one, in linear order and without events: what the network gives at best. A part
// begins once both of its nodes are at its step: a node waits for what it sends and for what it receives.
#pragma once

#include <vector>

#include "fat_tree.hpp"
#include "flows.hpp"
#include "measured.hpp"
#include "options.hpp"

namespace weir::cluster::bench {

class Exchange {
public:
    /// In rounds, as many as the blocks of the options are for all nodes together. Mode::lockstep: all wait for each
    /// other after each part.
    Exchange(const Options& options, const FatTree& tree, Flows& flows);
    [[nodiscard]] std::vector<Measured> run();

private:
    struct Station {
        std::uint64_t step = 0;
        std::uint32_t waits_for = 0;  ///< its own part and the other one's
        core::TimeNs last_ns = 0;     ///< when the later one of these was there
        core::TimeNs from_ns = 0;
        core::TimeNs until_ns = 0;
    };
    [[nodiscard]] NodeId partner(NodeId node, std::uint64_t step, bool to) const noexcept;
    void enter(NodeId node);
    void send(NodeId from, NodeId to);
    void end_flow();
    void have_one(NodeId node, core::TimeNs at);
    void leave(NodeId node);

    const Options& options_;
    const FatTree& tree_;
    Flows& flows_;
    std::uint64_t warm_steps_;
    std::uint64_t steps_;
    core::TimeNs now_ = 1;
    std::vector<Station> stations_;
    std::vector<std::pair<NodeId, NodeId>> sendings_;  ///< by flow
    NodeId arrived_ = 0;                               ///< in lockstep, at the end of this step
    core::TimeNs slowest_ns_ = 0;
};

}  // namespace weir::cluster::bench
