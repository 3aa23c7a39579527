// A RunConfig as TOML that reads back the same, and as JSON for the report and the manifest.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/printer.hpp"
#include "config/run_config.hpp"

namespace weir::pipeline {

using namespace detail;

namespace detail {

std::string field_text(const wire::DeclaredField& field, std::string_view more) {
    std::string out = fmt::format("{{ offset = {}, bytes = {}", field.offset, field.bytes);
    // Signed, because that is what a TOML integer is.
    if (field.mask) out += fmt::format(", mask = {}", static_cast<std::int64_t>(*field.mask));
    if (field.shift != 0) out += fmt::format(", shift = {}", field.shift);
    return out + std::string(more) + " }";
}

nlohmann::json field_json(const wire::DeclaredField& field) {
    nlohmann::json out{{"offset", field.offset}, {"bytes", field.bytes}};
    if (field.mask) out["mask"] = *field.mask;
    if (field.shift != 0) out["shift"] = field.shift;
    return out;
}

}  // namespace detail

namespace {

std::string integer_list(const std::vector<std::uint32_t>& values) {
    constexpr std::size_t run_min = 4;  // shorter runs read better one by one
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < values.size();) {
        std::size_t end = i + 1;
        while (end < values.size() && values[end] == values[end - 1] + 1) ++end;
        if (end - i >= run_min) {
            parts.push_back(fmt::format("\"{}-{}\"", values[i], values[end - 1]));
            i = end;
        } else {
            parts.push_back(std::to_string(values[i++]));
        }
    }
    return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::string hex_list(const std::vector<std::uint32_t>& values) {
    std::vector<std::string> parts;
    parts.reserve(values.size());
    for (const std::uint32_t value : values) parts.push_back(fmt::format("{:#x}", value));
    return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::string address_list(const std::vector<IpAddress>& addresses) {
    std::vector<std::string> parts;
    parts.reserve(addresses.size());
    for (const IpAddress& address : addresses) parts.push_back(in_quotes(address.text));
    return fmt::format("[{}]", fmt::join(parts, ", "));
}

void print_options(Printer& out, const port::PortOptions& options) {
    const port::PortOptions defaults;
    const auto yes_no = [&](std::string_view key, bool value, bool fallback) {
        out.line(key, value ? "true" : "false", value == fallback);
    };
    yes_no("promiscuous", options.promiscuous, defaults.promiscuous);
    out.number("tx_descriptors", options.tx_descriptors, defaults.tx_descriptors);
    out.number("link_wait_s", options.link_wait_s, defaults.link_wait_s);
    out.choice("flow_control", flow_control_names, options.flow_control, defaults.flow_control);
    if (!options.pfc.empty()) out.line("pfc", integer_list(options.pfc));
    yes_no("flow_control_required", options.flow_control_required, defaults.flow_control_required);
    out.choice("timestamps", timestamps_names, options.timestamps, defaults.timestamps);
    out.choice("checksums", checksums_names, options.checksums, defaults.checksums);
}

void print_port(Printer& out, const PortConfig& port) {
    const PortConfig defaults;
    out.header("[[port]]");
    if (!port.profile.file.empty()) out.comment("with the values of " + in_quotes(port.profile.file));
    out.line("name", in_quotes(port.name));
    out.line("device", in_quotes(port.device));
    if (!port.args.empty()) out.line("args", in_quotes(port.args));
    out.number("queues", port.queues, defaults.queues);
    out.number("mtu", port.mtu, defaults.mtu);
    out.number("rx_descriptors", port.rx_descriptors, defaults.rx_descriptors);
    if (port.mbuf_bytes != 0)
        out.number("mbuf_bytes", port.mbuf_bytes, 0);
    else
        out.comment("mbuf_bytes: as the MTU needs (default)");
    if (!port.address.empty()) out.line("address", in_quotes(port.address));
    if (!port.flows.empty())
        out.line("flows", in_quotes(port.flows));
    else
        out.comment("flows: weir writes the rules itself (default): `weir flows print` shows them");
    out.choice("steer", steer_names, port.steer, defaults.steer);
    out.choice("on_refusal", refusal_names, port.on_refusal, defaults.on_refusal);
    out.line("isolated", port.isolated ? "true" : "false", port.isolated == defaults.isolated);
    print_options(out, port.options);
}

void print_udp(Printer& out, const StreamConfig& stream) {
    out.line("udp_dst", integer_list({stream.udp_dst.begin(), stream.udp_dst.end()}));
    out.choice("source_by", source_by_names, stream.source_by, SourceBy::port);
    if (!stream.source_ids.empty()) out.line("source_ids", integer_list(stream.source_ids));
}

std::string region_text(const RoceConfig::Region& from) {
    const roce::Region& region = from.region;
    std::string text = fmt::format("{{ va = {:#x}, bytes = {}, rkey = {:#x}", region.va,
                                   in_quotes(format_size(region.bytes)), region.rkey);
    if (region.count > 1)
        text += fmt::format(", count = {}, stride = {}", region.count, in_quotes(format_size(region.stride)));
    else if (region.stride != region.bytes)
        text += fmt::format(", stride = {}", in_quotes(format_size(region.stride)));
    if (!region.remote_write) text += ", write = false";
    if (region.backed) text += ", backing = \"memory\"";
    if (from.qp) text += fmt::format(", qp = {:#x}", *from.qp);
    return text + " }";
}

template <class List, class Text>
std::string array_of(const List& list, Text text) {
    std::string out;
    for (const auto& entry : list) out += (out.empty() ? "[" : ", ") + text(entry);
    return out + "]";
}

void print_responder(Printer& out, const RoceConfig& roce) {
    const RoceConfig defaults;
    out.choice("service", service_names, roce.service, defaults.service);
    if (!roce.psn.empty()) out.line("psn", hex_list(roce.psn));
    if (roce.service == roce::Service::listen) return;
    if (!roce.peers.empty())
        out.line("peer", array_of(roce.peers, [](const RoceConfig::Peer& peer) {
                     return fmt::format("{{ qp = {:#x}{} }}", peer.qp,
                                        peer.address ? ", address = " + in_quotes(peer.address->text) : "");
                 }));
    if (roce.path_mtu != 0)
        out.line("path_mtu", std::to_string(roce.path_mtu));
    else
        out.comment("path_mtu: as the first message of several packets has it (default)");
    out.line("pkey", fmt::format("{:#06x}", roce.pkey), roce.pkey == defaults.pkey);
    out.number("cnp_interval_us", roce.cnp_interval_us, defaults.cnp_interval_us);
    if (roce.service == roce::Service::ud) out.line("qkey", fmt::format("{:#010x}", roce.qkey));
    if (roce.service == roce::Service::rc) {
        out.number("rnr_timer_us", roce.rnr_timer_us, defaults.rnr_timer_us);
        out.number("ack_every", roce.ack_every, defaults.ack_every);
    }
    if (!roce.regions.empty()) out.line("region", array_of(roce.regions, region_text));
}

void print_roce(Printer& out, const StreamConfig& stream) {
    out.line("qp", hex_list(stream.qp));
    out.choice("icrc", icrc_names, stream.icrc, IcrcMode::check);
    if (stream.message_bytes) out.line("message_bytes", in_quotes(format_size(*stream.message_bytes)));
    print_responder(out, stream.roce);
    out.choice("exchange", exchange_names, stream.exchange, Exchange::none);
    if (stream.exchange != Exchange::none)
        out.line(
            "listen", in_quotes(fmt::format("{}:{}", stream.listen_address, stream.listen_port)),
            stream.listen_address == StreamConfig{}.listen_address && stream.listen_port == StreamConfig{}.listen_port);
}

bool is_module(const StreamConfig& stream) {
    return stream.format == "jungfrau" || stream.format == "moench";
}

void print_detector(Printer& out, const StreamConfig& stream) {
    if (is_module(stream)) out.number("interfaces", stream.interfaces, 1);
    if (stream.bit_depth) out.number("bit_depth", *stream.bit_depth, 16);
    if (stream.tengiga) out.line("tengiga", *stream.tengiga ? "true" : "false", *stream.tengiga);
    if (stream.rows)
        out.line("rows", std::to_string(*stream.rows));
    else if (is_module(stream) || stream.format == "eiger")
        out.comment("rows: all (default)");
}

void print_spead(Printer& out, const wire::SpeadOptions& spead) {
    const wire::SpeadOptions defaults;
    if (spead.address_bits.has_value())
        out.line("address_bits", std::to_string(*spead.address_bits));
    else
        out.comment("address_bits: 48 or 40, as each packet says (default)");
    if (spead.event_item == defaults.event_item)
        out.comment("event_item: the heap counter (default)");
    else
        out.line("event_item", fmt::format("{:#06x}", spead.event_item));
    if (spead.source_item != 0) out.line("source_item", fmt::format("{:#06x}", spead.source_item));
    if (spead.heap_bytes != 0)
        out.line("heap_bytes", in_quotes(format_size(spead.heap_bytes)));
    else
        out.comment("heap_bytes: as the packets say (default)");
}

void print_stream(Printer& out, const RunConfig& run, const StreamConfig& stream) {
    out.header("[[stream]]");
    if (stream.source_count == 1)
        out.comment(fmt::format("source {}", stream.first_source));
    else
        out.comment(fmt::format("sources {}..{}", stream.first_source, stream.first_source + stream.source_count - 1));
    out.line("port", in_quotes(run.ports[stream.port].name));
    out.choice("transport", transport_names, stream.transport, Transport{0xff});
    out.line("format", in_quotes(stream.format));
    print_detector(out, stream);
    if (stream.format == "ess") out.number("packets_per_pulse", stream.packets_per_pulse, 1);
    if (stream.format == "spead") print_spead(out, stream.spead);
    if (stream.transport == Transport::udp)
        print_udp(out, stream);
    else
        print_roce(out, stream);
    if (!stream.src.empty()) out.line("src", address_list(stream.src));
    if (!stream.dst.empty()) out.line("dst", address_list(stream.dst));
    if (stream.mark) out.line("mark", std::to_string(*stream.mark));
    const bool bare = stream.format == "message";
    out.choice("event", event_by_names, stream.event, bare ? EventBy::immediate : EventBy::format);
    out.size("max_message_bytes", stream.max_message_bytes, 16U << 20);
}

void print_format(Printer& out, const wire::DeclaredSpec& spec) {
    out.header("[[format]]");
    out.line("name", in_quotes(spec.name));
    out.choice("byte_order", byte_order_names, spec.byte_order, wire::ByteOrder::little);
    out.line("header_bytes", std::to_string(spec.header_bytes));
    if (spec.event)
        out.line("event",
                 field_text(*spec.event, spec.wrap_bits ? fmt::format(", wrap_bits = {}", *spec.wrap_bits) : ""));
    if (spec.index) out.line("index", field_text(*spec.index));
    if (spec.offset) out.line("offset", field_text(*spec.offset));
    if (spec.payload_bytes) out.line("payload_bytes", std::to_string(*spec.payload_bytes));
    if (spec.packets) out.line("packets", std::to_string(*spec.packets));
    if (spec.total) out.line("total", field_text(*spec.total));
    if (spec.total_bytes) out.line("total", std::to_string(*spec.total_bytes));
    if (spec.magic)
        out.line("magic",
                 field_text(*spec.magic, fmt::format(", value = {}", static_cast<std::int64_t>(spec.magic_value))));
    if (spec.source) out.line("source", field_text(*spec.source));
}

std::string stride_text(const EventsConfig& events) {
    if (!events.stride) return in_quotes("learn");
    return *events.stride == EventsConfig::stride_sparse ? in_quotes("sparse") : std::to_string(*events.stride);
}

void print_events(Printer& out, const EventsConfig& events) {
    const EventsConfig defaults;
    out.header("[events]");
    out.line("sources", std::to_string(events.sources));
    out.size("memory", events.memory_bytes, defaults.memory_bytes);
    if (events.window)
        out.line("window", std::to_string(*events.window));
    else
        out.comment("window: as many open events as the memory holds (default)");
    out.number("timeout_ms", events.timeout_ms, defaults.timeout_ms);
    out.number("ip_fragment_timeout_ms", events.ip_fragment_timeout_ms, defaults.ip_fragment_timeout_ms);
    out.choice("incomplete", incomplete_names, events.incomplete, defaults.incomplete);
    out.choice("assembly", assembly_names, events.assembly, defaults.assembly);
    out.line("overload", in_quotes(overload_text(events)), events.overload == defaults.overload);
    out.number("horizon", events.horizon, defaults.horizon);
    out.line("stride", stride_text(events), !events.stride);
}

void print_outputs(Printer& out, const RunConfig& config) {
    print_reducers(out, config.reduce);
    for (const SinkConfig& sink : config.sinks) print_sink(out, sink);
}

void print_lcores(Printer& out, const LcoresConfig& lcores) {
    out.header("[lcores]");
    const auto list = [&out](std::string_view key, const std::vector<std::uint32_t>& cpus) {
        if (cpus.empty())
            out.comment(fmt::format("{}: proposed at start (default)", key));
        else
            out.line(key, integer_list(cpus));
    };
    list("rx", lcores.rx);
    list("build", lcores.build);
    list("work", lcores.work);
    out.choice("idle", idle_names, lcores.idle, LcoresConfig{}.idle);
}

nlohmann::json address_json(const std::vector<IpAddress>& addresses) {
    nlohmann::json out = nlohmann::json::array();
    for (const IpAddress& address : addresses) out.push_back(address.text);
    return out;
}

nlohmann::json port_json(const PortConfig& port) {
    nlohmann::json out{{"name", port.name},
                       {"device", port.devargs()},
                       {"queues", port.queues},
                       {"mtu", port.mtu},
                       {"rx_descriptors", port.rx_descriptors},
                       {"mbuf_bytes", port.mbuf_bytes},
                       {"steer", name_of(steer_names, port.steer)},
                       {"on_refusal", name_of(refusal_names, port.on_refusal)},
                       {"isolated", port.isolated}};
    if (!port.flows.empty()) out["flows"] = port.flows;
    if (!port.address.empty()) out["address"] = port.address;
    const port::PortOptions& options = port.options;
    out["promiscuous"] = options.promiscuous;
    out["tx_descriptors"] = options.tx_descriptors;
    out["link_wait_s"] = options.link_wait_s;
    out["flow_control"] = name_of(flow_control_names, options.flow_control);
    if (!options.pfc.empty()) out["pfc"] = options.pfc;
    out["flow_control_required"] = options.flow_control_required;
    out["timestamps"] = name_of(timestamps_names, options.timestamps);
    out["checksums"] = name_of(checksums_names, options.checksums);
    if (!port.profile.file.empty()) out["profile"] = port.profile.file;
    return out;
}

nlohmann::json responder_json(const RoceConfig& roce) {
    nlohmann::json out{{"psn", roce.psn},
                       {"path_mtu", roce.path_mtu},
                       {"pkey", roce.pkey},
                       {"qkey", roce.qkey},
                       {"rnr_timer_us", roce.rnr_timer_us},
                       {"ack_every", roce.ack_every},
                       {"cnp_interval_us", roce.cnp_interval_us},
                       {"peer", nlohmann::json::array()},
                       {"region", nlohmann::json::array()}};
    for (const RoceConfig::Peer& peer : roce.peers)
        out["peer"].push_back({{"qp", peer.qp}, {"address", peer.address ? peer.address->text : ""}});
    for (const RoceConfig::Region& from : roce.regions) {
        out["region"].push_back({{"va", from.region.va},
                                 {"bytes", from.region.bytes},
                                 {"rkey", from.region.rkey},
                                 {"count", from.region.count},
                                 {"stride", from.region.stride},
                                 {"write", from.region.remote_write},
                                 {"backing", name_of(backing_names, from.region.backed)}});
        if (from.qp) out["region"].back()["qp"] = *from.qp;
    }
    return out;
}

nlohmann::json stream_json(const RunConfig& config, const StreamConfig& stream) {
    nlohmann::json out{{"port", config.ports[stream.port].name},
                       {"transport", name_of(transport_names, stream.transport)},
                       {"format", stream.format},
                       {"event", name_of(event_by_names, stream.event)},
                       {"src", address_json(stream.src)},
                       {"dst", address_json(stream.dst)},
                       {"max_message_bytes", stream.max_message_bytes}};
    if (stream.mark) out["mark"] = *stream.mark;
    if (is_module(stream)) out["interfaces"] = stream.interfaces;
    if (stream.rows) out["rows"] = *stream.rows;
    if (stream.bit_depth) out["bit_depth"] = *stream.bit_depth;
    if (stream.tengiga) out["tengiga"] = *stream.tengiga;
    if (stream.format == "ess") out["packets_per_pulse"] = stream.packets_per_pulse;
    if (stream.format == "spead")
        out.update({{"address_bits", stream.spead.address_bits.value_or(0)},
                    {"event_item", stream.spead.event_item},
                    {"source_item", stream.spead.source_item},
                    {"heap_bytes", stream.spead.heap_bytes}});
    if (stream.transport == Transport::udp) {
        out["udp_dst"] = stream.udp_dst;
        out["source_by"] = name_of(source_by_names, stream.source_by);
        if (!stream.source_ids.empty()) out["source_ids"] = stream.source_ids;
    } else {
        out["qp"] = stream.qp;
        out["icrc"] = name_of(icrc_names, stream.icrc);
        if (stream.message_bytes) out["message_bytes"] = *stream.message_bytes;
        out["service"] = name_of(service_names, stream.roce.service);
        if (stream.roce.service != roce::Service::listen)
            out["responder"] = responder_json(stream.roce);
        else if (!stream.roce.psn.empty())
            out["psn"] = stream.roce.psn;
        if (stream.exchange != Exchange::none)
            out.update({{"exchange", name_of(exchange_names, stream.exchange)},
                        {"listen", fmt::format("{}:{}", stream.listen_address, stream.listen_port)}});
    }
    return out;
}

nlohmann::json format_json(const wire::DeclaredSpec& spec) {
    nlohmann::json out{{"name", spec.name},
                       {"byte_order", name_of(byte_order_names, spec.byte_order)},
                       {"header_bytes", spec.header_bytes}};
    const auto field = [&out](const char* key, const std::optional<wire::DeclaredField>& value) {
        if (value) out[key] = field_json(*value);
    };
    field("event", spec.event);
    field("index", spec.index);
    field("offset", spec.offset);
    field("total", spec.total);
    field("magic", spec.magic);
    field("source", spec.source);
    if (spec.wrap_bits) out["event"]["wrap_bits"] = *spec.wrap_bits;
    if (spec.magic) out["magic"]["value"] = spec.magic_value;
    if (spec.payload_bytes) out["payload_bytes"] = *spec.payload_bytes;
    if (spec.packets) out["packets"] = *spec.packets;
    if (spec.total_bytes) out["total"] = *spec.total_bytes;
    return out;
}

}  // namespace

std::string print_config(const RunConfig& config) {
    Printer out;
    out.comment(
        "The effective configuration: what was written, what a profile added, and what was filled in (default).");
    out.line("name", in_quotes(config.name), config.name == RunConfig{}.name);
    for (const PortConfig& port : config.ports) print_port(out, port);
    for (const StreamConfig& stream : config.streams) print_stream(out, config, stream);
    for (const wire::DeclaredSpec& spec : config.formats) print_format(out, spec);
    print_events(out, config.events);
    print_outputs(out, config);
    print_lcores(out, config.lcores);
    return out.take();
}

nlohmann::json config_json(const RunConfig& config) {
    const EventsConfig& events = config.events;
    nlohmann::json out{{"name", config.name},
                       {"events",
                        {{"sources", events.sources},
                         {"memory", events.memory_bytes},
                         {"window", events.window ? nlohmann::json(*events.window) : nlohmann::json()},
                         {"timeout_ms", events.timeout_ms},
                         {"ip_fragment_timeout_ms", events.ip_fragment_timeout_ms},
                         {"incomplete", name_of(incomplete_names, events.incomplete)},
                         {"assembly", name_of(assembly_names, events.assembly)},
                         {"overload", overload_text(events)},
                         {"horizon", events.horizon},
                         {"stride", !events.stride                                  ? nlohmann::json("learn")
                                    : *events.stride == EventsConfig::stride_sparse ? nlohmann::json("sparse")
                                                                                    : nlohmann::json(*events.stride)}}},
                       {"lcores",
                        {{"rx", config.lcores.rx},
                         {"build", config.lcores.build},
                         {"work", config.lcores.work},
                         {"idle", name_of(idle_names, config.lcores.idle)}}}};
    for (const char* key : {"port", "stream", "format", "sink", "sources"}) out[key] = nlohmann::json::array();
    for (const PortConfig& port : config.ports) out["port"].push_back(port_json(port));
    for (const StreamConfig& stream : config.streams) out["stream"].push_back(stream_json(config, stream));
    for (const wire::DeclaredSpec& spec : config.formats) out["format"].push_back(format_json(spec));
    out["reduce"] = reducers_json(config.reduce);
    for (const SinkConfig& sink : config.sinks) out["sink"].push_back(sink_json(sink));
    for (const SourceConfig& source : config.sources) out["sources"].push_back(source.label);
    return out;
}

}  // namespace weir::pipeline
