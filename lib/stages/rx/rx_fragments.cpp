// What the rx lcore does with datagrams that came in IP fragments. A whole one is a chain of as many buffers as it had
// packets; nothing is copied, and every packet stays one reference.
#include <algorithm>

#include "stages/rx/rx_stage.hpp"
#include "wire/network.hpp"

namespace weir::pipeline {

using core::PacketCounter;
using port::Packet;

namespace {

/// Takes the first buffer off a chain; what follows it is returned.
rte_mbuf* take_first(rte_mbuf* mbuf) noexcept {
    rte_mbuf* rest = mbuf->next;
    mbuf->next = nullptr;
    mbuf->nb_segs = 1;
    return rest;
}

}  // namespace

/// Counts and gives back the packets of one buffer, or of a chain.
void RxStage::reject(const Packet& packet, PacketCounter counter) noexcept {
    rte_mbuf* mbuf = packet.mbuf;
    if (packet.pieces() == 0) return table_.reject(mbuf, counter);
    while (mbuf != nullptr) {
        rte_mbuf* rest = take_first(mbuf);
        table_.reject(mbuf, counter);
        mbuf = rest;
    }
}

/// Pieces that wait are in flight; what was given up has found its counter.
void RxStage::settle_pieces(std::uint32_t held_before) noexcept {
    const std::uint32_t held = reassembly_.held();
    if (held > held_before)
        packets_.add(PacketCounter::in_flight, held - held_before);
    else if (held < held_before)
        packets_.subtract(PacketCounter::in_flight, held_before - held);
    for (const port::IpReassembly::Ended& ended : reassembly_.ended()) table_.reject(ended.mbuf, ended.counter);
}

/// The datagram that `packet` completes, or a packet without mbuf.
Packet RxStage::join(const Packet& packet, const wire::Datagram& piece) noexcept {
    const std::uint32_t held = reassembly_.held();
    Packet whole;
    whole.mbuf = reassembly_.add(packet, piece, time_);
    settle_pieces(held);
    if (whole.mbuf == nullptr) return whole;
    whole.time_ns = packet.time_ns;
    whole.wire_bytes = whole.mbuf->pkt_len;
    whole.port = packet.port;
    whole.pass = packet.pass;
    return whole;
}

void RxStage::expire_pieces(TimeNs now) noexcept {
    if (reassembly_.held() == 0) return;
    const std::uint32_t held = reassembly_.held();
    reassembly_.expire(now);
    settle_pieces(held);
}

/// End of the run.
void RxStage::flush_pieces() noexcept {
    while (reassembly_.held() > 0) {
        const std::uint32_t held = reassembly_.held();
        reassembly_.flush();
        settle_pieces(held);
    }
}

void RxStage::process_whole(const Packet& packet) noexcept {
    wire::Datagram datagram;
    // All headers lie in the first buffer, and nothing else is read.
    const auto* head = rte_pktmbuf_mtod(packet.mbuf, const std::byte*);
    const wire::Verdict verdict = wire::parse_frame(head, packet.wire_bytes, packet.wire_bytes, datagram);
    if (verdict != wire::ok) return reject(packet, verdict);
    const bool roce = config_.steering[packet.port]->is_roce(datagram);
    const flow::Route route = route_of(packet, datagram);
    if (route.stream == flow::Steering::none) {
        if (!roce) notes_.unmatched_udp(datagram);
        reject(packet, PacketCounter::unsteered);
    } else if (roce) {
        reject(packet, PacketCounter::ip_fragment_roce);
    } else if (route.owner != config_.index) {
        steer(packet, route.owner);
    } else {
        assemble_whole(packet, head, datagram, route);
    }
}

/// A datagram in several buffers, which are packets of it, or all one packet. `head` is where its headers were read.
void RxStage::assemble_whole(const Packet& packet, const std::byte* head, wire::Datagram& datagram,
                             const flow::Route& route) noexcept {
    const StreamRuntime& stream = streams_[route.stream];
    if (stream.lane_by_port) datagram.lane = static_cast<std::uint8_t>((route.source - stream.first_source) & 1U);
    wire::Fragment fragment;
    wire::Verdict verdict = PacketCounter::malformed_header;
    stream.format->decode_burst(stream.context, {&datagram, 1}, &fragment, &verdict);
    std::uint32_t source = route.source;
    if (verdict == wire::ok && !source_of(stream, fragment, source)) verdict = PacketCounter::malformed_source;
    if (stream.sequenced()) track(route.stream, fragment, source, verdict);
    if (verdict != wire::ok) {
        notes_.refused(route.stream, source, verdict, datagram, stream.context.header_read_bytes, fragment);
        return reject(packet, verdict);
    }
    note_source(source, datagram);
    const bool one_packet = packet.scattered();
    const auto skip = static_cast<std::uint32_t>(fragment.payload - head);
    if (!one_packet && skip > packet.mbuf->data_len) return reject(packet, PacketCounter::malformed_truncated);
    if (stream.numbered_by_arrival) fragment.number = arrivals_[route.stream]++;
    add_chain(packet, source, fragment, skip, one_packet);
}

/// The payload begins after `skip` bytes of the chain. Buffers that are packets all stay, however little of it they
/// have.
void RxStage::add_chain(const Packet& packet, std::uint32_t source, const wire::Fragment& fragment, std::uint32_t skip,
                        bool one_packet) noexcept {
    static_assert(segments_max >= port::IpReassembly::pieces_max);
    std::array<assemble::Piece, segments_max> pieces;
    std::uint32_t count = 0;
    std::uint32_t left = fragment.bytes;
    for (rte_mbuf* mbuf = packet.mbuf; mbuf != nullptr;) {
        rte_mbuf* rest = take_first(mbuf);
        const std::uint32_t skipped = std::min<std::uint32_t>(skip, mbuf->data_len);
        const std::uint32_t bytes = std::min<std::uint32_t>(left, mbuf->data_len - skipped);
        // Only headers, or padding after the payload: done with, but one buffer must stand for the packet.
        if (one_packet && bytes == 0 && (count > 0 || left > 0)) {
            table_.give_back(mbuf);
        } else {
            pieces[count++] = {mbuf, rte_pktmbuf_mtod_offset(mbuf, const std::byte*, skipped), bytes};
            if (!one_packet || count == 1) count_source(source);
        }
        skip -= skipped;
        left -= bytes;
        mbuf = rest;
    }
    if (config_.converter != nullptr) {
        std::array<std::span<std::byte>, segments_max> parts;
        for (std::uint32_t i = 0; i < count; ++i) parts[i] = {const_cast<std::byte*>(pieces[i].data), pieces[i].bytes};
        config_.converter->convert(source, fragment, {parts.data(), count});
    }
    using Are = assemble::MessageTable::PiecesAre;
    table_.add_pieces(source, fragment, {pieces.data(), count}, packet.time_ns,
                      one_packet ? Are::one_packet : Are::packets);
}

}  // namespace weir::pipeline
