#include "plan/setup.hpp"

#include <algorithm>
#include <span>

#include "plan/stream_rules.hpp"
#include "wire/formats/declared/declared.hpp"

namespace weir::plan {

namespace {

roce::NumberBy number_by(config::EventBy event) {
    switch (event) {
        case config::EventBy::immediate:
            return roce::NumberBy::immediate;
        case config::EventBy::count:
            return roce::NumberBy::count;
        case config::EventBy::arrival:
            return roce::NumberBy::arrival;
        case config::EventBy::format:
            break;
    }
    return roce::NumberBy::format;
}

steer::Rule rule_of(const config::StreamConfig& stream, std::size_t stream_index) {
    steer::Rule rule;
    rule.stream = static_cast<std::uint16_t>(stream_index);
    rule.source = stream.first_source;
    rule.mark = stream.mark;
    for (std::size_t i = 0; i < stream.src.size(); ++i) {
        const config::IpAddress& address = stream.src[i];
        address.v6 ? rule.ipv6_src.push_back(address.bytes) : rule.src.push_back(address.v4());
        (address.v6 ? rule.ipv6_src_places : rule.src_places).push_back(static_cast<std::uint32_t>(i));
    }
    for (const config::IpAddress& address : stream.dst)
        address.v6 ? rule.ipv6_dst.push_back(address.bytes) : rule.dst.push_back(address.v4());
    return rule;
}

}  // namespace

std::vector<stages::StreamRuntime> make_streams(const config::RunConfig& config) {
    std::vector<stages::StreamRuntime> streams;
    for (const config::StreamConfig& from : config.streams) {
        stages::StreamRuntime stream;
        stream.format = &format_entry(from);
        stream.context = stream.format->make_context(format_options(config, from));
        if (stream.format->name == wire::Declared::name) {
            wire::FormatOptions options = format_options(config, from);
            const bool little = options.declared.byte_order == wire::ByteOrder::little;
            options.declared.byte_order = little ? wire::ByteOrder::big : wire::ByteOrder::little;
            stream.other_byte_order = stream.format->make_context(options);
        }
        stream.lane_by_port = stream.context.sls.lane_by == wire::LaneBy::datagram;
        stream.roce = from.transport == config::Transport::roce;
        stream.check_icrc = from.icrc == config::IcrcMode::check;
        stream.source_in_header = from.source_by == config::SourceBy::header;
        stream.any_sender = stream.roce || from.senders == config::Senders::any;
        stream.first_source = from.first_source;
        stream.source_count = from.source_count;
        stream.source_ids = core::NumberIndex(from.source_ids);
        stream.numbered_by_arrival = !stream.roce && from.event == config::EventBy::arrival;
        streams.push_back(std::move(stream));
    }
    return streams;
}

std::vector<std::uint16_t> make_owners(const config::RunConfig& config, const Placement& placement) {
    std::vector<std::uint16_t> owners(config.sources.size());
    const auto near_of = [&](std::uint32_t port) {
        return port < placement.near.size() ? std::span(placement.near[port]) : std::span<const std::uint32_t>();
    };
    // Every port's sources are spread over all rx lcores, as if there were no ports; but where lcores are on the node
    // of its device, over those alone.
    std::vector<std::size_t> place(config.sources.size());
    std::vector<std::size_t> count(config.ports.size());
    for (std::size_t i = 0; i < owners.size(); ++i) place[i] = count[config.streams[config.sources[i].stream].port]++;
    const auto share = [&](std::size_t source, std::uint32_t port) {
        if (const auto near = near_of(port); !near.empty()) return near[place[source] * near.size() / count[port]];
        return static_cast<std::uint32_t>(source * placement.rx.size() / config.sources.size());
    };
    for (std::size_t i = 0; i < owners.size(); ++i) {
        const config::StreamConfig& stream = config.streams[config.sources[i].stream];
        const std::size_t source = stream.source_by == config::SourceBy::port ? i : stream.first_source;
        owners[i] = static_cast<std::uint16_t>(share(source, stream.port));
    }
    own_by_rules(config, placement, owners);
    return owners;
}

steer::Steering make_steering(const config::RunConfig& config, std::uint32_t port,
                              const std::vector<std::uint16_t>& owners) {
    std::vector<steer::Rule> udp;
    std::vector<steer::Rule> roce;
    for (std::size_t i = 0; i < config.streams.size(); ++i) {
        const config::StreamConfig& stream = config.streams[i];
        if (stream.port != port) continue;
        const bool is_roce = stream.transport == config::Transport::roce;
        const std::size_t keys = is_roce ? stream.qp.size() : stream.udp_dst.size();
        for (std::size_t k = 0; k < keys; ++k) {
            steer::Rule rule = rule_of(stream, i);
            rule.key = is_roce ? stream.qp[k] : stream.udp_dst[k];
            rule.source_by_address = stream.source_by == config::SourceBy::address;
            if (is_roce || stream.source_by == config::SourceBy::port) rule.source += static_cast<std::uint32_t>(k);
            rule.owner = owners[rule.source];
            (is_roce ? roce : udp).push_back(std::move(rule));
        }
    }
    return steer::Steering(std::move(udp), std::move(roce));
}

std::vector<stages::SourceGeometry> make_geometry(const config::RunConfig& config,
                                                  const std::vector<stages::StreamRuntime>& streams) {
    std::vector<stages::SourceGeometry> geometry;
    for (const config::SourceConfig& source : config.sources) {
        const stages::StreamRuntime& stream = streams[source.stream];
        stages::SourceGeometry known;
        if (stream.roce) {
            known.message_bytes = config.streams[source.stream].message_bytes.value_or(0);
        } else {
            known.message_bytes = stream.context.message_bytes;
            known.packet_payload_bytes = stream.context.payload_bytes;
            known.sequenced = stream.sequenced();
            known.message_packets = stream.context.packets_per_message;
            known.lane_bytes = stream.context.sls.lane_packets * stream.context.payload_bytes;
        }
        geometry.push_back(known);
    }
    return geometry;
}

std::vector<std::uint8_t> make_in_sequence(const config::RunConfig& config,
                                           const std::vector<stages::StreamRuntime>& streams) {
    std::vector<std::uint8_t> ordered;
    for (const config::SourceConfig& source : config.sources) {
        const stages::StreamRuntime& stream = streams[source.stream];
        ordered.push_back(!stream.roce && stream.context.in_sequence ? 1 : 0);
    }
    if (std::ranges::none_of(ordered, [](std::uint8_t one) { return one != 0; })) ordered.clear();
    return ordered;
}

std::vector<std::uint8_t> make_number_bits(const config::RunConfig& config,
                                           const std::vector<stages::StreamRuntime>& streams) {
    std::vector<std::uint8_t> bits;
    for (const config::SourceConfig& source : config.sources) {
        const config::EventBy event = config.streams[source.stream].event;
        std::uint8_t width = 64;
        if (event == config::EventBy::immediate) width = 32;
        if (event == config::EventBy::format) width = streams[source.stream].context.number_bits;
        bits.push_back(width);
    }
    return bits;
}

std::vector<roce::Listener::SourceConfig> make_roce_sources(const config::RunConfig& config,
                                                            const std::vector<stages::StreamRuntime>& streams,
                                                            const std::vector<std::uint16_t>& owners,
                                                            std::uint16_t owner) {
    std::vector<roce::Listener::SourceConfig> sources;
    for (std::uint32_t id = 0; id < config.sources.size(); ++id) {
        const config::StreamConfig& stream = config.streams[config.sources[id].stream];
        if (stream.transport != config::Transport::roce || owners[id] != owner) continue;
        roce::Listener::SourceConfig source;
        source.source = id;
        source.number_by = number_by(stream.event);
        source.message_bytes = stream.message_bytes.value_or(0);
        source.max_message_bytes =
            stream.max_message_bytes > 0 ? stream.max_message_bytes : wire::message_bytes_max_default;
        source.in_order = stream.roce.service != roce::Service::listen;
        if (!stream.roce.psn.empty()) source.first_psn = stream.roce.psn[id - stream.first_source];
        source.format = streams[config.sources[id].stream].format;
        source.context = streams[config.sources[id].stream].context;
        sources.push_back(source);
    }
    return sources;
}

roce::QueuePair make_queue_pair(const config::RunConfig& config, std::uint32_t source) {
    const config::StreamConfig& stream = config.streams[config.sources[source].stream];
    const config::RoceConfig& from = stream.roce;
    const std::uint32_t place = source - stream.first_source;
    roce::QueuePair out;
    out.service = from.service;
    if (!from.peers.empty()) {
        const config::RoceConfig::Peer& peer = from.peers[place];
        out.peer_qp = peer.qp;
        if (peer.address.has_value())
            out.peer_address =
                wire::roce_address(reinterpret_cast<const std::byte*>(peer.address->bytes.data()), peer.address->v6);
    }
    if (!from.psn.empty()) out.psn = from.psn[place];
    out.path_mtu = from.path_mtu;
    out.pkey = static_cast<std::uint16_t>(from.pkey);
    out.qkey = from.qkey;
    out.congestion_interval_us = from.cnp_interval_us;
    out.rnr_timer = roce::rnr_timer_code(from.rnr_timer_us);
    out.ack_every = from.ack_every;
    out.message_bytes = stream.message_bytes.value_or(0);
    out.max_message_bytes = stream.max_message_bytes > 0 ? stream.max_message_bytes : wire::message_bytes_max_default;
    out.needs_immediate = stream.event == config::EventBy::immediate;
    for (const config::RoceConfig::Region& region : from.regions)
        if (!region.qp || *region.qp == stream.qp[place]) out.regions[out.region_count++] = region.region;
    return out;
}

std::vector<roce::Responder::SourceConfig> make_responder_sources(const config::RunConfig& config,
                                                                  const std::vector<std::uint16_t>& owners,
                                                                  std::uint16_t owner) {
    std::vector<roce::Responder::SourceConfig> sources;
    for (std::uint32_t id = 0; id < config.sources.size(); ++id) {
        const config::StreamConfig& stream = config.streams[config.sources[id].stream];
        if (stream.transport != config::Transport::roce || stream.roce.service == roce::Service::listen ||
            owners[id] != owner)
            continue;
        sources.push_back({id, make_queue_pair(config, id), stream.exchange == config::Exchange::none});
    }
    return sources;
}

std::vector<std::uint16_t> answering_lcores(const config::RunConfig& config, std::uint32_t port,
                                            const std::vector<std::uint16_t>& owners) {
    std::vector<std::uint16_t> lcores;
    for (std::uint32_t id = 0; id < config.sources.size(); ++id) {
        const config::StreamConfig& stream = config.streams[config.sources[id].stream];
        if (stream.port == port && stream.transport == config::Transport::roce &&
            stream.roce.service != roce::Service::listen)
            lcores.push_back(owners[id]);
    }
    std::ranges::sort(lcores);
    lcores.erase(std::unique(lcores.begin(), lcores.end()), lcores.end());
    return lcores;
}

}  // namespace weir::plan
