#include <algorithm>
#include <limits>
#include <set>

#include "wire/format_marks.hpp"
#include "wire/formats/ejfat/ejfat.hpp"

namespace weir::wire {
namespace {

Recognition recognise_ejfat(std::span<const SampledPacket> packets) {
    FormatOptions widest;
    widest.message_bytes_max = std::numeric_limits<std::uint32_t>::max();
    const FormatContext context = Ejfat::make_context(widest);
    std::size_t fit = 0;
    std::size_t balanced = 0;
    std::size_t control = 0;
    std::uint32_t total_max = 0;
    std::set<std::uint32_t> ids;
    std::set<std::uint32_t> versions;
    for (const SampledPacket& packet : packets) {
        Fragment fragment;
        if (packet.head.size() < std::min(packet.payload_bytes, context.header_read_bytes)) continue;
        const Datagram datagram{.payload = packet.head.data(), .payload_bytes = packet.payload_bytes};
        const Verdict verdict = Ejfat::decode(context, datagram, fragment);
        if (verdict == Verdict::control) ++control;
        if (verdict != ok) continue;
        ++fit;
        balanced += load_be<std::uint16_t>(packet.head.data()) == Ejfat::lb_magic ? 1 : 0;
        versions.insert(std::to_integer<std::uint32_t>(*fragment.header) >> 4U);
        total_max = std::max(total_max, fragment.total);
        ids.insert(fragment.header_source);
    }
    Recognition out;
    if (fit == 0) return out;
    out.share = static_cast<double>(fit + control) / static_cast<double>(packets.size());
    out.mark_bits = 24;  // the first two bytes, and an offset and a length within the total
    out.evidence.push_back("a reassembly header (version " + span_text(*versions.begin(), *versions.rbegin()) +
                           ") whose offset and length lie within the event's bytes");
    if (balanced != 0) out.evidence.push_back("a load balancer's header (\"LB\") in front of it");
    if (control != 0) out.evidence.push_back(std::to_string(control) + " messages for the load balancer (\"LC\")");
    out.evidence.push_back("data ids: " + std::to_string(ids.size()));
    if (total_max > message_bytes_max_default) out.options.message_bytes_max = total_max;
    return out;
}

std::vector<HeaderField> ejfat_fields(std::span<const std::byte> head, std::uint32_t payload_bytes,
                                      const FormatOptions& /*options*/) {
    std::vector<HeaderField> out;
    std::uint32_t at = 0;
    const auto add = [&](std::string name, std::uint32_t offset, std::uint32_t bytes, std::string meaning,
                         std::optional<std::pair<std::uint64_t, std::uint64_t>> accepted = {}) {
        out.push_back({std::move(name), at + offset, bytes, ByteOrder::big, std::move(meaning), accepted});
    };
    if (head.size() >= 2 && load_be<std::uint16_t>(head.data()) == Ejfat::lb_magic) {
        add("LB magic", 0, 2, "\"LB\"", {{Ejfat::lb_magic, Ejfat::lb_magic}});
        add("LB version", 2, 1, "", {{2, 3}});
        add("LB next protocol", 3, 1, "1: a reassembly header follows", {{1, 1}});
        add("slot select", 4, 2, "version 3: low bits of the tick");
        add("entropy", 6, 2, "which port of the receiver");
        add("tick", 8, 8, "the event number, for the load balancer");
        at = Ejfat::lb_header_bytes;
    }
    add("version", 0, 2, "1 and 2 have the same layout", {{1, 2}});
    out.back().mask = 0xf000;
    out.back().shift = 12;
    add("reserved", 0, 2, "", {{0, 0}});
    out.back().mask = 0x0fff;
    add("data id", 2, 2, "source id");
    const std::uint32_t bytes = payload_bytes - std::min(payload_bytes, at + Ejfat::re_header_bytes);
    const HeaderField total{"", at + 8, 4, ByteOrder::big, "", {}};
    const std::uint64_t total_bytes = total.value(head).value_or(0);
    add("buffer offset", 4, 4, "of this segment, bytes",
        {{0, total_bytes - std::min<std::uint64_t>(bytes, total_bytes)}});
    add("buffer length", 8, 4, "bytes of the whole event", {{bytes, std::numeric_limits<std::uint32_t>::max()}});
    add("event number", 12, 8, "the event number");
    return out;
}

}  // namespace

FormatMarks ejfat_marks() {
    return {recognise_ejfat, ejfat_fields};
}

}  // namespace weir::wire
