// [[stream]]: what each stream is, and the run-wide numbering of the sources that follows from their order.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "config/counted_numbers.hpp"
#include "config/parts.hpp"
#include "config/stream_options.hpp"

namespace weir::config::detail {

namespace {

/// Where the event number comes from, and whether this transport and this format can give it.
void check_event_by(TableReader& table, const StreamConfig& stream) {
    const bool bare = !format_entry(stream).numbers_events;
    if (stream.transport == Transport::udp) {
        if (stream.event == EventBy::immediate || stream.event == EventBy::count)
            table.wrong("event", in_quotes(name_of(event_by_names, stream.event)),
                        "\"format\" or \"arrival\": immediates and message counts belong to transport = \"roce\"");
        if (bare && stream.event != EventBy::arrival)
            table.wrong("event", table.get("event") != nullptr ? "\"format\"" : "nothing",
                        "\"arrival\", because a \"message\" over UDP carries no event number");
        if (!bare && stream.event == EventBy::arrival)
            table.wrong("event", "\"arrival\"",
                        fmt::format("\"format\": over UDP only \"message\" has no event number of its own, and {} has",
                                    in_quotes(stream.format)));
        return;
    }
    if (bare && stream.event == EventBy::format)
        table.wrong("event", "\"format\"",
                    "\"immediate\", \"count\" or \"arrival\", because a \"message\" carries no event number");
}

StreamConfig read_stream(TableReader& table, const RunConfig& run) {
    StreamConfig stream = stream_options(run).read(table);
    stream.place = table.place();
    check_event_by(table, stream);
    check_backed_regions(table, run, stream);
    const wire::FormatEntry& format = format_entry(stream);
    if (!format.source_key.empty() && stream.source_by == SourceBy::header && table.get(format.source_key) == nullptr)
        table.missing(format.source_key, fmt::format("{}, because source_by = \"header\"", format.source_key_meaning));
    if (stream.exchange != Exchange::none) agree_on_exchange(table, run, stream);
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
    check_frame_bytes(table, stream, context);
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
        readers[*open].missing("source_ids", fmt::format("the ids, in source order: "
                                                         "the other streams already have {} of events.sources = {}",
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
                "{}:{}: stream.event: \"count\" with {} sources and no psn: if the first message of one is lost, "
                "all its events join messages that do not belong together, and nothing shows it. "
                "Set psn to the PSN that each sender begins with, or event = \"immediate\"; without it, "
                "whether data was lost is not known",
                stream.place.file, stream.place.line, run.sources.size()));
}

/// A description that says where the source id is, and a stream that does not look there.
void warn_of_unused_ids(RunConfig& run) {
    for (const StreamConfig& stream : run.streams) {
        if (stream.transport != Transport::udp) continue;  // goes by its queue pairs
        const auto spec = std::ranges::find(run.formats, stream.format, &wire::DeclaredSpec::name);
        if (spec == run.formats.end() || !spec->source || stream.source_by == SourceBy::header) continue;
        run.warnings.push_back(fmt::format(
            "{}:{}: stream.source_by: the stream goes by the {}, and the `source` of the format {} is not looked at. "
            "Write source_by = \"header\" to go by it, or leave it out of the format",
            stream.place.file, stream.place.line, name_of(source_by_names, stream.source_by), in_quotes(spec->name)));
    }
}

void check_event_sources(TableReader& root, RunConfig& run) {
    if (run.events.sources == run.sources.size()) return;
    auto events = root.table("events");
    if (run.cluster)
        events->wrong("sources", std::to_string(run.events.sources),
                      fmt::format("{}, all sources of all streams: with [cluster] each node waits for all of its own",
                                  run.sources.size()));
    if (run.events.sources < run.sources.size()) {
        const Place place = events->place(*events->get("sources"));
        run.warnings.push_back(fmt::format(
            "{}:{}: events.sources = {}: the streams have {} sources; "
            "an event is closed when {} of them are whole and no other has begun, "
            "and what comes for it later is late. Write {} to wait for all",
            place.file, place.line, run.events.sources, run.sources.size(), run.events.sources, run.sources.size()));
        return;
    }
    events->wrong("sources", std::to_string(run.events.sources),
                  fmt::format("1..{}, the sources that the streams declare", run.sources.size()));
}

/// What a stream cannot be on a port that takes off what is around its packets.
void check_decapsulated(TableReader& table, const RunConfig& run, const StreamConfig& stream) {
    const PortConfig& port = run.ports[stream.port];
    if (port.decapsulate.empty()) return;
    if (stream.roce.service != roce::Service::listen)
        table.wrong(
            "service", in_quotes(name_of(service_names, stream.roce.service)),
            fmt::format("\"listen\": port {} has decapsulate, so its packets are copies of what others say to each "
                        "other, which nobody may answer",
                        in_quotes(port.name)));
    for (const std::uint16_t udp : {wire::vxlan_port, wire::vxlan_port_of_linux})
        if (port.decapsulate.has(wire::Tunnel::vxlan) && std::ranges::find(stream.udp_dst, udp) != stream.udp_dst.end())
            table.wrong("udp_dst", std::to_string(udp),
                        fmt::format("the port of the packets inside: port {} takes VXLAN off", in_quotes(port.name)));
}

}  // namespace

void read_streams(TableReader& root, RunConfig& run) {
    std::vector<TableReader> readers = root.tables("stream");
    if (readers.empty()) root.missing("stream", "at least one [[stream]]");
    for (TableReader& table : readers) {
        run.streams.push_back(read_stream(table, run));
        check_format(table, run, run.streams.back());
        check_decapsulated(table, run, run.streams.back());
    }
    propose_source_ids(run, readers);
    number_sources(run, readers);
    check_event_sources(root, run);
    warn_of_counts(run);
    warn_of_unused_ids(run);
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

}  // namespace weir::config::detail
