// Declared formats: a detector header described in the configuration instead of in C++. The description is checked and
// compiled into loads, shifts and masks at the start (declared.cpp); the decoder below only follows it.
// docs/reference/formats/declared.md is the user's page.
#pragma once

#include <string_view>

#include "wire/bytes.hpp"
#include "wire/format.hpp"

namespace weir::wire {

struct Declared {
    static constexpr std::string_view name = "declared";
    static constexpr std::uint32_t header_bytes_max = 1024;

    static FormatContext make_context(const FormatOptions& options);

    /// A field of a header of at least context.header_bytes bytes; 0 if the field is absent.
    [[nodiscard]] static std::uint64_t read(const FormatContext& context, const FieldReader& field,
                                            const std::byte* header) noexcept {
        std::uint64_t word = 0;
        if (context.header_bytes >= sizeof word)
            word = load_le<std::uint64_t>(header + field.at);
        else
            std::memcpy(&word, header, context.header_bytes);
        if (context.big_endian) word = swap_bytes(word);
        return (word >> field.shift) & field.mask;
    }

    [[nodiscard]] static Verdict decode(const FormatContext& context, const Datagram& datagram,
                                        Fragment& out) noexcept {
        if (datagram.payload_bytes < context.header_bytes) return Verdict::malformed_header;
        const std::byte* header = datagram.payload;
        if (read(context, context.magic, header) != context.magic_value) return Verdict::malformed_header;
        std::uint64_t number = read(context, context.event, header);
        // Bits above wrap_bits: not a number that this counter can have.
        if (context.number_bits < 64 && number >> context.number_bits != 0) return Verdict::malformed_header;

        if (context.event_count != 0) {
            const std::uint64_t part = read(context, context.event_part, header);
            if (part >= context.event_count) return Verdict::malformed_header;
            number = number * context.event_count + part;
        }

        const std::uint32_t bytes = datagram.payload_bytes - context.header_bytes;
        std::uint64_t total = context.message_bytes;
        if (context.total.mask != 0) {
            total = read(context, context.total, header);
            if (total > context.message_bytes_max) return Verdict::malformed_message_size;
        }
        std::uint64_t offset = 0;
        const Verdict verdict = place(context, header, bytes, offset, total);
        if (verdict != ok) return verdict;

        out = Fragment{.payload = header + context.header_bytes,
                       .number = number,
                       .offset = static_cast<std::uint32_t>(offset),
                       .bytes = bytes,
                       .total = static_cast<std::uint32_t>(total),
                       .header_source = static_cast<std::uint32_t>(read(context, context.source, header)),
                       .header = header,
                       .header_bytes = static_cast<std::uint16_t>(context.header_bytes),
                       .total_known = true,
                       .sequence = static_cast<std::uint32_t>(read(context, context.sequence, header))};
        return ok;
    }

private:
    /// Where the payload lies, and whether it may have this length there. Fills `offset`, and `total` where every
    /// packet is a whole message.
    [[nodiscard]] static Verdict place(const FormatContext& context, const std::byte* header, std::uint32_t bytes,
                                       std::uint64_t& offset, std::uint64_t& total) noexcept {
        if (context.index.mask != 0) {
            const std::uint64_t index = read(context, context.index, header);
            // The first test keeps the product from wrapping. Index 0 of an empty message carries nothing, and is fine.
            if (index > context.message_bytes_max) return Verdict::malformed_packet_number;
            offset = index * context.payload_bytes;
            if (offset >= total && (index != 0 || total != 0)) return Verdict::malformed_packet_number;
        } else if (context.offset.mask != 0) {
            offset = read(context, context.offset, header);
            if (offset >= total && (offset != 0 || total != 0)) return Verdict::malformed_range;
        } else if (context.total.mask == 0 && context.message_bytes == 0) {
            total = bytes;
            if (total > context.message_bytes_max) return Verdict::malformed_message_size;
        }
        const std::uint64_t left = total - offset;
        if (context.payload_bytes != 0)
            return bytes == (left < context.payload_bytes ? left : context.payload_bytes)
                       ? ok
                       : Verdict::malformed_payload_length;
        if (bytes == 0 && total != 0) return Verdict::malformed_payload_length;
        if (context.offset.mask == 0) return bytes == total ? ok : Verdict::malformed_payload_length;
        return bytes <= left ? ok : Verdict::malformed_range;
    }
};

}  // namespace weir::wire
