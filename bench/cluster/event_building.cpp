#include "event_building.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>

namespace weir::cluster::bench {

namespace {

/// As clocks that nobody sets differ: the same on every run.
core::TimeNs ahead_ns(NodeId node, std::uint64_t most_us) {
    return most_us == 0 ? 0 : static_cast<core::TimeNs>(std::mt19937_64(node)() % (most_us * 1000));
}

}  // namespace

EventBuilding::EventBuilding(const Options& options, NodeId self)
    : options_(options),
      self_(self),
      network_({options.part_bytes, options.receives}, self, options.settings.nodes),
      clock_ahead_ns_(ahead_ns(self, options.clocks_apart_us)),
      node_(options.settings, self, MpiNetwork::first_life, network_, *this) {}

core::TimeNs EventBuilding::now() {
    return 1 + static_cast<core::TimeNs>(MPI_Wtime() * 1e9);
}

Measured EventBuilding::run() {
    meet_all();
    while (!is_over()) {
        node_.look(now());
        offer();
        write();
        mark();
        network_.turn(*this, tick());
    }
    if (options_.drain) network_.flush();
    measured_.blocks = node_.builder_stats().complete;
    measured_.incomplete = node_.builder_stats().incomplete;
    measured_.messages = network_.stats().messages;
    measured_.held_highest = node_.readout_stats().held_highest;
    return measured_;
}

/// How long it may sleep, in us; 0: until something comes.
std::uint32_t EventBuilding::tick() {
    const core::TimeNs slot_ns = options_.settings.slot_ns;
    if (slot_ns == 0) return 0;
    const core::TimeNs shared = now() + clock_ahead_ns_;
    node_.readout().tick(shared);
    return static_cast<std::uint32_t>((slot_ns - shared % slot_ns + 999) / 1000);
}

/// One after another, no two the same: the simulator goes through all words on their way whenever one arrives.
void EventBuilding::meet_all() {
    constexpr std::uint32_t between_us = 3;
    const std::uint32_t nodes = options_.settings.nodes;
    for (std::uint32_t step = 1; step < nodes; ++step) {
        node_.peer_up(static_cast<NodeId>((self_ + step) % nodes), MpiNetwork::first_life, now());
        network_.turn(*this, between_us);
    }
}

bool EventBuilding::is_over() const noexcept {
    return options_.drain ? has_ended_ && heard_ == 2 : heard_ == 2;
}

void EventBuilding::receive(NodeId from, const Message& message, Payload payload) {
    node_.receive(from, message, payload, now());
}

/// Many at a time: the manager is told once of all of them.
void EventBuilding::offer() {
    if (!options_.settings.readouts.contains(self_)) return;
    const std::uint64_t many = std::max<std::uint64_t>(1, options_.held_blocks / 16);
    const Block last = options_.drain ? options_.warm_blocks + options_.measured_blocks : ~Block{0};
    if (held_ + many > options_.held_blocks || next_ == last) return;
    while (held_ < options_.held_blocks && next_ < last) {
        ++held_;
        node_.readout().offer(next_++, {options_.part_bytes, MpiNetwork::own});
    }
    if (next_ == last) node_.readout().close();
}

void EventBuilding::built(Block block, std::span<const BuiltPart> /*parts*/) {
    const bool is_slow = options_.slow == self_;
    const core::TimeNs begin = writing_.empty() ? now() : std::max(now(), writing_.back().until_ns);
    writing_.push_back({block, is_slow ? begin + static_cast<core::TimeNs>(options_.slow_us) * 1000 : 0});
}

/// A slow node gets here often enough: others always want something of it.
void EventBuilding::write() {
    while (!writing_.empty() && writing_.front().until_ns <= now()) {
        const Block block = writing_.front().block;
        writing_.pop_front();
        node_.written(block);
    }
}

void EventBuilding::release(Payload payload) {
    if (payload.handle == MpiNetwork::own) --held_;
}

void EventBuilding::expelled() {
    throw std::logic_error("a node was taken for dead");
}

void EventBuilding::mark() {
    if (node_.manager() == nullptr || marked_ == 2) return;
    const std::uint64_t due = options_.warm_blocks + (marked_ == 0 ? 0 : options_.measured_blocks);
    if (node_.manager()->stats().committed < due) return;
    ++marked_;
    network_.mark_all();
}

void EventBuilding::hear_mark() {
    ++heard_;
    if (heard_ == 1) {
        from_ns_ = now();
        parts_before_ = network_.stats().parts;
    } else {
        measured_.seconds = static_cast<double>(now() - from_ns_) * 1e-9;
        measured_.bytes = (network_.stats().parts - parts_before_) * options_.part_bytes;
    }
}

}  // namespace weir::cluster::bench
