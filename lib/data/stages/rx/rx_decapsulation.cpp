#include "stages/rx/rx_decapsulation.hpp"

#include <algorithm>
#include <utility>

namespace weir::stages {

using port::Packet;

namespace {

/// The frame inside lies in the first buffer of the chain, which held padding besides, or what is no part of it.
void drop_rest(rte_mbuf& mbuf) noexcept {
    ::rte_pktmbuf_free(std::exchange(mbuf.next, nullptr));
    mbuf.nb_segs = 1;
}

}  // namespace

RxDecapsulation::RxDecapsulation(const std::vector<wire::Tunnels>& ports)
    : ports_(ports), any_(std::ranges::any_of(ports, [](wire::Tunnels tunnels) { return !tunnels.empty(); })) {
    if (any_) taken_ = std::make_unique<wire::TunnelTally[]>(ports.size());
}

wire::Verdict RxDecapsulation::take_off(Packet& packet) noexcept {
    const wire::Tunnels tunnels = ports_[packet.port];
    if (tunnels.empty()) return wire::ok;
    rte_mbuf& mbuf = *packet.mbuf;
    // Of a frame in several buffers all that is read is in the first: see lies_apart().
    const std::uint32_t there = packet.scattered() ? packet.wire_bytes : packet.captured_bytes;
    const wire::Decapsulated inside =
        wire::decapsulate(rte_pktmbuf_mtod(&mbuf, std::byte*), there, packet.wire_bytes, tunnels);
    for (std::uint32_t layer = 0; layer < inside.layers; ++layer) taken_[packet.port].add(inside.by[layer]);
    if (inside.layers == 0 || inside.verdict != wire::ok) return inside.verdict;
    mbuf.data_off = static_cast<std::uint16_t>(mbuf.data_off + inside.front_bytes);
    mbuf.data_len = static_cast<std::uint16_t>(mbuf.data_len - inside.front_bytes);
    mbuf.pkt_len -= inside.front_bytes;
    packet.wire_bytes = inside.wire_bytes;
    if (mbuf.nb_segs > 1 && inside.captured_bytes > mbuf.data_len) {
        packet.captured_bytes = mbuf.data_len;
        // A chain is taken to be whole; what its mirror cut off is missed by the lengths in its headers.
        packet.wire_bytes = inside.captured_bytes;
        return wire::ok;
    }
    if (mbuf.nb_segs > 1) drop_rest(mbuf);
    packet.captured_bytes = static_cast<std::uint16_t>(inside.captured_bytes);
    mbuf.data_len = packet.captured_bytes;
    mbuf.pkt_len = packet.captured_bytes;
    return wire::ok;
}

}  // namespace weir::stages
