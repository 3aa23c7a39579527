#include "event_building.hpp"

#include <algorithm>
#include <stdexcept>

#include "payloads.hpp"

namespace weir::cluster::bench {

namespace {

/// As clocks that nobody sets differ: the same on every run.
core::TimeNs ahead_ns(NodeId node, std::uint64_t most_us) {
    return most_us == 0 ? 0 : static_cast<core::TimeNs>(std::mt19937_64(node)() % (most_us * 1000));
}

}  // namespace

EventBuilding::EventBuilding(const Options& options, NodeId self, Engine& engine)
    : options_(options),
      self_(self),
      engine_(engine),
      clock_ahead_ns_(ahead_ns(self, options.clocks_apart_us)),
      random_(self),
      node_(options.settings, self, first_life, engine, *this) {}

void EventBuilding::go_on() {
    offer();
    write();
    mark();
}

core::TimeNs EventBuilding::tick() {
    const core::TimeNs slot_ns = options_.settings.slot_ns;
    const core::TimeNs shared = engine_.now() + clock_ahead_ns_;
    node_.readout().tick(shared);
    return slot_ns - shared % slot_ns;
}

std::optional<core::TimeNs> EventBuilding::until_ns() const {
    return writing_.empty() ? std::nullopt : std::optional(writing_.front().until_ns);
}

bool EventBuilding::is_over() const noexcept {
    return options_.drain ? has_ended_ && heard_ == 2 : heard_ == 2;
}

Measured EventBuilding::measured() const {
    Measured measured = measured_;
    measured.blocks = node_.builder_stats().complete;
    measured.incomplete = node_.builder_stats().incomplete;
    measured.held_highest = node_.readout_stats().held_highest;
    return measured;
}

void EventBuilding::receive(NodeId from, const Message& message, Payload payload) {
    node_.receive(from, message, payload, engine_.now());
}

/// Many at a time: the manager is told once of all of them.
void EventBuilding::offer() {
    if (!options_.settings.readouts.contains(self_)) return;
    const std::uint64_t many = std::max<std::uint64_t>(1, options_.held_blocks / 16);
    const Block last = options_.drain ? options_.warm_blocks + options_.measured_blocks : ~Block{0};
    if (held_ + many > options_.held_blocks || next_ == last) return;
    for (; held_ < options_.held_blocks && next_ < last; ++next_, ++held_)
        node_.readout().offer({next_, next_ + 1}, next_ + 1, {options_.part_bytes, own});
    if (next_ == last) node_.readout().close();
}

core::TimeNs EventBuilding::writing_ns() {
    if (options_.slow == self_) return static_cast<core::TimeNs>(options_.slow_us) * 1000;
    if (options_.apart_us == 0 || apart_ == options_.settings.credits) return 0;
    ++apart_;
    return static_cast<core::TimeNs>(random_() % (2 * options_.apart_us * 1000));
}

void EventBuilding::built(BlockSpan span, std::span<const BuiltPart> /*parts*/) {
    const core::TimeNs now = engine_.now();
    const core::TimeNs begin = writing_.empty() ? now : std::max(now, writing_.back().until_ns);
    writing_.push_back({span.block, begin + writing_ns()});
}

void EventBuilding::write() {
    while (!writing_.empty() && writing_.front().until_ns <= engine_.now()) {
        const Block block = writing_.front().block;
        writing_.pop_front();
        node_.written(block);
    }
}

void EventBuilding::release(Payload payload) {
    if (payload.handle == own) --held_;
}

void EventBuilding::expelled() {
    throw std::logic_error("a node was taken for dead");
}

void EventBuilding::mark() {
    if (node_.manager() == nullptr || marked_ == 2) return;
    const std::uint64_t due = options_.warm_blocks + (marked_ == 0 ? 0 : options_.measured_blocks);
    if (node_.manager()->stats().committed < due) return;
    ++marked_;
    engine_.mark_all();
}

void EventBuilding::hear_mark() {
    ++heard_;
    if (heard_ == 1) {
        from_ns_ = engine_.now();
        parts_before_ = engine_.parts_received();
    } else {
        measured_.seconds = static_cast<double>(engine_.now() - from_ns_) * 1e-9;
        measured_.bytes = (engine_.parts_received() - parts_before_) * options_.part_bytes;
    }
}

}  // namespace weir::cluster::bench
