// SPEAD-64-48 and SPEAD-64-40: heaps in pieces, each after a packet header and a list of item pointers that say which
// heap it is of, where it lies in it and how long the heap is. All big-endian. docs/reference/formats/spead.md has the
// layout and the choices. Source of the facts: ska-sa/spead2, include/spead2/common_defines.h and src/recv_packet.cpp.
#pragma once

#include <string_view>

#include "wire/bytes.hpp"
#include "wire/format.hpp"

namespace weir::wire {

struct Spead {
    static constexpr std::string_view name = "spead";
    static constexpr std::uint32_t header_bytes = 8;
    static constexpr std::uint32_t item_bytes = 8;
    static constexpr std::uint32_t items_max = 64;  ///< the senders that are known have about a dozen
    static constexpr std::uint16_t magic = 0x5304;
    static constexpr std::uint64_t immediate = std::uint64_t{1} << 63U;

    enum Item : std::uint32_t {
        null = 0,
        heap_counter = 1,
        heap_size = 2,
        heap_offset = 3,
        payload_length = 4,
        descriptor = 5,
        stream_control = 6,
    };

    static FormatContext make_context(const FormatOptions& options);

    [[nodiscard]] static Verdict decode(const FormatContext& context, const Datagram& datagram,
                                        Fragment& out) noexcept {
        if (datagram.payload_bytes < header_bytes) return Verdict::malformed_header;
        const std::byte* header = datagram.payload;
        if (load_be<std::uint16_t>(header) != magic) return Verdict::malformed_header;
        // Widths of item id and heap address, in bytes: 2 and 6, or 3 and 5.
        const std::uint32_t widths = load_be<std::uint16_t>(header + 2);
        if (widths != 0x0206 && widths != 0x0305) return Verdict::malformed_header;
        const std::uint32_t address_bits = (widths & 0xff) * 8;
        if (context.spead.address_bits != 0 && context.spead.address_bits != address_bits)
            return Verdict::malformed_header;
        const std::uint32_t count = load_be<std::uint16_t>(header + 6);
        const std::uint32_t front_bytes = header_bytes + item_bytes * count;
        if (count > items_max || front_bytes > datagram.payload_bytes) return Verdict::malformed_header;
        const Items items = scan(context.spead, address_bits, header + header_bytes, count);
        if ((items.found & 1U << stream_control) != 0) return Verdict::control;
        if ((items.found & items.needed) != items.needed) return Verdict::malformed_header;
        const std::uint64_t bytes = items.value[payload_length];
        if (bytes > datagram.payload_bytes - front_bytes) return Verdict::malformed_payload_length;
        return place(context, items, header, front_bytes, out);
    }

private:
    static constexpr std::uint32_t event_slot = 8;
    static constexpr std::uint32_t source_slot = 9;

    /// The immediate items that matter: value[id], or value[event_slot] and value[source_slot]. Of several the last.
    struct Items {
        std::uint64_t value[10]{};
        std::uint32_t found = 0;  ///< a bit for each slot
        std::uint32_t needed = 1U << heap_counter | 1U << heap_offset | 1U << payload_length;
    };

    [[nodiscard]] static Items scan(const SpeadContext& spead, std::uint32_t address_bits, const std::byte* at,
                                    std::uint32_t count) noexcept {
        Items items;
        if (spead.event_item != heap_counter) items.needed |= 1U << event_slot;
        if (spead.source_item != null) items.needed |= 1U << source_slot;
        const std::uint64_t value_mask = (std::uint64_t{1} << address_bits) - 1;
        for (std::uint32_t i = 0; i < count; ++i) {
            const auto item = load_be<std::uint64_t>(at + std::size_t{i} * item_bytes);
            if ((item & immediate) == 0) continue;
            const auto id = static_cast<std::uint32_t>((item & ~immediate) >> address_bits);
            const auto take = [&](std::uint32_t slot) {
                items.value[slot] = item & value_mask;
                items.found |= 1U << slot;
            };
            if (id - heap_counter <= stream_control - heap_counter) take(id);
            if (id == null) continue;
            if (id == spead.event_item) take(event_slot);
            if (id == spead.source_item) take(source_slot);
        }
        return items;
    }

    [[nodiscard]] static Verdict place(const FormatContext& context, const Items& items, const std::byte* header,
                                       std::uint32_t front_bytes, Fragment& out) noexcept {
        const std::uint64_t bytes = items.value[payload_length];
        const std::uint64_t offset = items.value[heap_offset];
        const bool declares = (items.found & 1U << heap_size) != 0;
        const bool total_known = declares || context.message_bytes != 0;
        const std::uint64_t total = declares ? items.value[heap_size] : context.message_bytes;
        // `heap_bytes` and the sender contradict each other, or the heap is larger than what is believed.
        if (total > context.message_bytes_max || (context.message_bytes != 0 && total != context.message_bytes))
            return Verdict::malformed_message_size;
        // Nothing is a whole heap only where the heap is empty; any other packet without payload says nothing.
        if (bytes == 0 && (!total_known || total != 0)) return Verdict::malformed_payload_length;
        if (total_known && (offset > total || bytes > total - offset)) return Verdict::malformed_range;
        if (offset > context.message_bytes_max || bytes > context.message_bytes_max - offset)
            return Verdict::malformed_message_size;
        if (items.value[source_slot] >> 32U != 0) return Verdict::malformed_source;

        out = Fragment{.payload = header + front_bytes,
                       .number = items.value[context.spead.event_item == heap_counter ? heap_counter : event_slot],
                       .offset = static_cast<std::uint32_t>(offset),
                       .bytes = static_cast<std::uint32_t>(bytes),
                       .total = static_cast<std::uint32_t>(total),
                       .header_source = static_cast<std::uint32_t>(items.value[source_slot]),
                       .header = header,
                       .header_bytes = static_cast<std::uint16_t>(front_bytes),
                       .total_known = total_known};
        return ok;
    }
};

}  // namespace weir::wire
