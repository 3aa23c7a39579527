// DUNE: the 16-byte DAQEthHeader in front of a block of 64-bit words; every datagram is a whole message, numbered by
// its time stamp. All little-endian. docs/reference/formats/dune.md has the layout and the choices. Source of the
// facts: DUNE-DAQ/detdataformats, DAQEthHeader.hpp; DUNE-DAQ/fddetdataformats for the frames.
#pragma once

#include <string_view>

#include "wire/bytes.hpp"
#include "wire/format.hpp"

namespace weir::wire {

struct Dune {
    static constexpr std::string_view name = "dune";
    static constexpr std::uint32_t header_bytes = 16;
    static constexpr std::uint32_t word_bytes = 8;  ///< block_length counts these, after the header
    static constexpr std::uint8_t sequence_bits = 12;
    static constexpr unsigned sequence_shift = 40;
    static constexpr unsigned block_length_shift = 52;
    static constexpr unsigned source_shift = 6;
    static constexpr std::uint32_t source_mask = 0x0fff'ffff;  ///< detector 6, crate 10, slot 4, stream 8 bits

    static FormatContext make_context(const FormatOptions& options);

    [[nodiscard]] static Verdict decode(const FormatContext& context, const Datagram& datagram,
                                        Fragment& out) noexcept {
        if (datagram.payload_bytes < header_bytes) return Verdict::malformed_header;
        const auto word = load_le<std::uint64_t>(datagram.payload);
        const std::uint32_t bytes = datagram.payload_bytes - header_bytes;
        if (!fits(static_cast<std::uint32_t>(word >> block_length_shift), bytes))
            return Verdict::malformed_payload_length;
        if (bytes > context.message_bytes_max) return Verdict::malformed_message_size;

        out = Fragment{.payload = datagram.payload + header_bytes,
                       .number = load_le<std::uint64_t>(datagram.payload + 8),
                       .offset = 0,
                       .bytes = bytes,
                       .total = bytes,
                       .header_source = static_cast<std::uint32_t>(word >> source_shift) & source_mask,
                       .header = datagram.payload,
                       .header_bytes = header_bytes,
                       .total_known = true,
                       .sequence = static_cast<std::uint32_t>(word >> sequence_shift) & ((1U << sequence_bits) - 1)};
        return ok;
    }

private:
    /// block_length counts the whole words after the header. A frame may end in part of a word (TDE16), and some
    /// software counts the time stamp's word as well; the datagram's own length is the one that is believed.
    [[nodiscard]] static constexpr bool fits(std::uint32_t words, std::uint32_t bytes) noexcept {
        return words >= bytes / word_bytes && words <= (bytes + word_bytes - 1) / word_bytes + 1;
    }
};

}  // namespace weir::wire
