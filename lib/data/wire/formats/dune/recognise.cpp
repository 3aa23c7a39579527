// DUNE packets have no mark but a length that fits; their sequence numbers have to count, too.
#include <map>

#include "wire/format_marks.hpp"
#include "wire/formats/dune/dune.hpp"

namespace weir::wire {
namespace {

Recognition recognise_dune(std::span<const SampledPacket> packets) {
    constexpr std::uint32_t sequence_mask = (1U << Dune::sequence_bits) - 1;
    constexpr std::uint32_t step_max = 16;  // packets that were lost one after the other
    const FormatContext context = Dune::make_context({});
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> last;  // by flow and source
    std::size_t fit = 0;
    std::size_t steps = 0;
    std::size_t counted = 0;
    for (const SampledPacket& packet : packets) {
        Fragment fragment;
        if (packet.head.size() < Dune::header_bytes || packet.payload_bytes < Dune::header_bytes + Dune::word_bytes)
            continue;
        const Datagram datagram{.payload = packet.head.data(), .payload_bytes = packet.payload_bytes};
        if (Dune::decode(context, datagram, fragment) != ok) continue;
        ++fit;
        const auto [at, first] = last.try_emplace({packet.flow, fragment.header_source}, fragment.sequence);
        if (first) continue;
        ++steps;
        const std::uint32_t step = (fragment.sequence - at->second) & sequence_mask;
        if (step - 1 < step_max) ++counted;
        at->second = fragment.sequence;
    }
    Recognition out;
    // Nearly as many sources as packets: that is no source id, and nothing counts.
    if (packets.empty() || fit == 0 || counted * 2 < steps || last.size() * 2 > fit + 1) return out;
    out.share = static_cast<double>(fit) / static_cast<double>(packets.size());
    out.mark_bits = steps == 0 ? 8 : 18;  // of the block length, and of the sequence number
    out.evidence.push_back("the block length in the first word is that of the datagram");
    if (steps != 0)
        out.evidence.push_back("a 12-bit sequence number counts the packets of " + std::to_string(last.size()) +
                               (last.size() == 1 ? " source" : " sources"));
    return out;
}

std::vector<HeaderField> dune_fields(std::span<const std::byte> /*head*/, std::uint32_t payload_bytes,
                                     const FormatOptions& /*options*/) {
    constexpr auto bits = [](std::uint32_t from, std::uint32_t count) { return ((1ULL << count) - 1) << from; };
    const std::uint64_t words =
        payload_bytes < Dune::header_bytes ? 0 : (payload_bytes - Dune::header_bytes) / Dune::word_bytes;
    const auto in_first_word = [&](std::string name, std::uint32_t from, std::uint32_t count, std::string meaning) {
        return HeaderField{std::move(name), 0, 8, ByteOrder::little, std::move(meaning), {}, bits(from, count), from};
    };
    std::vector<HeaderField> out{in_first_word("version", 0, 6, ""),
                                 in_first_word("detector", 6, 6, "with crate, slot and stream the source id"),
                                 in_first_word("crate", 12, 10, ""),
                                 in_first_word("slot", 22, 4, ""),
                                 in_first_word("stream", 26, 8, ""),
                                 in_first_word("sequence", 40, 12, "one more in each packet of a source"),
                                 in_first_word("block length", 52, 12, "8-byte words after the header")};
    out.back().accepted = {words, words + 2};
    out.push_back({"timestamp", 8, 8, ByteOrder::little, "the event number", {}});
    return out;
}

}  // namespace

FormatMarks dune_marks() {
    return {recognise_dune, dune_fields};
}

}  // namespace weir::wire
