// EJFAT: segments of event buffers behind the 20-byte reassembly (RE) header, alone or behind the 16-byte load balancer
// (LB) header. All big-endian. docs/reference/formats/ejfat.md has the layout and the choices.
// Source of the facts: JeffersonLab/E2SAR, include/e2sarHeaders.hpp.
#pragma once

#include <string_view>

#include "wire/bytes.hpp"
#include "wire/format.hpp"

namespace weir::wire {

struct Ejfat {
    static constexpr std::string_view name = "ejfat";
    static constexpr std::uint32_t re_header_bytes = 20;
    static constexpr std::uint32_t lb_header_bytes = 16;
    static constexpr std::uint32_t sync_bytes = 28;
    static constexpr std::uint16_t lb_magic = 0x4c42;    ///< "LB"
    static constexpr std::uint16_t sync_magic = 0x4c43;  ///< "LC"
    static constexpr std::uint16_t re_magic = 0x1000;    ///< version 1, reserved bits 0: E2SAR's
    static constexpr std::uint16_t re_magic_2 = 0x2000;  ///< version 2, the same layout: JLab's packet blaster

    static FormatContext make_context(const FormatOptions& options);

    [[nodiscard]] static Verdict decode(const FormatContext& context, const Datagram& datagram,
                                        Fragment& out) noexcept {
        const std::byte* header = datagram.payload;
        std::uint32_t left = datagram.payload_bytes;
        if (left < re_header_bytes) return Verdict::malformed_header;
        if (load_be<std::uint16_t>(header) != re_magic) {
            const Verdict verdict = step_to_re(header, left);
            if (verdict != ok) return verdict;
        }
        const auto data_id = load_be<std::uint16_t>(header + 2);
        const auto offset = load_be<std::uint32_t>(header + 4);
        const auto total = load_be<std::uint32_t>(header + 8);
        const std::uint32_t bytes = left - re_header_bytes;
        if (total > context.message_bytes_max) return Verdict::malformed_message_size;
        // Nothing is a whole message only where the buffer is empty; any other empty segment says nothing.
        if (bytes == 0 && total != 0) return Verdict::malformed_payload_length;
        if (offset > total || bytes > total - offset) return Verdict::malformed_range;

        out = Fragment{.payload = header + re_header_bytes,
                       .number = load_be<std::uint64_t>(header + 12),
                       .offset = offset,
                       .bytes = bytes,
                       .total = total,
                       .header_source = data_id,
                       .header = header,
                       .header_bytes = re_header_bytes,
                       .total_known = true};
        return ok;
    }

private:
    /// The rarer packets: moves `header` and `left` past an LB header, or says what the packet is instead.
    [[nodiscard]] static Verdict step_to_re(const std::byte*& header, std::uint32_t& left) noexcept {
        const auto magic = load_be<std::uint16_t>(header);
        if (magic == re_magic_2) return ok;
        const auto version = std::to_integer<std::uint32_t>(header[2]);
        if (magic == sync_magic)
            return left >= sync_bytes && version - 1 <= 1 ? Verdict::control : Verdict::malformed_header;
        const auto next_protocol = std::to_integer<std::uint32_t>(header[3]);
        if (magic != lb_magic || version - 2 > 1 || next_protocol != 1) return Verdict::malformed_header;
        if (left < lb_header_bytes + re_header_bytes) return Verdict::malformed_header;
        header += lb_header_bytes;
        left -= lb_header_bytes;
        const auto behind = load_be<std::uint16_t>(header);
        return behind == re_magic || behind == re_magic_2 ? ok : Verdict::malformed_header;
    }
};

}  // namespace weir::wire
