// A node that builds events: parts come as fast as memory allows, and blocks are written at once.
//
// The manager marks the beginning and the end of the measurement, by the blocks that all have built; what counts is
// what came over the network in between.
#pragma once

#include <deque>
#include <optional>
#include <random>

#include "cluster/node.hpp"
#include "measured.hpp"
#include "options.hpp"

namespace weir::cluster::bench {

/// All nodes live from the start to the end.
inline constexpr Incarnation first_life = 1;

class EventBuilding final : public Application {
public:
    /// What brings its messages over.
    class Engine : public Network {
    public:
        [[nodiscard]] virtual core::TimeNs now() const = 0;
        /// To all nodes, this one too: a word of the benchmark itself, for hear_mark().
        virtual void mark_all() = 0;
        /// That have come over the network.
        [[nodiscard]] virtual std::uint64_t parts_received() const = 0;
    };

    EventBuilding(const Options& options, NodeId self, Engine& engine);

    /// Another node is there.
    void meet(NodeId node) { node_.peer_up(node, first_life, engine_.now()); }
    void receive(NodeId from, const Message& message, Payload payload);
    void sent(NodeId to, Block block) { node_.sent(to, block); }
    void hear_mark();
    /// After each word or part, and at the times of until_ns() and after_tick_ns().
    void go_on();
    /// Some times in every millisecond.
    void look() { node_.look(engine_.now()); }
    /// Where nodes push by time: to be called in each slot. How long until the next one.
    [[nodiscard]] core::TimeNs tick();
    /// When it will have written what it is writing.
    [[nodiscard]] std::optional<core::TimeNs> until_ns() const;
    [[nodiscard]] bool is_over() const noexcept;
    /// Of the messages only the engine knows.
    [[nodiscard]] Measured measured() const;

    void built(BlockSpan span, std::span<const BuiltPart> parts) override;
    void release(Payload payload) override;
    void drop(Payload payload) override { release(payload); }
    void expelled() override;
    void ended() override { has_ended_ = true; }

private:
    struct Writing {
        Block block = 0;
        core::TimeNs until_ns = 0;
    };

    [[nodiscard]] core::TimeNs writing_ns();
    void offer();
    void write();
    void mark();

    const Options& options_;
    NodeId self_;
    Engine& engine_;
    core::TimeNs clock_ahead_ns_;
    std::mt19937_64 random_;
    std::uint32_t apart_ = 0;  ///< blocks that have been written apart
    Block next_ = 0;           ///< to be offered
    std::uint64_t held_ = 0;   ///< own parts
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
