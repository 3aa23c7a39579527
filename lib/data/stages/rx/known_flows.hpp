// Frames like ones that came before: from the same sender to the same UDP port, and plain (wire::parse_plain). What
// never changes from one to the next is compared with what it was, and only what does change is read. It says nothing
// that wire::parse_frame would not say; whatever differs in anything is not known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "port/buffers.hpp"
#include "stages/rx/flow_place.hpp"
#include "steer/steering.hpp"
#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::stages {

class KnownFlows {
public:
    /// The way of the frames that this one is like, or nullptr. `out` is then what parse_frame makes of it; otherwise
    /// it means nothing.
    [[nodiscard]] const steer::Route* find(const port::Packet& packet, wire::Datagram& out) const noexcept {
        if (packet.captured_bytes < plain_bytes) return nullptr;
        const std::byte* const ip = port::frame_of(packet) + wire::ethernet_header_bytes;
        const std::byte* const udp = ip + wire::ipv4_header_bytes;
        const auto addresses = wire::load_be<std::uint64_t>(ip + 12);
        const auto dport = wire::load_be<std::uint16_t>(udp + 2);
        const Flow& flow = flows_[flow_place(addresses, dport)];
        // 0 if all is as it was. A frame that is cut, or lies in several buffers, is not plain.
        const std::uint64_t changed = (addresses ^ flow.addresses) | (key_of(packet.port, dport) ^ flow.key) |
                                      (wire::load_le<std::uint32_t>(ip - 2) ^ flow.type) |
                                      (wire::load_le<std::uint32_t>(ip + 6) ^ flow.shape) |
                                      (packet.captured_bytes ^ packet.wire_bytes);
        // Each layer has room in the one below: below 0 otherwise.
        const std::int32_t ip_bytes = wire::load_be<std::uint16_t>(ip + 2);
        const std::int32_t payload_bytes =
            wire::load_be<std::uint16_t>(udp + 4) - static_cast<std::int32_t>(wire::udp_header_bytes);
        const std::int32_t room =
            (packet.captured_bytes - static_cast<std::int32_t>(wire::ethernet_header_bytes) - ip_bytes) |
            (ip_bytes - static_cast<std::int32_t>(headers_bytes) - payload_bytes) | payload_bytes;
        // As in parse_plain. What the other words add up to is in the flow; a checksum of 0 is not followed.
        const std::uint64_t sum =
            std::uint64_t{flow.sum} + wire::load_le<std::uint32_t>(ip + 2) + wire::load_le<std::uint16_t>(ip + 10);
        if (changed != 0 || room < 0 || sum % 0xffff != 0) [[unlikely]]
            return nullptr;
        out.payload = udp + wire::udp_header_bytes;
        out.ip = ip;
        out.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
        out.ip_bytes = static_cast<std::uint32_t>(ip_bytes);
        out.src = flow.src;
        out.dst = flow.dst;
        out.sport = wire::load_be<std::uint16_t>(udp);
        out.dport = dport;
        out.ipv6 = out.fragment = false;
        return &flow.route;
    }
    /// Frames like this one, of which parse_frame has made `datagram`, go this way. Does nothing if it is not plain.
    void remember(const port::Packet& packet, const wire::Datagram& datagram, const steer::Route& route) noexcept {
        const std::byte* const ip = port::frame_of(packet) + wire::ethernet_header_bytes;
        if (packet.chained() || datagram.ip != ip || datagram.ipv6 || datagram.fragment ||
            datagram.ip_header_bytes() != wire::ipv4_header_bytes)
            return;
        const auto addresses = wire::load_be<std::uint64_t>(ip + 12);
        Flow& flow = flows_[flow_place(addresses, datagram.dport)];
        flow = {.addresses = addresses,
                .type = wire::load_le<std::uint32_t>(ip - 2),
                .shape = wire::load_le<std::uint32_t>(ip + 6),
                .sum = wire::load_le<std::uint16_t>(ip),
                .key = key_of(packet.port, datagram.dport),
                .route = route,
                .src = datagram.src,
                .dst = datagram.dst};
        for (std::uint32_t at : {6, 8, 12, 14, 16, 18}) flow.sum += wire::load_le<std::uint16_t>(ip + at);
    }

private:
    static constexpr std::uint32_t headers_bytes = wire::ipv4_header_bytes + wire::udp_header_bytes;
    static constexpr std::uint32_t plain_bytes = wire::ethernet_header_bytes + headers_bytes;
    static constexpr std::uint32_t nobody = 0xffff'ffff;  ///< no key_of

    /// In one cache line. Of the header words, as they lie in the frame: those that are the same in each.
    struct alignas(64) Flow {
        std::uint64_t addresses = 0;  ///< source, then destination, host byte order
        std::uint32_t type = 0;       ///< EtherType, version and length of the IP header, type of service
        std::uint32_t shape = 0;      ///< flags and place of a piece, time to live, protocol
        std::uint32_t sum = 0;        ///< of all words of the IP header but total length, identification and checksum
        std::uint32_t key = nobody;
        steer::Route route{};
        std::uint32_t src = 0;  ///< as in the datagram
        std::uint32_t dst = 0;
    };
    [[nodiscard]] static std::uint32_t key_of(std::uint8_t port, std::uint16_t dport) noexcept {
        return std::uint32_t{port} << 16U | dport;
    }

    std::array<Flow, flow_places> flows_{};
};

}  // namespace weir::stages
