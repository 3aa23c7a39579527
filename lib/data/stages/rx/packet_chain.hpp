// Packets in several buffers: datagrams that came in IP fragments, and frames that a device spread. Both are chains of
// mbufs.
#pragma once

#include "assemble/message_table.hpp"
#include "port/buffers.hpp"
#include "wire/packet_counter.hpp"

namespace weir::stages {

/// Takes the first buffer off a chain; returns what follows it.
[[nodiscard]] inline rte_mbuf* take_first(rte_mbuf* mbuf) noexcept {
    rte_mbuf* rest = mbuf->next;
    mbuf->next = nullptr;
    mbuf->nb_segs = 1;
    return rest;
}

/// Counts a packet that ends here, or all packets of a datagram, and gives the buffers back.
inline void reject(assemble::MessageTable& table, const port::Packet& packet, wire::PacketCounter counter) noexcept {
    rte_mbuf* mbuf = packet.mbuf;
    if (packet.pieces() == 0) return table.reject(mbuf, counter);
    while (mbuf != nullptr) {
        rte_mbuf* rest = take_first(mbuf);
        table.reject(mbuf, counter);
        mbuf = rest;
    }
}

}  // namespace weir::stages
