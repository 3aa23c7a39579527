#include "stages/rx/rx_pieces.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/tsan.hpp"
#include "stages/rx/packet_chain.hpp"

namespace weir::stages {

using wire::PacketCounter;

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

RxPieces::RxPieces(const port::IpReassembly::Config& config, std::uint32_t header_bytes, const Collaborators& around)
    : around_(around), reassembly_(config), head_(header_bytes) {}

/// Pieces that wait are in flight; what was given up has found its counter.
void RxPieces::count_held(std::uint32_t held_before) noexcept {
    const std::uint32_t held = reassembly_.held();
    if (held > held_before)
        around_.packets.add(PacketCounter::in_flight, held - held_before);
    else if (held < held_before)
        around_.packets.subtract(PacketCounter::in_flight, held_before - held);
    for (const port::IpReassembly::Ended& ended : reassembly_.ended()) around_.table.reject(ended.mbuf, ended.counter);
}

std::optional<port::Packet> RxPieces::join(const Packet& packet, const wire::Datagram& piece, TimeNs now) noexcept {
    const std::uint32_t held = reassembly_.held();
    rte_mbuf* const whole = reassembly_.add(packet, piece, now);
    count_held(held);
    if (whole == nullptr) return std::nullopt;
    // No captured_bytes: that marks a datagram of several packets.
    return Packet{whole, packet.time_ns, whole->pkt_len, 0, packet.port, packet.pass};
}

void RxPieces::expire(TimeNs now) noexcept {
    if (reassembly_.held() == 0) return;
    const std::uint32_t held = reassembly_.held();
    reassembly_.expire(now);
    count_held(held);
}

void RxPieces::flush() noexcept {
    while (reassembly_.held() > 0) {
        const std::uint32_t held = reassembly_.held();
        reassembly_.flush();
        count_held(held);
    }
}

std::span<const std::byte> RxPieces::head_of(const Packet& packet) noexcept {
    const auto* const first = rte_pktmbuf_mtod(packet.mbuf, const std::byte*);
    if (packet.mbuf->data_len >= std::min<std::size_t>(head_.size(), packet.wire_bytes))
        return {first, packet.mbuf->data_len};
    return {head_.data(), copy_chain(packet.mbuf, head_)};
}

std::optional<port::Packet> RxPieces::in_one_buffer(const Packet& packet) noexcept {
    rte_mbuf* copy = ::rte_pktmbuf_alloc(packet.mbuf->pool);
    core::tsan_acquire(packet.mbuf->pool);
    if (copy == nullptr) {
        reject(around_.table, packet, PacketCounter::no_room);
        return std::nullopt;
    }
    if (packet.wire_bytes > rte_pktmbuf_tailroom(copy)) {
        around_.table.give_back(copy);
        reject(around_.table, packet, PacketCounter::malformed_truncated);
        return std::nullopt;
    }
    Packet whole = packet;
    whole.mbuf = copy;
    whole.captured_bytes = static_cast<std::uint16_t>(packet.wire_bytes);
    copy->data_len = whole.captured_bytes;
    copy->pkt_len = packet.wire_bytes;
    copy->ol_flags = packet.mbuf->ol_flags;
    copy->hash = packet.mbuf->hash;
    copy_chain(packet.mbuf, {rte_pktmbuf_mtod(copy, std::byte*), packet.wire_bytes});
    around_.table.give_back(packet.mbuf);
    return whole;
}

void RxPieces::assemble(const Packet& packet, const std::byte* head, wire::Datagram& datagram,
                        const steer::Route& route) noexcept {
    const StreamRuntime& stream = around_.streams[route.stream];
    if (stream.lane_by_port) datagram.lane = stream.lane_of(route.source);
    wire::Fragment fragment;
    wire::Verdict verdict = PacketCounter::malformed_header;
    stream.format->decode_burst(stream.context, {&datagram, 1}, &fragment, &verdict);
    std::uint32_t source = route.source;
    verdict = around_.sources.identify(route.stream, fragment, source, verdict);
    if (verdict != wire::ok) {
        around_.notes.refused(route.stream, source, verdict, datagram, stream.context.header_read_bytes, fragment);
        return reject(around_.table, packet, verdict);
    }
    fragment.sender = around_.sources.sender_of(source, datagram, fragment.lane);
    if (fragment.sender == OtherSenders::too_many) {
        around_.sources.count(source);
        return reject(around_.table, packet, PacketCounter::conflict);
    }
    const auto skip = static_cast<std::uint32_t>(fragment.payload - head);
    if (stream.numbered_by_arrival) fragment.number = around_.sources.next_arrival(route.stream);
    add(packet, source, fragment, skip);
}

/// The payload begins after `skip` bytes of the chain. Buffers that are packets all stay, however little of it they
/// have.
void RxPieces::add(const Packet& packet, std::uint32_t source, const wire::Fragment& fragment,
                   std::uint32_t skip) noexcept {
    static_assert(segments_max >= port::IpReassembly::pieces_max);
    const bool one_packet = packet.scattered();
    std::array<assemble::Piece, segments_max> pieces;
    std::uint32_t count = 0;
    std::uint32_t left = fragment.bytes;
    for (rte_mbuf* mbuf = packet.mbuf; mbuf != nullptr;) {
        rte_mbuf* rest = take_first(mbuf);
        const std::uint32_t skipped = std::min<std::uint32_t>(skip, mbuf->data_len);
        const std::uint32_t bytes = std::min<std::uint32_t>(left, mbuf->data_len - skipped);
        // Only headers, or padding after the payload: done with, but one buffer must stand for the packet.
        if (one_packet && bytes == 0 && (count > 0 || left > 0)) {
            around_.table.give_back(mbuf);
        } else {
            pieces[count++] = {mbuf, rte_pktmbuf_mtod_offset(mbuf, const std::byte*, skipped), bytes};
            if (!one_packet || count == 1) around_.sources.count(source);
        }
        skip -= skipped;
        left -= bytes;
        mbuf = rest;
    }
    if (around_.converter != nullptr) {
        std::array<std::span<std::byte>, segments_max> parts;
        for (std::uint32_t i = 0; i < count; ++i) parts[i] = {const_cast<std::byte*>(pieces[i].data), pieces[i].bytes};
        around_.converter->convert(source, fragment, {parts.data(), count});
    }
    using Are = assemble::MessageTable::PiecesAre;
    around_.table.add_pieces(source, fragment, {pieces.data(), count}, packet.time_ns,
                             one_packet ? Are::one_packet : Are::packets);
}

}  // namespace weir::stages
