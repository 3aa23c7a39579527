// What PSI's detectors have in common on the wire: the 48-byte slsDetector header, little-endian, and pixels after it.
// The packet number gives the place, so nothing has to be remembered between packets. Which bytes there are for which
// detector is in jungfrau/, moench/ and eiger/; docs/reference/formats/ has the layouts and the choices. Source of the
// facts: slsdetectorgroup/slsDetectorPackage, docs/src/udpheader.rst and slsReceiverSoftware GeneralData.h.
#pragma once

#include "wire/bytes.hpp"
#include "wire/format.hpp"

namespace weir::wire {

struct Sls {
    static constexpr std::uint32_t header_bytes = 48;
    static constexpr std::uint32_t packet_number_at = 12;
    static constexpr std::uint32_t module_at = 32;
    static constexpr std::uint32_t row_at = 34;
    static constexpr std::uint32_t type_at = 46;
    static constexpr std::uint32_t version_at = 47;

    /// Which of the module's UDP interfaces sent the packet: 0 or 1. Always 0 where it makes no difference.
    [[nodiscard]] static std::uint32_t lane_of(const SlsContext& context, const Datagram& datagram,
                                               const std::byte* header) noexcept {
        if (context.lane_by == LaneBy::none) return 0;
        // Tiles of the second interface have the odd rows: a module with two of them is two tiles high.
        if (context.lane_by == LaneBy::row) return std::to_integer<std::uint32_t>(header[row_at]) & 1U;
        return datagram.lane & 1U;
    }

    /// Whether the header is one of this detector. `Detector` has `detector_type` and `zero_is_a_frame`.
    template <class Detector>
    [[nodiscard]] static bool is_header(const Datagram& datagram) noexcept {
        if (datagram.payload_bytes < header_bytes) return false;
        const std::byte* header = datagram.payload;
        // Version 2 since package 4.0, version 1 in 3.x; the fields used here are the same.
        const auto version = std::to_integer<std::uint32_t>(header[version_at]);
        if (std::to_integer<std::uint8_t>(header[type_at]) != Detector::detector_type || version - 1 > 1) return false;
        return Detector::zero_is_a_frame || load_le<std::uint64_t>(header) != 0;
    }

    template <class Detector>
    [[nodiscard]] static Verdict decode(const FormatContext& context, const Datagram& datagram,
                                        Fragment& out) noexcept {
        if (!is_header<Detector>(datagram)) return Verdict::malformed_header;
        const std::byte* header = datagram.payload;
        if (datagram.payload_bytes != header_bytes + context.payload_bytes) return Verdict::malformed_payload_length;
        const std::uint32_t interface = lane_of(context.sls, datagram, header);
        const SlsLane& lane = context.sls.lanes[interface];
        const std::uint32_t index = load_le<std::uint32_t>(header + packet_number_at) - lane.first_packet;
        if (index >= context.sls.lane_packets) return Verdict::malformed_packet_number;  // below the first one, too
        out = fragment_of(context, header, lane.offset + index * context.payload_bytes, context.payload_bytes);
        out.lane = static_cast<std::uint8_t>(interface);
        return ok;
    }

    /// A frame that RDMA brought as a whole, after one header whose packet number says nothing.
    template <class Detector>
    [[nodiscard]] static Verdict decode_whole(const FormatContext& context, const Datagram& datagram,
                                              Fragment& out) noexcept {
        if (!is_header<Detector>(datagram)) return Verdict::malformed_header;
        if (datagram.payload_bytes != header_bytes + context.message_bytes) return Verdict::malformed_payload_length;
        out = fragment_of(context, datagram.payload, 0, context.message_bytes);
        return ok;
    }

private:
    [[nodiscard]] static Fragment fragment_of(const FormatContext& context, const std::byte* header,
                                              std::uint32_t offset, std::uint32_t bytes) noexcept {
        return {.payload = header + header_bytes,
                .number = load_le<std::uint64_t>(header),
                .offset = offset,
                .bytes = bytes,
                .total = context.message_bytes,
                .header_source = load_le<std::uint16_t>(header + module_at),
                .header = header,
                .header_bytes = header_bytes,
                .total_known = true};
    }
};

}  // namespace weir::wire
