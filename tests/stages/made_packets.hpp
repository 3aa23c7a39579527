// Packets for the tests of stages: whose every payload byte follows from source, event number and offset, so that what
// comes out can be checked without remembering what went in.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "port/buffers.hpp"
#include "wire/encode.hpp"
#include "wire/network.hpp"

namespace weir::stages::test {

using core::TimeNs;
using Bytes = std::vector<std::byte>;

constexpr TimeNs ms = core::ns_per_ms;
/// When made-up time begins.
constexpr TimeNs start_ns = 1'700'000'000 * core::ns_per_s;
/// Source s sends to this port and s.
constexpr std::uint16_t first_port = 50'000;
constexpr std::uint32_t roce_qp = 0x11;

[[nodiscard]] inline std::byte byte_of(std::uint64_t source, std::uint64_t number, std::uint64_t offset) {
    return static_cast<std::byte>((source + 1) * 131 + number * 29 + offset * 7 + (offset >> 8U) * 13);
}

/// What one packet of a message carries.
struct Part {
    std::uint32_t source = 0;
    std::uint64_t number = 0;
    std::uint32_t offset = 0;
    std::uint32_t bytes = 100;
    std::uint32_t total = 100;
    TimeNs time = 0;  ///< after start_ns
};

/// The part `index` of `count` equal ones.
[[nodiscard]] inline Part part_of(std::uint32_t source, std::uint64_t number, std::uint32_t index, std::uint32_t count,
                                  TimeNs time, std::uint32_t bytes = 100) {
    return {source, number, index * bytes, bytes, count * bytes, time};
}

[[nodiscard]] inline Bytes payload_of(const Part& part) {
    Bytes data(part.bytes);
    for (std::uint32_t i = 0; i < part.bytes; ++i) data[i] = byte_of(part.source, part.number, part.offset + i);
    return data;
}

/// The UDP payload.
[[nodiscard]] inline Bytes ejfat_of(const Part& part) {
    Bytes out(part.bytes + 64);
    out.resize(wire::write_ejfat({.data_id = static_cast<std::uint16_t>(part.source),
                                  .offset = part.offset,
                                  .total = part.total,
                                  .event = part.number},
                                 payload_of(part), out));
    return out;
}

[[nodiscard]] inline wire::FrameSpec spec_of(std::uint32_t source) {
    wire::FrameSpec spec;
    spec.dport = static_cast<std::uint16_t>(first_port + source);
    return spec;
}

[[nodiscard]] inline Bytes frame_of(const Part& part) {
    return wire::make_udp_frame(spec_of(part.source), ejfat_of(part));
}

/// IPv4: the frame's datagram in pieces of at most `step` bytes (a multiple of 8).
[[nodiscard]] inline std::vector<Bytes> fragments_of(const Bytes& frame, std::uint32_t step,
                                                     std::uint16_t identification) {
    constexpr std::size_t head = wire::ethernet_header_bytes + wire::ipv4_header_bytes;
    std::vector<Bytes> pieces;
    for (std::size_t at = head; at < frame.size(); at += step) {
        const std::size_t end = std::min(at + step, frame.size());
        Bytes piece(frame.begin(), frame.begin() + head);
        std::byte* const ip = piece.data() + wire::ethernet_header_bytes;
        wire::store_be(ip + 2, static_cast<std::uint16_t>(wire::ipv4_header_bytes + end - at));
        wire::store_be(ip + 4, identification);
        const std::size_t place = (at - head) / 8 | (end < frame.size() ? 0x2000U : 0U);
        wire::store_be(ip + 6, static_cast<std::uint16_t>(place));
        wire::store_be(ip + 10, std::uint16_t{0});
        wire::store_le(ip + 10, static_cast<std::uint16_t>(~wire::ipv4_header_sum(ip, wire::ipv4_header_bytes)));
        piece.insert(piece.end(), frame.begin() + static_cast<std::ptrdiff_t>(at),
                     frame.begin() + static_cast<std::ptrdiff_t>(end));
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

/// The packets of one reliable SEND whose immediate is the event number; `source` only chooses the bytes.
[[nodiscard]] inline std::vector<Bytes> roce_frames_of(std::uint32_t source, std::uint32_t number, std::uint32_t bytes,
                                                       std::uint32_t psn, std::uint32_t qp = roce_qp) {
    const Bytes payload = payload_of({source, number, 0, bytes, bytes, 0});
    wire::RoceMessage message;
    message.transport = wire::RoceTransport::rc;
    message.qp = qp;
    message.psn = psn;
    message.mtu = 256;
    message.immediate = number;
    wire::FrameSpec spec;
    spec.dport = wire::roce_port;
    std::vector<Bytes> frames;
    for (std::uint32_t i = 0; i < wire::roce_packet_count(message, bytes); ++i)
        frames.push_back(wire::make_roce_frame(spec, wire::roce_packet_of(message, payload, i)));
    return frames;
}

/// Takes buffers for made-up frames, as a feeder does.
class PacketMaker {
public:
    explicit PacketMaker(port::BufferPool& pool) : pool_(pool) {}

    /// In buffers of at most `segment_bytes` each. Without mbuf where the pool is empty.
    [[nodiscard]] port::Packet make(std::span<const std::byte> frame, TimeNs time,
                                    std::size_t segment_bytes = SIZE_MAX) {
        port::Packet packet;
        rte_mbuf* last = nullptr;
        for (std::size_t at = 0; at < frame.size(); at += std::min(segment_bytes, frame.size() - at)) {
            const std::span<const std::byte> some = frame.subspan(at, std::min(segment_bytes, frame.size() - at));
            rte_mbuf* const mbuf = pool_.allocate();
            if (mbuf == nullptr) {
                rte_pktmbuf_free(packet.mbuf);
                return {};
            }
            std::memcpy(rte_pktmbuf_mtod(mbuf, void*), some.data(), some.size());
            mbuf->data_len = static_cast<std::uint16_t>(some.size());
            if (last == nullptr) {
                packet.mbuf = mbuf;
                packet.captured_bytes = mbuf->data_len;
            } else {
                last->next = mbuf;
                ++packet.mbuf->nb_segs;
            }
            last = mbuf;
        }
        packet.mbuf->pkt_len = packet.wire_bytes = static_cast<std::uint32_t>(frame.size());
        packet.time_ns = start_ns + time;
        return packet;
    }
    [[nodiscard]] port::Packet make(const Part& part) { return make(frame_of(part), part.time); }

private:
    port::BufferPool& pool_;
};

}  // namespace weir::stages::test
