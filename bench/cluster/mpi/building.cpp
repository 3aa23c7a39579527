#include "building.hpp"

namespace weir::cluster::bench {

Building::Building(const Options& options, NodeId self)
    : options_(options),
      self_(self),
      network_({options.part_bytes, options.receives}, self, options.settings.nodes),
      node_(options, self, network_) {}

/// A slow node gets to writing often enough: others always want something of it.
Measured Building::run() {
    meet_all();
    while (!node_.is_over()) {
        node_.look();
        node_.go_on();
        network_.turn(node_, tick());
    }
    if (options_.drain) network_.flush();
    Measured measured = node_.measured();
    measured.messages = network_.stats().messages;
    return measured;
}

/// How long it may sleep, in us; 0: until something comes.
std::uint32_t Building::tick() {
    return options_.settings.slot_ns == 0 ? 0 : static_cast<std::uint32_t>((node_.tick() + 999) / 1000);
}

/// One after another, no two the same: the simulator goes through all words on their way whenever one arrives.
void Building::meet_all() {
    constexpr std::uint32_t between_us = 3;
    const std::uint32_t nodes = options_.settings.nodes;
    for (std::uint32_t step = 1; step < nodes; ++step) {
        node_.meet(static_cast<NodeId>((self_ + step) % nodes));
        network_.turn(node_, between_us);
    }
}

}  // namespace weir::cluster::bench
