#include "simulation.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "payloads.hpp"

namespace weir::cluster::bench {

namespace {

constexpr core::TimeNs look_every_ns = 500 * 1000;
/// All say hello to all, one after another.
constexpr core::TimeNs meet_every_ns = 3000;
/// A word crosses none, two or four links.
constexpr std::size_t latencies = 5;

}  // namespace

class Simulation::Station final : public EventBuilding::Engine {
public:
    Station(Simulation& simulation, NodeId self)
        : simulation_(simulation), self_(self), node(simulation.options_, self, *this) {}

    void send(NodeId to, const Message& message, Payload payload) override {
        if (to != self_ && payload.handle == 0) ++words;
        simulation_.send(self_, to, message, payload);
    }
    [[nodiscard]] core::TimeNs now() const override { return simulation_.now_; }
    void mark_all() override {
        for (NodeId to = 0; to < simulation_.options_.settings.nodes; ++to) simulation_.post(self_, to, true, {}, {});
    }
    [[nodiscard]] std::uint64_t parts_received() const override { return parts; }

private:
    Simulation& simulation_;
    NodeId self_;

public:
    EventBuilding node;
    NodeId met = 0;
    std::uint64_t words = 0;
    std::uint64_t parts = 0;
    core::TimeNs wakes_at = 0;  ///< to write
    bool is_over = false;
};

Simulation::Simulation(const Options& options, const FatTree& tree, Flows& flows)
    : options_(options), tree_(tree), flows_(flows), on_their_way_(latencies) {
    const NodeId nodes = options.settings.nodes;
    for (NodeId node = 0; node < nodes; ++node) stations_.push_back(std::make_unique<Station>(*this, node));
    for (NodeId node = 0; node < nodes; ++node) {
        if (nodes > 1) wake(node, Alarm::meet, now_);
        wake(node, Alarm::look, now_ + look_every_ns * node / nodes);  // not all at once
        if (options.settings.slot_ns > 0) wake(node, Alarm::tick, now_);
    }
}

Simulation::~Simulation() = default;

std::vector<Measured> Simulation::run() {
    while (over_ < options_.settings.nodes) step();
    std::vector<Measured> all;
    for (const auto& station : stations_) {
        all.push_back(station->node.measured());
        all.back().messages = station->words;
    }
    return all;
}

void Simulation::wake(NodeId node, Alarm alarm, core::TimeNs at) {
    due_.push({at, numbers_++, alarm, node});
}

void Simulation::post(NodeId from, NodeId to, bool is_mark, const Message& message, Payload payload) {
    PostId id = static_cast<PostId>(posts_.size());
    if (free_posts_.empty()) {
        posts_.emplace_back();
    } else {
        id = free_posts_.back();
        free_posts_.pop_back();
    }
    const std::size_t links = from == to ? 0 : tree_.route(from, to).count;
    posts_[id] = {now_ + tree_.latency(from, to), numbers_++, from, to, is_mark, message, payload};
    on_their_way_[links].push_back(id);
}

void Simulation::send(NodeId from, NodeId to, const Message& message, Payload payload) {
    if (from == to || payload.handle == 0) return post(from, to, false, message, payload);
    const FlowId flow = flows_.begin(tree_.route(from, to), payload.bytes, now_);
    if (flow >= sendings_.size()) sendings_.resize(flow + 1);
    sendings_[flow] = {from, to, message, payload};
}

/// Of all latencies.
std::deque<Simulation::PostId>* Simulation::next_posts() noexcept {
    std::deque<PostId>* next = nullptr;
    for (auto& posts : on_their_way_) {
        if (posts.empty()) continue;
        const Post& post = posts_[posts.front()];
        if (next == nullptr ||
            std::pair(post.at, post.number) < std::pair(posts_[next->front()].at, posts_[next->front()].number))
            next = &posts;
    }
    return next;
}

/// At the same time words come before alarms, and these before the ends of flows: all that begins at a time shares the
/// links from then on, and levels are found once.
void Simulation::step() {
    constexpr core::TimeNs never = std::numeric_limits<core::TimeNs>::max();
    std::deque<PostId>* const posts = next_posts();
    const core::TimeNs word_at = posts == nullptr ? never : posts_[posts->front()].at;
    const core::TimeNs alarm_at = due_.top().at;
    if (std::min(word_at, alarm_at) > now_) {
        const core::TimeNs end_at = flows_.next_end(now_).value_or(never);
        if (end_at < std::min(word_at, alarm_at)) {
            now_ = end_at;
            return end_flow();
        }
    }
    now_ = std::min(word_at, alarm_at);
    if (word_at <= alarm_at) {
        const PostId id = posts->front();
        posts->pop_front();
        return deliver(id);
    }
    const Due due = due_.top();
    due_.pop();
    ring(due);
}

void Simulation::deliver(PostId id) {
    const Post post = std::move(posts_[id]);
    free_posts_.push_back(id);
    Station& station = *stations_[post.to];
    const bool is_part = post.payload.handle != 0;
    if (post.is_mark) {
        station.node.hear_mark();
    } else {
        if (is_part && post.from != post.to) ++station.parts;
        station.node.receive(post.from, post.message, is_part ? Payload{post.payload.bytes, received} : Payload{});
        if (is_part && post.from == post.to) station.node.sent(post.to, post.message.block);
    }
    after(post.to);
}

void Simulation::end_flow() {
    const FlowId flow = flows_.end(now_);
    const Sending sending = std::move(sendings_[flow]);
    post(sending.from, sending.to, false, sending.message, sending.payload);
    stations_[sending.from]->node.sent(sending.to, sending.message.block);
    after(sending.from);
}

void Simulation::ring(const Due& due) {
    Station& station = *stations_[due.node];
    switch (due.alarm) {
        case Alarm::meet: {
            const NodeId nodes = options_.settings.nodes;
            ++station.met;
            station.node.meet(static_cast<NodeId>((due.node + station.met) % nodes));
            if (station.met + 1 < nodes) wake(due.node, Alarm::meet, now_ + meet_every_ns);
            break;
        }
        case Alarm::look:
            station.node.look();
            wake(due.node, Alarm::look, now_ + look_every_ns);
            break;
        case Alarm::tick:
            wake(due.node, Alarm::tick, now_ + station.node.tick());
            break;
        case Alarm::written:
            break;
    }
    after(due.node);
}

void Simulation::after(NodeId node) {
    Station& station = *stations_[node];
    station.node.go_on();
    const auto until_ns = station.node.until_ns();
    if (until_ns && *until_ns > now_ && std::exchange(station.wakes_at, *until_ns) != *until_ns)
        wake(node, Alarm::written, *until_ns);
    if (station.node.is_over() && !std::exchange(station.is_over, true)) ++over_;
}

}  // namespace weir::cluster::bench
