#include "probe/stream_match.hpp"

#include <algorithm>

#include "probe/source_keys.hpp"

namespace weir::probe {

std::optional<StreamMatch> stream_of_packet(const wire::Datagram& datagram, const PacketSample& sample,
                                            const Findings& findings) {
    const IpText src = IpText::source_of(datagram);
    const IpText dst = IpText::destination_of(datagram);
    const FoundStream* found = nullptr;
    for (const FoundStream& stream : findings.streams) {
        if (stream.stream.transport != config::Transport::udp) continue;
        const bool exact = std::ranges::any_of(stream.flows, [&](std::uint32_t flow) {
            const FlowKey& key = sample.flows()[flow].key;
            return key.src == src && key.dst == dst && key.dport == datagram.dport;
        });
        const bool by_port = std::ranges::find(stream.stream.udp_dst, datagram.dport) != stream.stream.udp_dst.end();
        if (exact || (by_port && found == nullptr)) found = &stream;
        if (exact) break;
    }
    if (found == nullptr) return std::nullopt;
    StreamMatch out{.name = found->stream.format, .format = &config::format_entry(found->stream), .options = {}};
    wire::FormatOptions own = found->stream.own;
    if (found->spec) own.declared = *found->spec;
    out.options = decoder_options(found->stream, own);
    out.lane = SourceKeys(found->stream).lane({src, dst, datagram.dport, no_vlan});
    return out;
}

}  // namespace weir::probe
