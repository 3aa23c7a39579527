// [[stream]]: what each stream is, and the run-wide numbering of the sources that follows from their order.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "config/counted_numbers.hpp"
#include "config/parts.hpp"

namespace weir::pipeline::detail {

namespace {

constexpr std::uint32_t qp_max = (1U << 24) - 1;

/// Of all transports and formats: which of them a stream has is said by those that refuse the others.
constexpr auto stream_keys = std::to_array<std::string_view>(
    {"port", "transport", "format", "src", "dst", "mark", "event", "max_message_bytes",
     // UDP
     "udp_dst", "source_by", "source_ids",
     // RoCE
     "qp", "icrc", "message_bytes", "service", "peer", "psn", "path_mtu", "pkey", "qkey", "rnr_timer_us", "ack_every",
     "cnp_interval_us", "region", "exchange", "listen",
     // formats
     "address_bits", "event_item", "source_item", "heap_bytes", "interfaces", "rows", "bit_depth", "tengiga",
     "packets_per_pulse"});

const wire::DeclaredSpec* find_spec(const RunConfig& run, std::string_view name) {
    for (const wire::DeclaredSpec& spec : run.formats)
        if (spec.name == name) return &spec;
    return nullptr;
}

std::uint32_t read_port_name(TableReader& table, const RunConfig& run) {
    std::vector<std::string_view> names;
    for (const PortConfig& port : run.ports) names.push_back(port.name);
    const auto index = table.word("port", names);
    if (!index) table.missing("port", "the name of a [[port]]: " + any_of(names));
    return static_cast<std::uint32_t>(*index);
}

std::string read_format_name(TableReader& table, const RunConfig& run) {
    std::vector<std::string_view> names(built_in_formats.begin(), built_in_formats.end());
    for (const wire::DeclaredSpec& spec : run.formats) names.push_back(spec.name);
    const std::string accepted = any_of(names) + "; others are declared by a [[format]] with that name";
    const auto format = table.text("format");
    if (!format) table.missing("format", accepted);
    if (std::find(names.begin(), names.end(), *format) == names.end()) {
        const auto guess = nearest(*format, names);
        table.wrong("format",
                    in_quotes(*format) + (guess ? "; did you mean " + in_quotes(*guess) + "?" : std::string()),
                    accepted);
    }
    return *format;
}

std::vector<IpAddress> read_addresses(TableReader& table, std::string_view key) {
    std::vector<IpAddress> out;
    for (const std::string& text : table.texts(key, "an IPv4 or IPv6 address")) {
        const auto address = parse_ip_address(text);
        if (!address) table.wrong(key, in_quotes(text), "an IPv4 or IPv6 address, as \"10.1.0.10\"");
        if (std::find(out.begin(), out.end(), *address) != out.end())
            table.wrong(key, in_quotes(text) + " twice", "each address once");
        out.push_back(*address);
    }
    return out;
}

void read_udp(TableReader& table, StreamConfig& stream) {
    for (const auto* key : {"qp", "icrc", "message_bytes", "service", "peer", "psn", "path_mtu", "pkey", "qkey",
                            "rnr_timer_us", "ack_every", "cnp_interval_us", "region", "exchange", "listen"})
        table.refuse(key, "nothing: it belongs to transport = \"roce\", and this stream has \"udp\"");
    for (const std::uint32_t port : table.integers("udp_dst", {1, 65535}, "UDP port"))
        stream.udp_dst.push_back(static_cast<std::uint16_t>(port));
    if (stream.udp_dst.empty())
        table.missing("udp_dst", "the destination UDP ports, as [50001, 50002] or \"50001-50008\"");
    stream.source_by = table.choice("source_by", source_by_names).value_or(stream.source_by);
    if (stream.source_by == SourceBy::address && stream.src.empty())
        table.missing("src", "the address of each source, because source_by = \"address\"");
    if (stream.source_by == SourceBy::header)
        stream.source_ids = table.integers("source_ids", {0, 0xffff'ffff}, "source id");
    else
        table.refuse("source_ids", "nothing: it belongs to source_by = \"header\"");
}

void read_roce(TableReader& table, StreamConfig& stream) {
    table.refuse("udp_dst", "nothing: RoCEv2 always uses UDP port 4791; the sources are those of qp = [...]");
    table.refuse("source_by", "nothing: with transport = \"roce\" every queue pair in qp is a source");
    table.refuse("source_ids", "nothing: with transport = \"roce\" every queue pair in qp is a source");
    stream.qp = table.integers("qp", {0, qp_max}, "queue pair number (24 bits)");
    if (stream.qp.empty()) table.missing("qp", "the destination queue pair of each source, as [0x11, 0x12]");
    stream.icrc = table.choice("icrc", icrc_names).value_or(stream.icrc);
    stream.exchange = table.choice("exchange", exchange_names).value_or(stream.exchange);
    read_responder_keys(table, stream);
}

/// Where the event number comes from, and whether this transport and this format can give it.
void read_event_by(TableReader& table, StreamConfig& stream) {
    const bool bare = stream.format == "message";
    const auto event = table.choice("event", event_by_names);
    if (stream.transport == Transport::udp) {
        stream.event = event.value_or(EventBy::format);
        if (stream.event == EventBy::immediate || stream.event == EventBy::count)
            table.wrong("event", in_quotes(name_of(event_by_names, stream.event)),
                        "\"format\" or \"arrival\": immediates and message counts belong to transport = \"roce\"");
        if (bare && stream.event != EventBy::arrival)
            table.wrong("event", event ? "\"format\"" : "nothing",
                        "\"arrival\", because a \"message\" over UDP carries no event number");
        if (!bare && stream.event == EventBy::arrival)
            table.wrong("event", "\"arrival\"",
                        fmt::format("\"format\": over UDP only \"message\" has no event number of its own, and {} has",
                                    in_quotes(stream.format)));
        return;
    }
    stream.event = event.value_or(bare ? EventBy::immediate : EventBy::format);
    if (bare && stream.event == EventBy::format)
        table.wrong("event", "\"format\"",
                    "\"immediate\", \"count\" or \"arrival\", because a \"message\" carries no event number");
    constexpr Bounds bytes{1, message_bytes_limit};
    if (stream.event == EventBy::count) {
        if (const auto size = table.size("message_bytes", bytes))
            stream.message_bytes = static_cast<std::uint32_t>(*size);
    } else {
        table.refuse("message_bytes", "nothing: it belongs to event = \"count\"");
    }
}

/// What the headers of a SPEAD stream do not say of themselves.
void read_spead(TableReader& table, StreamConfig& stream) {
    if (stream.format != "spead") {
        for (const auto* key : {"address_bits", "event_item", "source_item", "heap_bytes"})
            table.refuse(key, "nothing: it belongs to format = \"spead\"");
        return;
    }
    wire::SpeadOptions& spead = stream.spead;
    if (const auto bits = table.integer("address_bits", {40, 48})) {
        spead.address_bits = static_cast<std::uint32_t>(*bits);
        if (*bits != 40 && *bits != 48)
            table.wrong("address_bits", std::to_string(*bits), "48 (SPEAD-64-48) or 40 (SPEAD-64-40)");
    }
    const auto item = [&table, &spead](std::string_view key, std::uint32_t fallback) {
        const Bounds ids{1, (std::uint64_t{1} << (63 - spead.address_bits.value_or(40))) - 1};
        const auto id = static_cast<std::uint32_t>(table.integer(key, ids).value_or(fallback));
        if (id >= 2 && id <= 6)
            table.wrong(key, fmt::format("item {}", id),
                        "1, the heap counter, or an item of the sender's own: 2 to 6 say how the heap is sent");
        return id;
    };
    spead.event_item = item("event_item", spead.event_item);
    spead.source_item = item("source_item", spead.source_item);
    if (const auto bytes = table.size("heap_bytes", {1, message_bytes_limit}))
        spead.heap_bytes = static_cast<std::uint32_t>(*bytes);
    if (stream.source_by == SourceBy::header && spead.source_item == 0)
        table.missing("source_item", "the id of the item that says the source, because source_by = \"header\"");
}

/// The bound on messages that do not say their size. It has to hold what is known to be sent, and fit the memory.
void read_message_bound(TableReader& table, const RunConfig& run, StreamConfig& stream) {
    std::uint64_t fixed = std::max(stream.message_bytes.value_or(0), stream.spead.heap_bytes);
    if (const wire::DeclaredSpec* spec = find_spec(run, stream.format)) {
        const std::uint64_t packets = spec->packets.value_or(0);
        fixed =
            std::max<std::uint64_t>({fixed, packets * spec->payload_bytes.value_or(0), spec->total_bytes.value_or(0)});
    }
    const std::uint64_t memory = run.events.memory_bytes;
    const auto given = table.size("max_message_bytes", {1, message_bytes_limit});
    const std::string_view key = given ? "max_message_bytes" : stream.message_bytes ? "message_bytes" : "format";
    if (given && *given < fixed)
        table.wrong(key, format_size(*given), fmt::format("at least the {} of a message", format_size(fixed)));
    const std::uint64_t bound =
        given.value_or(std::max<std::uint64_t>(fixed, std::min<std::uint64_t>(message_bytes_default, memory)));
    if (bound > memory)
        table.wrong(key, fmt::format("messages of up to {}", format_size(bound)),
                    fmt::format("messages that fit into events.memory = {}, or more memory", format_size(memory)));
    stream.max_message_bytes = static_cast<std::uint32_t>(bound);
}

StreamConfig read_stream(TableReader& table, RunConfig& run) {
    StreamConfig stream;
    stream.place = table.place();
    table.allow({stream_keys.begin(), stream_keys.end()});
    stream.port = read_port_name(table, run);
    const auto transport = table.choice("transport", transport_names);
    if (!transport) table.missing("transport", "\"udp\" or \"roce\"");
    stream.transport = *transport;
    stream.format = read_format_name(table, run);
    stream.src = read_addresses(table, "src");
    stream.dst = read_addresses(table, "dst");
    if (const auto mark = table.integer("mark", {0, 0xffffffff})) {
        stream.mark = static_cast<std::uint32_t>(*mark);
        check_mark(table, run.ports[stream.port], *stream.mark);
    }
    if (stream.transport == Transport::udp)
        read_udp(table, stream);
    else
        read_roce(table, stream);
    read_event_by(table, stream);
    check_backed_regions(table, run, stream);
    read_spead(table, stream);
    read_message_bound(table, run, stream);
    if (stream.transport == Transport::roce) read_exchange(table, run, stream);
    read_detector_keys(table, stream);
    if (stream.format == "ess")
        stream.packets_per_pulse = static_cast<std::uint32_t>(table.integer("packets_per_pulse", {1, 1}).value_or(1));
    else
        table.refuse("packets_per_pulse", "nothing: it belongs to format = \"ess\"");
    table.finish();
    return stream;
}

/// The format's own opinion of its options, with the line in front.
void check_format(TableReader& table, const RunConfig& run, const StreamConfig& stream) {
    wire::FormatContext context;
    try {
        context = format_entry(stream).make_context(format_options(run, stream));
    } catch (const core::UsageError& error) {
        throw core::UsageError(fmt::format("{}:{}: {}: {}", table.file(), table.place(*table.get("format")).line,
                                           table.full_key("format"), error.what()));
    }
    if (stream.source_by == SourceBy::header && !context.carries_source)
        table.wrong(
            "source_by", "\"header\"",
            fmt::format("\"port\" or \"address\": {} has no source id in its header", in_quotes(stream.format)));
}

std::vector<std::uint32_t> source_keys(const StreamConfig& stream) {
    if (stream.transport == Transport::roce) return stream.qp;
    if (stream.source_by == SourceBy::port) return {stream.udp_dst.begin(), stream.udp_dst.end()};
    if (stream.source_by == SourceBy::header) return stream.source_ids;
    std::vector<std::uint32_t> indices(stream.src.size());
    std::iota(indices.begin(), indices.end(), 0U);
    return indices;
}

std::string source_label(const RunConfig& run, const StreamConfig& stream, std::uint32_t key) {
    const std::string& port = run.ports[stream.port].name;
    if (stream.transport == Transport::roce) return fmt::format("{} qp {:#x}", port, key);
    if (stream.source_by == SourceBy::port) return fmt::format("{} udp {}", port, key);
    if (stream.source_by == SourceBy::header) return fmt::format("{} id {}", port, key);
    return fmt::format("{} src {}", port, stream.src[key].text);
}

/// source_by = "header" without source_ids: ids 0, 1, 2, ... for as many sources as the other streams leave over.
void propose_source_ids(RunConfig& run, std::vector<TableReader>& readers) {
    std::size_t others = 0;
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < run.streams.size(); ++i) {
        const StreamConfig& stream = run.streams[i];
        others += source_keys(stream).size();
        if (stream.transport != Transport::udp || stream.source_by != SourceBy::header || !stream.source_ids.empty())
            continue;
        if (open)
            readers[i].missing("source_ids", "the ids, in source order: only one stream may leave them to be counted");
        open = i;
    }
    if (!open) return;
    if (others >= run.events.sources)
        readers[*open].missing("source_ids",
                               fmt::format("the ids, in source order: the other streams already have {} of "
                                           "events.sources = {}",
                                           others, run.events.sources));
    auto& ids = run.streams[*open].source_ids;
    ids.resize(run.events.sources - others);
    std::iota(ids.begin(), ids.end(), 0U);
}

void number_sources(RunConfig& run, std::vector<TableReader>& readers) {
    for (std::size_t i = 0; i < run.streams.size(); ++i) {
        StreamConfig& stream = run.streams[i];
        stream.first_source = static_cast<std::uint32_t>(run.sources.size());
        for (const std::uint32_t key : source_keys(stream))
            run.sources.push_back({static_cast<std::uint32_t>(i), key, source_label(run, stream, key)});
        stream.source_count = static_cast<std::uint32_t>(run.sources.size()) - stream.first_source;
        if (run.sources.size() > sources_max)
            fail(stream.place, "stream", fmt::format("{} sources so far", run.sources.size()),
                 fmt::format("at most {} sources in a run", sources_max));
    }
    for (std::size_t i = 0; i < run.streams.size(); ++i)
        if (run.streams[i].event == EventBy::arrival && run.sources.size() != 1)
            readers[i].wrong(
                "event", fmt::format("\"arrival\" with {} sources", run.sources.size()),
                "\"arrival\" in a run of exactly one source: with several, arrival says nothing about events");
}

/// Without its first PSN, a queue pair's message 0 is the first that arrives, and nobody knows whether the other queue
/// pairs' first is of the same event.
void warn_of_counts(RunConfig& run) {
    for (const StreamConfig& stream : run.streams)
        if (!counts_are_known(run, stream))
            run.warnings.push_back(fmt::format(
                "{}:{}: stream.event: \"count\" with {} sources and no psn: if the first message of one is lost, all "
                "its events join messages that do not belong together, and nothing shows it. Set psn to the PSN that "
                "each sender begins with, or event = \"immediate\"; without it, whether data was lost is not known",
                stream.place.file, stream.place.line, run.sources.size()));
}

void check_event_sources(TableReader& root, RunConfig& run) {
    if (run.events.sources == run.sources.size()) return;
    auto events = root.table("events");
    if (run.events.sources < run.sources.size()) {
        const Place place = events->place(*events->get("sources"));
        run.warnings.push_back(fmt::format(
            "{}:{}: events.sources = {}: the streams have {} sources; an event is closed when {} of them "
            "are whole and no other has begun, and what comes for it later is late. Write {} to wait for all",
            place.file, place.line, run.events.sources, run.sources.size(), run.events.sources, run.sources.size()));
        return;
    }
    events->wrong("sources", std::to_string(run.events.sources),
                  fmt::format("1..{}, the sources that the streams declare", run.sources.size()));
}

}  // namespace

void read_streams(TableReader& root, RunConfig& run) {
    std::vector<TableReader> readers = root.tables("stream");
    if (readers.empty()) root.missing("stream", "at least one [[stream]]");
    for (TableReader& table : readers) {
        run.streams.push_back(read_stream(table, run));
        check_format(table, run, run.streams.back());
    }
    propose_source_ids(run, readers);
    number_sources(run, readers);
    check_event_sources(root, run);
    warn_of_counts(run);
    check_claims(run, readers);
    check_listeners(run, readers);
    for (std::uint32_t i = 0; i < run.ports.size(); ++i) {
        const bool used = std::any_of(run.streams.begin(), run.streams.end(),
                                      [i](const StreamConfig& stream) { return stream.port == i; });
        const PortConfig& port = run.ports[i];
        if (!used)
            run.warnings.push_back(fmt::format("{}:{}: port.name: no stream uses {}: all it receives is unsteered",
                                               port.place.file, port.place.line, in_quotes(port.name)));
    }
}

}  // namespace weir::pipeline::detail
