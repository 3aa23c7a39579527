// ESS: readouts of the European Spallation Source after a 30-byte (version 0) or 32-byte (version 1) header; the
// datagrams of a source and a pulse are a message, in order of their sequence numbers, numbered by the time of the
// pulse. All little-endian.
// docs/reference/formats/ess.md has the layout and the choices. Source of the facts: ess-dmsc/event-formation-unit,
// src/common/readout/ess/Parser; checked on a real capture.
#pragma once

#include <string_view>

#include "wire/bytes.hpp"
#include "wire/format.hpp"

namespace weir::wire {

struct Ess {
    static constexpr std::string_view name = "ess";
    static constexpr std::uint32_t header_bytes_v0 = 30;
    static constexpr std::uint32_t header_bytes_v1 = 32;
    static constexpr std::uint32_t magic = 0x535345;        ///< "ESS", 24 bits
    static constexpr std::uint32_t ticks_max = 88'052'499;  ///< of 88.0525 MHz in a second
    static constexpr std::uint32_t output_queue_max = 11;
    static constexpr std::uint8_t sequence_bits = 32;
    static constexpr std::uint32_t packets_per_pulse_max = 16384;  ///< at a gigabyte per second, more than a pulse has

    static FormatContext make_context(const FormatOptions& options);

    /// For a heartbeat (`control`), out's header_source and sequence are set: heartbeats are numbered with the others.
    [[nodiscard]] static Verdict decode(const FormatContext& context, const Datagram& datagram,
                                        Fragment& out) noexcept {
        if (datagram.payload_bytes < header_bytes_v0) return Verdict::malformed_header;
        const std::byte* header = datagram.payload;
        const auto version = std::to_integer<std::uint32_t>(header[1]);
        const std::uint32_t header_bytes = header_bytes_v0 + 2 * version;
        const std::uint32_t queue = std::to_integer<std::uint32_t>(header[8]);
        const auto ticks = load_le<std::uint32_t>(header + 14);
        if (header[0] != std::byte{0} || version > 1 || (load_le<std::uint32_t>(header + 2) & 0xff'ffffU) != magic ||
            queue > output_queue_max || ticks > ticks_max || load_le<std::uint32_t>(header + 22) > ticks_max)
            return Verdict::malformed_header;
        if (load_le<std::uint16_t>(header + 6) != datagram.payload_bytes || datagram.payload_bytes < header_bytes)
            return Verdict::malformed_payload_length;
        const std::uint32_t bytes = datagram.payload_bytes - header_bytes;
        if (bytes > context.message_bytes_max) return Verdict::malformed_message_size;

        out = Fragment{.payload = header + header_bytes,
                       .number = std::uint64_t{load_le<std::uint32_t>(header + 10)} << 32U | ticks,
                       .offset = 0,
                       .bytes = bytes,
                       .total = context.in_sequence ? context.packets_per_message : bytes,
                       .header_source = queue,
                       .header = header,
                       .header_bytes = static_cast<std::uint16_t>(header_bytes),
                       .total_known = !context.in_sequence,
                       .in_sequence = context.in_sequence,
                       .sequence = load_le<std::uint32_t>(header + 26)};
        return bytes != 0 ? ok : Verdict::control;
    }
};

}  // namespace weir::wire
