#include "cluster/builder_turns.hpp"

#include <algorithm>
#include <set>

namespace weir::cluster {

namespace {

/// The stride of weight 1. A multiple of all weights up to 16, which are exact thus; and so small that turns do not
/// overflow.
constexpr std::uint64_t longest_stride = 720'720;

}  // namespace

BuilderTurns::BuilderTurns(const Settings& settings) : builders_(settings.nodes) {
    std::set<std::uint64_t> strides;
    for (NodeId node = 0; node < settings.nodes; ++node)
        if (settings.builders.contains(node))
            strides.insert(builders_[node].stride = longest_stride / settings.weight_of(node));
    for (const std::uint64_t stride : strides) queues_.push_back({.stride = stride, .builders = {}});
}

/// Half a stride after now: of two that begin together, the heavier one has its turns around those of the other.
void BuilderTurns::add(NodeId node, std::uint32_t credits) {
    Builder& builder = builders_[node];
    if (builder.stride == 0) return;
    builder = {.stride = builder.stride,
               .turn = now_ + builder.stride / 2,
               .credits = credits,
               .is_there = true,
               .leaves = false,
               .waits = false};
    ++staying_;
    queue_all();
}

void BuilderTurns::remove(NodeId node) {
    Builder& builder = builders_[node];
    if (!builder.is_there) return;
    if (!builder.leaves) --staying_;
    builder.is_there = false;
    queue_all();
}

void BuilderTurns::leaves(NodeId node) {
    Builder& builder = builders_[node];
    if (!builder.is_there || builder.leaves) return;
    builder.leaves = true;
    --staying_;
    queue_all();
}

/// Where its turn has come already, it is now.
void BuilderTurns::give_back(NodeId node) {
    Builder& builder = builders_[node];
    ++builder.credits;
    if (!has_turns(builder)) return;
    ++credits_;
    if (builder.waits) return;
    builder.turn = now_;
    builder.waits = true;
    queue_of(builder).builders.push_front(node);
}

std::optional<NodeId> BuilderTurns::next() {
    while (credits_ > 0) {
        Queue& queue = first_queue();
        const NodeId node = queue.builders.front();
        queue.builders.pop_front();
        Builder& builder = builders_[node];
        now_ = builder.turn;
        builder.waits = builder.credits > 0;
        if (!builder.waits) continue;
        builder.turn += builder.stride;
        queue.builders.push_back(node);
        --builder.credits;
        --credits_;
        return node;
    }
    return std::nullopt;
}

BuilderTurns::Queue& BuilderTurns::queue_of(const Builder& builder) {
    return *std::ranges::lower_bound(queues_, builder.stride, {}, &Queue::stride);
}

/// The one in which the next turn is: of turns at the same time, that of the heavier builder.
BuilderTurns::Queue& BuilderTurns::first_queue() {
    Queue* first = nullptr;
    for (Queue& queue : queues_) {
        if (queue.builders.empty()) continue;
        if (first == nullptr || builders_[queue.builders.front()].turn < builders_[first->builders.front()].turn)
            first = &queue;
    }
    return *first;
}

/// Anew, where somebody comes or goes.
void BuilderTurns::queue_all() {
    credits_ = 0;
    for (Queue& queue : queues_) queue.builders.clear();
    std::vector<NodeId> nodes;
    const auto count = static_cast<NodeId>(builders_.size());
    for (NodeId node = 0; node < count; ++node) {
        Builder& builder = builders_[node];
        builder.waits = has_turns(builder);
        if (!builder.waits) continue;
        builder.turn = std::max(builder.turn, now_);
        credits_ += builder.credits;
        nodes.push_back(node);
    }
    std::ranges::stable_sort(nodes, {}, [this](NodeId node) { return builders_[node].turn; });
    for (const NodeId node : nodes) queue_of(builders_[node]).builders.push_back(node);
}

}  // namespace weir::cluster
