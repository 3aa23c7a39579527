// RoCE packets like ones that came before: of the same sender, to the same queue pair, and with the same operation and
// length, such as those in the middle of messages. What never changes from one to the next is compared with what it
// was, and only what does change is read. It says nothing that wire::decode_roce would not say; whatever differs in
// anything is not known.
#pragma once

#include <array>
#include <cstdint>

#include "port/buffers.hpp"
#include "stages/rx/flow_place.hpp"
#include "steer/steering.hpp"
#include "wire/bytes.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::stages {

/// For packets whose iCRC is not looked at.
class KnownQueuePairs {
public:
    /// The way of the packets that this one is like, or nullptr. `datagram` is of a known flow (KnownFlows). `out` is
    /// then what decode_roce makes of it, all of it in order; otherwise it is left alone.
    [[nodiscard]] const steer::Route* find(std::uint8_t port, const wire::Datagram& datagram,
                                           wire::RocePacket& out) const noexcept {
        if (datagram.payload_bytes < wire::roce_bth_bytes) return nullptr;
        const std::byte* const bth = datagram.payload;
        const Known& known = known_[place_of(datagram, wire::load_be24(bth + 5))];
        // 0 if all is as it was.
        const std::uint64_t changed = (wire::load_le<std::uint64_t>(bth) ^ known.bth) |
                                      (wire::load_le<std::uint64_t>(datagram.ip + 12) ^ known.packet.address_pair) |
                                      (key_of(port, datagram) ^ known.key);
        if (changed != 0) return nullptr;
        out = known.packet;
        out.payload = bth + wire::roce_bth_bytes;
        out.psn = wire::load_be24(bth + 9);
        out.ack_request = (std::to_integer<std::uint32_t>(bth[8]) & 0x80) != 0;
        return &known.route;
    }
    /// Packets like this one, of which decode_roce has made `roce` and found nothing wrong, go this way. Does nothing
    /// with those that have further headers, begin or end longer messages, or are of no flow that could be known.
    void remember(const port::Packet& packet, const wire::Datagram& datagram, const wire::RocePacket& roce,
                  const steer::Route& route) noexcept {
        constexpr std::uint32_t network_bytes =
            wire::ethernet_header_bytes + wire::ipv4_header_bytes + wire::udp_header_bytes;
        const bool plain = datagram.payload == port::frame_of(packet) + network_bytes;
        const bool short_headers = roce.payload == datagram.payload + wire::roce_bth_bytes;
        const bool usual = roce.place == wire::RocePlace::middle || roce.place == wire::RocePlace::only;
        if (!plain || !short_headers || !usual) return;
        known_[place_of(datagram, roce.qp)] = {.bth = wire::load_le<std::uint64_t>(datagram.payload),
                                               .key = key_of(packet.port, datagram),
                                               .route = route,
                                               .packet = roce};
    }

private:
    struct alignas(64) Known {
        std::uint64_t bth = 0;  ///< as it lies in the frame: all but acknowledge request and PSN
        std::uint32_t key = 0;  ///< 0: nothing is here
        steer::Route route{};
        wire::RocePacket packet;
    };
    /// Whatever else must be the same: length, type of service (which says whether there was congestion), port.
    [[nodiscard]] static std::uint32_t key_of(std::uint8_t port, const wire::Datagram& datagram) noexcept {
        return std::uint32_t{port} << 24U | std::to_integer<std::uint32_t>(datagram.ip[1]) << 16U |
               datagram.payload_bytes;
    }
    [[nodiscard]] static std::uint32_t place_of(const wire::Datagram& datagram, std::uint32_t qp) noexcept {
        return flow_place(std::uint64_t{datagram.src} << 32U | datagram.dst, qp);
    }

    std::array<Known, flow_places> known_{};
};

}  // namespace weir::stages
