// What the rx lcore does with a frame that a device put into several buffers (the frame is larger than a buffer, or the
// device splits off headers). Payload stays where it is, each part a reference of its own; headers are brought together
// to be read if they are not.
#include <algorithm>
#include <cstring>

#include "core/tsan.hpp"
#include "stages/rx/rx_stage.hpp"
#include "wire/network.hpp"

namespace weir::pipeline {

using core::PacketCounter;
using port::Packet;

namespace {

/// Copies the beginning of a chain; returns how much there was.
std::size_t copy_chain(const rte_mbuf* mbuf, std::span<std::byte> to) noexcept {
    std::size_t done = 0;
    for (; mbuf != nullptr && done < to.size(); mbuf = mbuf->next) {
        const std::size_t bytes = std::min<std::size_t>(mbuf->data_len, to.size() - done);
        std::memcpy(to.data() + done, rte_pktmbuf_mtod(mbuf, const std::byte*), bytes);
        done += bytes;
    }
    return done;
}

}  // namespace

/// All of the frame's headers in one piece: in its first buffer, or copied together.
std::span<const std::byte> RxStage::head_of(const Packet& packet) noexcept {
    if (packet.captured_bytes >= head_.size())
        return {rte_pktmbuf_mtod(packet.mbuf, const std::byte*), packet.captured_bytes};
    return {head_.data(), copy_chain(packet.mbuf, head_)};
}

/// For what has to be read as a whole, which is rare in several buffers: a frame that fits into one of ours is copied.
void RxStage::process_copy(const Packet& packet, port::LivePort* from) noexcept {
    rte_mbuf* copy = ::rte_pktmbuf_alloc(packet.mbuf->pool);
    core::ordered_after(packet.mbuf->pool);
    if (copy == nullptr) return reject(packet, PacketCounter::no_room);
    if (packet.wire_bytes > rte_pktmbuf_tailroom(copy)) {
        table_.give_back(copy);
        return reject(packet, PacketCounter::malformed_truncated);
    }
    Packet whole = packet;
    whole.mbuf = copy;
    whole.captured_bytes = static_cast<std::uint16_t>(packet.wire_bytes);
    copy->data_len = whole.captured_bytes;
    copy->pkt_len = packet.wire_bytes;
    copy->ol_flags = packet.mbuf->ol_flags;
    copy->hash = packet.mbuf->hash;
    copy_chain(packet.mbuf, {rte_pktmbuf_mtod(copy, std::byte*), packet.wire_bytes});
    table_.give_back(packet.mbuf);
    process_some({&whole, 1}, from);
}

void RxStage::process_scattered(const Packet& packet, port::LivePort* from) noexcept {
    if (packet.mbuf->nb_segs > segments_max) return reject(packet, PacketCounter::malformed_truncated);
    const std::span<const std::byte> head = head_of(packet);
    wire::Datagram datagram;
    // Only headers are read, and they are all in `head`, or the frame is no longer than that.
    const wire::Verdict verdict = wire::parse_frame(head.data(), packet.wire_bytes, packet.wire_bytes, datagram);
    if (verdict == PacketCounter::malformed_ip_fragment || verdict == PacketCounter::not_for_us_arp ||
        verdict == PacketCounter::not_for_us_icmp)
        return process_copy(packet, from);
    if (verdict != wire::ok) return reject(packet, verdict);
    // A RoCE packet's checksum goes over all of it.
    if (config_.steering[packet.port]->is_roce(datagram)) return process_copy(packet, from);
    const flow::Route route = route_of(packet, datagram);
    if (route.stream == flow::Steering::none) {
        notes_.unmatched_udp(datagram);
        reject(packet, PacketCounter::unsteered);
    } else if (route.owner != config_.index) {
        steer(packet, route.owner);
    } else {
        assemble_whole(packet, head.data(), datagram, route);
    }
}

}  // namespace weir::pipeline
