// Random packets of a random set of events, as a capture has them: with loss, copies, reordering, delay, and packets
// that are nobody's.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "topology.hpp"

namespace weir::stages::test {

struct CapturedPacket {
    Part part;
    enum class Kind : std::uint8_t { whole, in_pieces, scattered, nobody } kind = Kind::whole;
};
using Capture = std::vector<CapturedPacket>;  ///< in order of time

/// One event for each of `seeds`, which decide what befalls its packets. The same seeds make the same capture.
[[nodiscard]] inline Capture made_capture(const std::vector<std::uint32_t>& seeds, std::uint32_t sources,
                                          TimeNs timeout_ns) {
    Capture capture;
    TimeNs time = 0;
    std::uint64_t number = 1000;
    for (const std::uint32_t seed : seeds) {
        std::mt19937 random(seed);
        const auto chance = [&](unsigned percent) { return random() % 100 < percent; };
        const auto within = [&](TimeNs span) {
            return static_cast<TimeNs>(random() % static_cast<std::uint64_t>(span));
        };
        time += within(timeout_ns / 20);
        number += 1 + random() % 3;
        for (std::uint32_t source = 0; source < sources; ++source) {
            if (chance(5)) continue;  // sends nothing for it
            const std::uint32_t count = 2 + random() % 4;
            for (std::uint32_t i = 0; i < count; ++i) {
                if (chance(4)) continue;  // lost
                CapturedPacket packet{part_of(source, number, i, count, time + within(ms)), {}};
                if (chance(5)) packet.part.time += within(2 * timeout_ns);
                if (chance(4)) packet.kind = CapturedPacket::Kind::in_pieces;
                if (chance(4)) packet.kind = CapturedPacket::Kind::scattered;
                capture.push_back(packet);
                if (!chance(6)) continue;
                packet.part.time += within(timeout_ns);
                capture.push_back(packet);
            }
        }
        if (chance(10)) capture.push_back({part_of(0, number, 0, 1, time), CapturedPacket::Kind::nobody});
    }
    std::ranges::stable_sort(capture, {}, [](const CapturedPacket& packet) { return packet.part.time; });
    return capture;
}

/// The frames of one packet of it: several where it is a datagram in pieces.
[[nodiscard]] inline std::vector<port::Packet> packets_of(PacketMaker& make, const CapturedPacket& captured,
                                                          std::uint16_t identification) {
    using enum CapturedPacket::Kind;
    const Part& part = captured.part;
    switch (captured.kind) {
        case whole:
            return {make.make(part)};
        case in_pieces: {
            std::vector<port::Packet> packets;
            for (const Bytes& piece : fragments_of(frame_of(part), 64, identification))
                packets.push_back(make.make(piece, part.time));
            return packets;
        }
        case scattered:
            return {make.make(frame_of(part), part.time, 90)};
        case nobody:
            break;
    }
    wire::FrameSpec spec;
    spec.dport = 7;
    return {make.make(wire::make_udp_frame(spec, ejfat_of(part)), part.time)};
}

}  // namespace weir::stages::test
