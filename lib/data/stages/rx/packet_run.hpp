// Packets of one burst that came one after the other and go the same way: they are decoded together.
#pragma once

#include <array>
#include <cstdint>

#include "core/units.hpp"
#include "port/packet_batch.hpp"
#include "steer/steering.hpp"
#include "wire/fragment.hpp"
#include "wire/roce.hpp"

namespace weir::stages {

/// Field by field: the first `count` of each are set.
struct PacketRun {
    static constexpr std::uint32_t capacity = port::PacketBatch::capacity;
    /// RoCE, of whatever streams: no index of a stream, nor Steering::none.
    static constexpr std::uint16_t roce = steer::Steering::none - 1;
    /// The way of RoCE packets until their queue pair is looked at: no rx lcore has it, so that none joins a run by it.
    static constexpr steer::Route to_queue_pairs{roce, steer::Steering::none, 0};

    std::uint16_t stream = steer::Steering::none;
    std::uint32_t count = 0;
    std::array<wire::Datagram, capacity> datagrams;
    std::array<core::TimeNs, capacity> times;  ///< these three not of RoCE
    std::array<void*, capacity> buffers;
    std::array<std::uint32_t, capacity> sources;
    std::array<const port::Packet*, capacity> packets;  ///< these four of RoCE
    std::array<steer::Route, capacity> routes;
    std::array<bool, capacity> decoded;  ///< nothing is wrong with it, and this is what it says:
    std::array<wire::RocePacket, capacity> roce_packets;

    /// Where a packet that may join is described.
    [[nodiscard]] wire::Datagram& next() noexcept { return datagrams[count]; }
    void join(const port::Packet& packet, std::uint32_t source) noexcept {
        buffers[count] = packet.mbuf;
        times[count] = packet.time_ns;
        sources[count++] = source;
    }
    /// `known`: roce_packets has it.
    void join_roce(const port::Packet& packet, const steer::Route& route, bool known) noexcept {
        packets[count] = &packet;
        decoded[count] = known;
        routes[count++] = route;
    }
};

}  // namespace weir::stages
