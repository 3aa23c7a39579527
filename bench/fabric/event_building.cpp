#include "event_building.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/clock_ns.hpp"

namespace weir::fabric::bench {

using cluster::Block;
using cluster::NodeId;

namespace {

constexpr core::TimeNs look_interval_ns = core::ns_per_ms;  // as fabric::ClusterThread does

}  // namespace

/// The number of the turn is the incarnation of all.
EventBuilding::EventBuilding(const Options& options, const Task& task, NodeId self, cluster::Network& network,
                             Pieces& memory)
    : task_(task),
      nodes_(options.nodes()),
      self_(self),
      network_(network, self),
      memory_(memory),
      node_(settings_of(options), self, task.number, network_, *this),
      now_(core::monotonic_ns()) {}

void EventBuilding::go() {
    goes_ = true;
    end_ = ~Block{0};
    for (NodeId node = 0; node < nodes_; ++node)
        if (node != self_) node_.peer_up(node, task_.number, now_);
}

Block EventBuilding::pause() {
    end_ = next_;
    return next_;
}

/// All readout nodes end with the same block.
void EventBuilding::finish(Block last) {
    end_ = last;
    closes_ = true;
}

void EventBuilding::received(NodeId from, const cluster::Message& message, cluster::Payload payload) {
    node_.receive(from, message, payload, now_);
}

bool EventBuilding::work(core::TimeNs now) {
    now_ = now;
    const bool offered = is_readout(self_) && offer();
    const bool wrote = write();
    if (now_ - looked_ >= look_interval_ns && goes_) {
        looked_ = now_;
        node_.look(now_);
    }
    return offered || wrote;
}

bool EventBuilding::offer() {
    const Block before = next_;
    for (; next_ < end_ && !memory_.empty(); ++next_)
        node_.readout().offer({next_, next_ + 1}, next_ + 1, {task_.part_bytes, handle_of(memory_.take())});
    if (closes_ && next_ == end_) {
        closes_ = false;
        node_.readout().close();
    }
    return next_ != before;
}

/// Not from within the core.
void EventBuilding::built(cluster::BlockSpan span, std::span<const cluster::BuiltPart> parts) {
    for (const cluster::BuiltPart& part : parts) {
        if (part.part != cluster::Part::whole) continue;
        if (part.payload.bytes != task_.part_bytes) ++wrong_;
        memory_.give_back(memory_of(part.payload));
    }
    written_.push_back(span.block);
}

bool EventBuilding::write() {
    const auto written = std::exchange(written_, {});
    for (const Block block : written) node_.written(block);
    return !written.empty();
}

void EventBuilding::expelled() {
    throw std::logic_error("a node was taken for dead");
}

bool EventBuilding::is_done() const {
    return has_ended_ && node_.readout_stats().held == 0;
}

Counts EventBuilding::counts() const {
    Counts counts = network_.counts;
    const cluster::Builder::Stats& builder = node_.builder_stats();
    counts.handed_over = node_.readout_stats().handed_over;
    counts.received = std::accumulate(builder.received.begin(), builder.received.end(), std::uint64_t{0});
    counts.blocks = builder.complete;
    counts.wrong = wrong_ + builder.incomplete + builder.empty + node_.readout_stats().dropped +
                   std::accumulate(builder.late.begin(), builder.late.end(), std::uint64_t{0});
    return counts;
}

}  // namespace weir::fabric::bench
