#include "exchange.hpp"

#include <algorithm>

namespace weir::cluster::bench {

namespace {

/// Of a word to whoever counts the nodes, and back.
constexpr core::TimeNs barrier_ns = 1600;

}  // namespace

Exchange::Exchange(const Options& options, const FatTree& tree, Flows& flows)
    : options_(options), tree_(tree), flows_(flows), stations_(options.settings.nodes) {
    const std::uint64_t nodes = options.settings.nodes;
    warm_steps_ = std::max<std::uint64_t>(1, options.warm_blocks / nodes) * (nodes - 1);
    steps_ = warm_steps_ + std::max<std::uint64_t>(1, options.measured_blocks / nodes) * (nodes - 1);
}

std::vector<Measured> Exchange::run() {
    const auto nodes = static_cast<NodeId>(stations_.size());
    for (NodeId node = 0; node < nodes; ++node) stations_[node].waits_for = 2;
    for (NodeId node = 0; node < nodes; ++node) send(node, partner(node, 0, true));
    while (const auto end = flows_.next_end(now_)) {
        now_ = *end;
        end_flow();
    }
    std::vector<Measured> all;
    for (const Station& station : stations_)
        all.push_back({.seconds = static_cast<double>(station.until_ns - station.from_ns) * 1e-9,
                       .bytes = (steps_ - warm_steps_) * options_.part_bytes});
    return all;
}

NodeId Exchange::partner(NodeId node, std::uint64_t step, bool to) const noexcept {
    const std::uint64_t nodes = stations_.size();
    const std::uint64_t away = 1 + step % (nodes - 1);
    return static_cast<NodeId>((node + (to ? away : nodes - away)) % nodes);
}

void Exchange::send(NodeId from, NodeId to) {
    const FlowId flow = flows_.begin(tree_.route(from, to), options_.part_bytes, now_);
    if (flow >= sendings_.size()) sendings_.resize(flow + 1);
    sendings_[flow] = {from, to};
}

void Exchange::end_flow() {
    const auto [from, to] = sendings_[flows_.end(now_)];
    have_one(from, now_);
    have_one(to, now_ + tree_.latency(from, to));
}

/// The last byte is under way for less than a thousandth of the time that a part takes, so what it delays is added up
/// where it ends, and nobody waits for it meanwhile.
void Exchange::have_one(NodeId node, core::TimeNs at) {
    Station& station = stations_[node];
    station.last_ns = std::max(station.last_ns, at);
    if (--station.waits_for > 0) return;
    if (options_.mode != Mode::lockstep) return leave(node);
    const bool is_slow = options_.slow == node;
    slowest_ns_ =
        std::max(slowest_ns_, station.last_ns + (is_slow ? static_cast<core::TimeNs>(options_.slow_us) * 1000 : 0));
    if (++arrived_ < stations_.size()) return;
    arrived_ = 0;
    now_ = std::max(now_, slowest_ns_ + barrier_ns);
    for (NodeId each = 0; each < stations_.size(); ++each) leave(each);
}

void Exchange::leave(NodeId node) {
    Station& station = stations_[node];
    ++station.step;
    if (station.step == warm_steps_) station.from_ns = now_;
    station.until_ns = now_;
    if (station.step < steps_) enter(node);
}

/// Whoever comes second to a step begins what both are ready for.
void Exchange::enter(NodeId node) {
    const std::uint64_t step = stations_[node].step;
    stations_[node].waits_for = 2;
    const NodeId to = partner(node, step, true);
    const NodeId from = partner(node, step, false);
    if (stations_[to].step == step) send(node, to);
    if (stations_[from].step == step) send(from, node);
}

}  // namespace weir::cluster::bench
