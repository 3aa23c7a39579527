// A node that builds events over MPI: parts come as fast as memory allows, and blocks are written at once.
//
// The manager marks the beginning and the end of the measurement, by the blocks that all have built; what counts is
// what came over the network in between.
#pragma once

#include <deque>

#include "cluster/node.hpp"
#include "measured.hpp"
#include "mpi_network.hpp"
#include "options.hpp"

namespace weir::cluster::bench {

class EventBuilding final : public Application, MpiNetwork::Receiver {
public:
    EventBuilding(const Options& options, NodeId self);
    [[nodiscard]] Measured run();

    void built(Block block, std::span<const BuiltPart> parts) override;
    void release(Payload payload) override;
    void drop(Payload payload) override { release(payload); }
    void expelled() override;
    void ended() override { has_ended_ = true; }

private:
    struct Writing {
        Block block = 0;
        core::TimeNs until_ns = 0;
    };

    void receive(NodeId from, const Message& message, Payload payload) override;
    void sent(NodeId to, Block block) override { node_.sent(to, block); }
    void hear_mark() override;
    void meet_all();
    void offer();
    void write();
    void mark();
    [[nodiscard]] std::uint32_t tick();
    [[nodiscard]] bool is_over() const noexcept;
    [[nodiscard]] static core::TimeNs now();

    const Options& options_;
    NodeId self_;
    MpiNetwork network_;
    core::TimeNs clock_ahead_ns_;
    Block next_ = 0;          ///< to be offered
    std::uint64_t held_ = 0;  ///< own parts
    std::deque<Writing> writing_;
    std::uint32_t marked_ = 0;  ///< by the manager
    std::uint32_t heard_ = 0;
    core::TimeNs from_ns_ = 0;
    std::uint64_t parts_before_ = 0;
    Measured measured_;
    bool has_ended_ = false;
    Node node_;
};

}  // namespace weir::cluster::bench
