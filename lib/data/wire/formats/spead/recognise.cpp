// SPEAD says everything in its items; what has to be found out is which of them tells the sources apart, and the size
// of heaps whose packets do not say it.
#include <algorithm>
#include <map>
#include <set>

#include "wire/format_marks.hpp"
#include "wire/formats/spead/spead.hpp"

namespace weir::wire {
namespace {

struct SpeadItems {
    std::uint32_t address_bits = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> items;  // id and value of the immediate ones, in order

    [[nodiscard]] std::optional<std::uint64_t> value(std::uint64_t id) const {
        const auto at = std::ranges::find(items, id, &std::pair<std::uint64_t, std::uint64_t>::first);
        return at == items.end() ? std::nullopt : std::optional(at->second);
    }
};

/// Nothing if it is no SPEAD packet, or its items are not all in `head`.
std::optional<SpeadItems> items_of(std::span<const std::byte> head) {
    if (head.size() < Spead::header_bytes || load_be<std::uint16_t>(head.data()) != Spead::magic) return std::nullopt;
    const std::uint32_t widths = load_be<std::uint16_t>(head.data() + 2);
    if (widths != 0x0206 && widths != 0x0305) return std::nullopt;
    const std::uint32_t count = load_be<std::uint16_t>(head.data() + 6);
    if (count > Spead::items_max || Spead::header_bytes + count * Spead::item_bytes > head.size()) return std::nullopt;
    SpeadItems out{(widths & 0xff) * 8, {}};
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto item = load_be<std::uint64_t>(head.data() + Spead::header_bytes + i * Spead::item_bytes);
        if ((item & Spead::immediate) == 0) continue;
        out.items.emplace_back((item & ~Spead::immediate) >> out.address_bits,
                               item & ((std::uint64_t{1} << out.address_bits) - 1));
    }
    return out;
}

/// Values of an item of the sender's own: how many there are, and whether each flow has few of them.
using ItemValues = std::map<std::uint64_t, std::set<std::uint64_t>>;

/// The item that says the source: of the sender's own the one with the most values that are few all the same.
std::uint32_t source_item_of(const ItemValues& values, const std::map<std::uint64_t, std::size_t>& seen,
                             std::size_t packets, std::size_t heaps) {
    constexpr std::size_t sources_most = 256;
    std::uint64_t best = 0;
    std::size_t best_count = 0;
    for (const auto& [id, found] : values) {
        const bool everywhere = seen.at(id) == packets;
        // As many values as heaps: that counts.
        const bool counts = found.size() * 2 > heaps && found.size() > 2;
        if (!everywhere || counts || found.size() > sources_most || *found.rbegin() >> 32U != 0) continue;
        if (found.size() > best_count) {
            best = id;
            best_count = found.size();
        }
    }
    return static_cast<std::uint32_t>(best);
}

Recognition recognise_spead(std::span<const SampledPacket> packets) {
    ItemValues values;
    std::map<std::uint64_t, std::size_t> seen;
    std::set<std::uint32_t> widths;
    std::set<std::uint64_t> heaps;
    std::size_t fit = 0;
    std::size_t control = 0;
    std::size_t sized = 0;
    std::uint64_t end_max = 0;
    std::uint64_t size_max = 0;
    for (const SampledPacket& packet : packets) {
        const auto found = items_of(packet.head);
        if (!found) continue;
        ++fit;
        widths.insert(found->address_bits);
        if (found->value(Spead::stream_control)) {
            ++control;
            continue;
        }
        if (const auto heap = found->value(Spead::heap_counter)) heaps.insert(*heap);
        if (const auto size = found->value(Spead::heap_size)) {
            ++sized;
            size_max = std::max(size_max, *size);
        }
        end_max = std::max(
            end_max, found->value(Spead::heap_offset).value_or(0) + found->value(Spead::payload_length).value_or(0));
        std::set<std::uint64_t> once;
        for (const auto& [id, value] : found->items) {
            if (id <= Spead::stream_control || !once.insert(id).second) continue;
            values[id].insert(value);
            ++seen[id];
        }
    }
    Recognition out;
    if (fit == 0) return out;
    out.share = static_cast<double>(fit) / static_cast<double>(packets.size());
    out.mark_bits = 32;
    out.evidence.push_back("magic 0x5304 and the widths of SPEAD-64-" + std::to_string(*widths.rbegin()));
    if (widths.size() == 1 && widths.contains(40)) out.options.spead.address_bits = 40;
    out.options.spead.source_item = source_item_of(values, seen, fit - control, heaps.size());
    if (sized == 0 && end_max != 0 && end_max <= message_bytes_max_default) {
        out.options.spead.heap_bytes = static_cast<std::uint32_t>(end_max);
        out.doubts.push_back("no packet says how long its heap is: " + std::to_string(end_max) +
                             " bytes is as far as any reaches");
    }
    if (size_max > message_bytes_max_default && size_max >> 32U == 0)
        out.options.message_bytes_max = static_cast<std::uint32_t>(size_max);
    if (control != 0) out.evidence.push_back(std::to_string(control) + " packets of stream control");
    return out;
}

std::vector<HeaderField> spead_fields(std::span<const std::byte> head, std::uint32_t payload_bytes,
                                      const FormatOptions& options) {
    constexpr ByteOrder big = ByteOrder::big;
    std::vector<HeaderField> out{{"magic", 0, 2, big, "", {{Spead::magic, Spead::magic}}},
                                 {"item id width", 2, 1, big, "bytes: 2 or 3", {{2, 3}}},
                                 {"address width", 3, 1, big, "bytes: 6 or 5", {{5, 6}}},
                                 {"reserved", 4, 2, big, "", {}},
                                 {"items", 6, 2, big, "that follow, 8 bytes each", {{0, Spead::items_max}}}};
    const std::uint32_t address_bits = head.size() > 3 && head[3] == std::byte{5} ? 40 : 48;
    const std::uint64_t address_mask = (std::uint64_t{1} << address_bits) - 1;
    const auto count = std::min<std::uint64_t>(out.back().value(head).value_or(0), Spead::items_max);
    for (std::uint32_t i = 0; i < count; ++i) {
        HeaderField field{"", Spead::header_bytes + i * Spead::item_bytes, 8, big, "", {}};
        const auto raw = field.value(head);
        if (!raw) break;
        const std::uint64_t id = (*raw & ~Spead::immediate) >> address_bits;
        static constexpr std::array names{"null",           "heap counter", "heap size",     "heap offset",
                                          "payload length", "descriptor",   "stream control"};
        field.name = id < names.size() ? names[id] : "item " + std::to_string(id);
        field.meaning = (*raw & Spead::immediate) == 0 ? "an address in the heap" : "";
        if (id == options.spead.event_item) field.meaning = "the event number";
        if (id != Spead::null && id == options.spead.source_item) field.meaning = "source id";
        if (id == Spead::payload_length && (*raw & Spead::immediate) != 0) {
            const std::uint64_t front = Spead::header_bytes + count * Spead::item_bytes;
            field.accepted = {0, payload_bytes - std::min<std::uint64_t>(payload_bytes, front)};
        }
        field.mask = address_mask;
        out.push_back(std::move(field));
    }
    return out;
}

}  // namespace

FormatMarks spead_marks() {
    return {recognise_spead, spead_fields};
}

}  // namespace weir::wire
