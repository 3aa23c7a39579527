// JUNGFRAU: the 48-byte slsDetector header and 8192 bytes of pixels in every UDP datagram. The packet number gives the
// place, so nothing has to be remembered between packets. docs/formats/jungfrau.md has the layout and the choices.
// Source of the facts: slsdetectorgroup/slsDetectorPackage, docs/src/udpheader.rst and slsReceiverSoftware
// GeneralData.h.
#pragma once

#include <string_view>

#include "wire/bytes.hpp"
#include "wire/format.hpp"

namespace weir::wire {

struct Jungfrau {
    static constexpr std::string_view name = "jungfrau";
    static constexpr std::uint32_t header_bytes = 48;
    static constexpr std::uint32_t payload_bytes = 8192;      ///< 4 rows of 1024 pixels of 16 bits
    static constexpr std::uint32_t packets_per_module = 128;  ///< 512 rows; shared evenly by the interfaces
    static constexpr std::uint8_t detector_type = 3;

    static FormatContext make_context(const FormatOptions& options);

    [[nodiscard]] static Verdict decode(const FormatContext& context, const Datagram& datagram,
                                        Fragment& out) noexcept {
        if (datagram.payload_bytes < header_bytes) return Verdict::malformed_header;
        const std::byte* header = datagram.payload;
        // Version 2 since package 4.0, version 1 in 3.x; the fields used here are the same.
        const auto version = std::to_integer<std::uint32_t>(header[47]);
        if (std::to_integer<std::uint8_t>(header[46]) != detector_type || version - 1 > 1)
            return Verdict::malformed_header;
        if (datagram.payload_bytes != header_bytes + payload_bytes) return Verdict::malformed_payload_length;
        const auto packet_number = load_le<std::uint32_t>(header + 12);
        if (packet_number >= context.packets_per_message) return Verdict::malformed_packet_number;

        out = Fragment{.payload = header + header_bytes,
                       .number = load_le<std::uint64_t>(header),
                       .offset = packet_number * payload_bytes,
                       .bytes = payload_bytes,
                       .total = context.message_bytes,
                       .header_source = load_le<std::uint16_t>(header + 32),
                       .header = header,
                       .header_bytes = header_bytes,
                       .total_known = true};
        return ok;
    }
};

}  // namespace weir::wire
