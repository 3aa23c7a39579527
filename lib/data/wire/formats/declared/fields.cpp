// The fields that a [[format]] describes, for the view of a single packet.
#include <algorithm>

#include "wire/format_marks.hpp"

namespace weir::wire {
namespace {

/// The description's own fields, in the order of their offsets.
std::vector<HeaderField> declared_fields(std::span<const std::byte> /*head*/, std::uint32_t /*payload_bytes*/,
                                         const FormatOptions& options) {
    const DeclaredSpec& spec = options.declared;
    std::vector<HeaderField> out;
    const auto add = [&](const std::optional<DeclaredField>& field, std::string name, std::string meaning) {
        if (!field) return;
        out.push_back({.name = std::move(name),
                       .offset = field->offset,
                       .bytes = field->bytes,
                       .order = spec.byte_order,
                       .meaning = std::move(meaning),
                       .accepted = {},
                       .mask = field->mask.value_or(~std::uint64_t{0}),
                       .shift = field->shift});
    };
    add(spec.magic, "magic", "the mark of the format");
    if (spec.magic) out.back().accepted = {spec.magic_value, spec.magic_value};
    add(spec.event, "event", "the event number");
    add(spec.event_part, "event (2)", "the part of the event number that counts within the first");
    if (spec.event_part) out.back().accepted = {0, spec.event_count - 1};
    add(spec.index, "index", "the packet's place in its message, in packets");
    if (spec.index && spec.packets) out.back().accepted = {0, *spec.packets - 1};
    add(spec.offset, "offset", "the packet's place in its message, in bytes");
    add(spec.total, "total", "bytes of the whole message");
    add(spec.source, "source", "who sent it");
    add(spec.sequence, "sequence", "one more in each packet of a source");
    std::ranges::stable_sort(out, {}, &HeaderField::offset);
    return out;
}

}  // namespace

/// A description says nothing of its own: whether packets are of it, its fields say (recognise_described).
FormatMarks declared_marks() {
    return {nullptr, declared_fields};
}

}  // namespace weir::wire
