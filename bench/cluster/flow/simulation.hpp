// Nodes that build events, and a network of flows between them, in one thread: what happens next, and when.
//
// Words take the latency of their way and nothing else; parts are flows, and their last byte takes that latency, too.
#pragma once

#include <deque>
#include <memory>
#include <queue>
#include <vector>

#include "event_building.hpp"
#include "fat_tree.hpp"
#include "flows.hpp"

namespace weir::cluster::bench {

class Simulation {
public:
    Simulation(const Options& options, const FatTree& tree, Flows& flows);
    ~Simulation();
    [[nodiscard]] std::vector<Measured> run();

private:
    class Station;
    enum class Alarm : std::uint8_t { meet, look, tick, written };
    struct Due {
        core::TimeNs at = 0;
        std::uint64_t number = 0;  ///< of two at the same time the earlier one comes first
        Alarm alarm = Alarm::look;
        NodeId node = 0;
        [[nodiscard]] bool operator>(const Due& other) const noexcept {
            return at != other.at ? at > other.at : number > other.number;
        }
    };
    /// A word, the last byte of a part, or, without a kind, a mark.
    struct Post {
        core::TimeNs at = 0;
        std::uint64_t number = 0;
        NodeId from = 0;
        NodeId to = 0;
        bool is_mark = false;
        Message message;
        Payload payload;
    };
    /// A part under way.
    struct Sending {
        NodeId from = 0;
        NodeId to = 0;
        Message message;
        Payload payload;
    };
    using PostId = std::uint32_t;

    void wake(NodeId node, Alarm alarm, core::TimeNs at);
    void post(NodeId from, NodeId to, bool is_mark, const Message& message, Payload payload);
    void send(NodeId from, NodeId to, const Message& message, Payload payload);
    [[nodiscard]] std::deque<PostId>* next_posts() noexcept;
    void step();
    void deliver(PostId id);
    void ring(const Due& due);
    void end_flow();
    void after(NodeId node);

    const Options& options_;
    const FatTree& tree_;
    Flows& flows_;
    core::TimeNs now_ = 1;
    std::uint64_t numbers_ = 0;
    std::vector<std::unique_ptr<Station>> stations_;
    std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
    std::vector<Post> posts_;
    std::vector<PostId> free_posts_;
    std::vector<std::deque<PostId>> on_their_way_;  ///< by latency, in links: each in the order of time
    std::vector<Sending> sendings_;                 ///< by flow
    NodeId over_ = 0;
};

}  // namespace weir::cluster::bench
