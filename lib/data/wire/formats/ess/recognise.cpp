#include <algorithm>
#include <set>

#include "wire/format_marks.hpp"
#include "wire/formats/ess/ess.hpp"

namespace weir::wire {
namespace {

Recognition recognise_ess(std::span<const SampledPacket> packets) {
    const FormatContext context = Ess::make_context({});
    std::size_t fit = 0;
    std::size_t heartbeats = 0;
    std::set<std::uint32_t> queues;
    std::set<std::uint32_t> types;
    for (const SampledPacket& packet : packets) {
        Fragment fragment;
        if (packet.head.size() < std::min(packet.payload_bytes, context.header_read_bytes)) continue;
        const Datagram datagram{.payload = packet.head.data(), .payload_bytes = packet.payload_bytes};
        const Verdict verdict = Ess::decode(context, datagram, fragment);
        if (verdict != ok && verdict != Verdict::control) continue;
        ++fit;
        heartbeats += verdict == Verdict::control ? 1 : 0;
        queues.insert(fragment.header_source);
        types.insert(std::to_integer<std::uint32_t>(packet.head[5]));
    }
    Recognition out;
    if (fit == 0) return out;
    out.share = static_cast<double>(fit) / static_cast<double>(packets.size());
    out.mark_bits = 40;  // cookie and length
    out.evidence.push_back("the cookie \"ESS\", and a length that is the datagram's");
    out.evidence.push_back("output queues: " + span_text(*queues.begin(), *queues.rbegin()));
    out.evidence.push_back("instrument type " + std::to_string(*types.begin()));
    if (heartbeats != 0) out.evidence.push_back(std::to_string(heartbeats) + " heartbeats");
    return out;
}

std::vector<HeaderField> ess_fields(std::span<const std::byte> head, std::uint32_t payload_bytes,
                                    const FormatOptions& /*options*/) {
    constexpr ByteOrder little = ByteOrder::little;
    std::vector<HeaderField> out{
        {"padding", 0, 1, little, "", {{0, 0}}},
        {"version", 1, 1, little, "0: 30 bytes of header, 1: 32", {{0, 1}}},
        {"cookie", 2, 3, little, "\"ESS\"", {{Ess::magic, Ess::magic}}},
        {"type", 5, 1, little, "the instrument", {}},
        {"length", 6, 2, little, "of the UDP payload, bytes", {{payload_bytes, payload_bytes}}},
        {"output queue", 8, 1, little, "source id", {{0, Ess::output_queue_max}}},
        {"time source", 9, 1, little, "state of the clocks", {}},
        {"pulse seconds", 10, 4, little, "the event number, upper half", {}},
        {"pulse ticks", 14, 4, little, "of 88.0525 MHz: the event number, lower half", {{0, Ess::ticks_max}}},
        {"previous seconds", 18, 4, little, "", {}},
        {"previous ticks", 22, 4, little, "", {{0, Ess::ticks_max}}},
        {"sequence", 26, 4, little, "one more in each packet of an output queue", {}}};
    if (head.size() > 1 && head[1] == std::byte{1}) out.push_back({"padding", 30, 2, little, "", {}});
    return out;
}

}  // namespace

FormatMarks ess_marks() {
    return {recognise_ess, ess_fields};
}

}  // namespace weir::wire
