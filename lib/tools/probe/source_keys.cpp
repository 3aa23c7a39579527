#include "probe/source_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/error.hpp"

namespace weir::probe {

SourceKeys::SourceKeys(const config::StreamConfig& stream) : by_(stream.source_by) {
    const auto add = [this](std::uint32_t key, const char* what) {
        numbers_.emplace(key, static_cast<std::uint32_t>(labels_.size()));
        labels_.push_back(fmt::format("{} {}", what, key));
    };
    switch (by_) {
        case config::SourceBy::port:
            for (const std::uint16_t port : stream.udp_dst) add(port, "udp");
            break;
        case config::SourceBy::header:
            for (const std::uint32_t id : stream.source_ids) add(id, "id");
            break;
        case config::SourceBy::address:
            for (const config::IpAddress& address : stream.src) {
                addresses_.emplace(address.text, static_cast<std::uint32_t>(labels_.size()));
                labels_.push_back(address.text);
            }
            break;
    }
}

std::optional<std::uint32_t> SourceKeys::find(const FlowKey& flow, std::uint32_t header_source) const {
    if (by_ == config::SourceBy::address) {
        const auto at = addresses_.find(flow.src.text());
        return at == addresses_.end() ? std::nullopt : std::optional(at->second);
    }
    const auto at = numbers_.find(by_ == config::SourceBy::port ? flow.dport : header_source);
    return at == numbers_.end() ? std::nullopt : std::optional(at->second);
}

std::uint8_t SourceKeys::lane(const FlowKey& flow) const {
    if (by_ != config::SourceBy::port) return 0;
    const auto at = numbers_.find(flow.dport);
    return at == numbers_.end() ? 0 : static_cast<std::uint8_t>(at->second & 1U);
}

wire::FormatOptions decoder_options(const config::StreamConfig& stream, const wire::FormatOptions& own) {
    wire::FormatOptions out = stream.own;
    out.declared = own.declared;
    out.message_bytes_max = own.message_bytes_max;
    out.sls.lane_by = stream.source_by == config::SourceBy::port ? wire::LaneBy::datagram : wire::LaneBy::row;
    out.sls.interfaces_joined = stream.source_by == config::SourceBy::header;
    return out;
}

std::uint32_t header_needed(const wire::FormatEntry& format, const wire::FormatContext& context,
                            const wire::DeclaredSpec& spec) {
    if (!format.described) return context.header_read_bytes;
    std::uint32_t end = 0;
    for (const auto* field : {&spec.event, &spec.index, &spec.offset, &spec.total, &spec.magic, &spec.source})
        if (*field) end = std::max(end, (*field)->offset + (*field)->bytes);
    return end;
}

std::vector<std::uint32_t> header_ids(const wire::FormatEntry& format, const wire::FormatOptions& own,
                                      std::span<const wire::SampledPacket> packets) {
    constexpr std::size_t ids_most = 1024;
    wire::FormatOptions options = own;
    options.sls.lane_by = wire::LaneBy::row;
    const wire::FormatContext context = format.make_context(options);
    if (!context.carries_source) return {};
    const std::uint32_t needed = header_needed(format, context, own.declared);
    std::map<std::uint32_t, std::size_t> seen;
    for (const wire::SampledPacket& packet : packets) {
        if (packet.head.size() < std::min(packet.payload_bytes, needed)) continue;
        const PaddedHead head(packet.head);
        const wire::Datagram datagram{.payload = head.data(), .payload_bytes = packet.payload_bytes};
        wire::Fragment fragment;
        wire::Verdict verdict{};
        format.decode_burst(context, std::span(&datagram, 1), &fragment, &verdict);
        if (verdict == wire::ok) ++seen[fragment.header_source];
        if (seen.size() > ids_most) return {};
    }
    std::size_t most = 0;
    for (const auto& [id, count] : seen) most = std::max(most, count);
    std::vector<std::uint32_t> out;
    for (const auto& [id, count] : seen)
        if (count > 1 || most <= 2) out.push_back(id);
    return out;
}

void forget_unused_source(FoundStream& found, const wire::FormatEntry& format) {
    if (format.source_key.empty() || found.stream.source_by == config::SourceBy::header) return;
    // spead is the only one with such a key.
    found.stream.own.spead.source_item = 0;
}

wire::Recognition recognise_declared(const wire::DeclaredSpec& spec, std::span<const wire::SampledPacket> packets) {
    wire::Recognition out;
    out.options.declared = spec;
    const wire::FormatEntry& format = wire::described_format();
    wire::FormatContext context;
    try {
        context = format.make_context(out.options);
    } catch (const core::UsageError&) {
        return out;
    }
    const std::uint32_t needed = header_needed(format, context, spec);
    std::size_t fit = 0;
    for (const wire::SampledPacket& packet : packets) {
        if (packet.head.size() < std::min(packet.payload_bytes, needed)) continue;
        const PaddedHead head(packet.head);
        const wire::Datagram datagram{.payload = head.data(), .payload_bytes = packet.payload_bytes};
        wire::Fragment fragment;
        wire::Verdict verdict{};
        format.decode_burst(context, std::span(&datagram, 1), &fragment, &verdict);
        fit += verdict == wire::ok ? 1 : 0;
    }
    if (packets.empty()) return out;
    out.share = static_cast<double>(fit) / static_cast<double>(packets.size());
    // Without a mark, a length that fits and a place within the message are what there is.
    constexpr unsigned bits_of_place = 6;
    out.mark_bits = (spec.magic ? static_cast<unsigned>(std::popcount(context.magic.mask)) : 0) +
                    (spec.payload_bytes || spec.total ? bits_of_place : 0);
    out.evidence.push_back(fmt::format("the [[format]] \"{}\" fits {} of {} packets", spec.name, fit, packets.size()));
    return out;
}

}  // namespace weir::probe
