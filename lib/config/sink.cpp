// [[sink]]: read, printed and as JSON. A kind is one line in a table.
#include "config/sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "config/parts.hpp"
#include "config/printer.hpp"
#include "config/sink_kinds.hpp"

namespace weir::pipeline::detail {

namespace {

// {name}, {run}, {run:06}, {date}; a brace on its own would end up in a file name.
void check_path(TableReader& table, std::string_view path) {
    constexpr std::string_view accepted = "a path with {name}, {run}, {run:06} or {date} in it, no other braces";
    for (std::size_t at = path.find_first_of("{}"); at != std::string_view::npos; at = path.find_first_of("{}", at)) {
        const std::size_t end = path.find('}', at);
        if (path[at] == '}' || end == std::string_view::npos) table.wrong("path", "a single brace", accepted);
        const std::string_view field = path.substr(at + 1, end - at - 1);
        // {run:0N}: zero-padded to N digits.
        const bool padded = field.size() == 6 && field.substr(0, 5) == "run:0" && field[5] >= '1' && field[5] <= '9';
        if (field != "name" && field != "run" && field != "date" && !padded)
            table.wrong("path", fmt::format("{{{}}}", field), accepted);
        at = end + 1;
    }
}

std::uint32_t number(TableReader& table, const char* key, Bounds bounds, std::uint32_t otherwise) {
    return static_cast<std::uint32_t>(table.integer(key, bounds).value_or(otherwise));
}

void read_events_sink(TableReader& table, SinkConfig& sink) {
    EventsSinkConfig events;
    events.segment_bytes =
        table.size("segment_bytes", {1U << 20, std::uint64_t{1} << 44}).value_or(events.segment_bytes);
    events.sync_bytes = table.size("sync_bytes", {4096, std::uint64_t{1} << 44}).value_or(events.sync_bytes);
    events.sync_ms = number(table, "sync_ms", {1, 3'600'000}, events.sync_ms);
    // Years fit, and so do their nanoseconds.
    events.segment_seconds = number(table, "segment_seconds", {0, 1U << 30}, events.segment_seconds);
    events.sync = table.choice("sync", sync_names).value_or(events.sync);
    events.direct = table.choice("direct", toggle_names).value_or(events.direct);
    events.uring = table.choice("uring", toggle_names).value_or(events.uring);
    events.queue_depth = number(table, "queue_depth", {1, 1024}, events.queue_depth);
    events.files = number(table, "files", {1, 64}, events.files);
    events.preallocate = table.size("preallocate", {0, std::uint64_t{1} << 40}).value_or(events.preallocate);
    if (events.preallocate % (1U << 20) != 0)
        table.wrong("preallocate", format_size(events.preallocate), "whole MiB, or 0");
    sink.options = events;
}

void print_events_sink(Printer& out, const SinkConfig& sink) {
    const EventsSinkConfig& events = sink.events();
    const EventsSinkConfig defaults;
    out.size("segment_bytes", events.segment_bytes, defaults.segment_bytes);
    out.number("segment_seconds", events.segment_seconds, defaults.segment_seconds);
    out.size("sync_bytes", events.sync_bytes, defaults.sync_bytes);
    out.number("sync_ms", events.sync_ms, defaults.sync_ms);
    out.choice("sync", sync_names, events.sync, defaults.sync);
    out.choice("direct", toggle_names, events.direct, defaults.direct);
    out.choice("uring", toggle_names, events.uring, defaults.uring);
    out.number("queue_depth", events.queue_depth, defaults.queue_depth);
    out.number("files", events.files, defaults.files);
    out.size("preallocate", events.preallocate, defaults.preallocate);
}

void events_sink_json(nlohmann::json& out, const SinkConfig& sink) {
    const EventsSinkConfig& events = sink.events();
    out.update({{"segment_bytes", events.segment_bytes},
                {"segment_seconds", events.segment_seconds},
                {"sync_bytes", events.sync_bytes},
                {"sync_ms", events.sync_ms},
                {"sync", name_of(sync_names, events.sync)},
                {"direct", name_of(toggle_names, events.direct)},
                {"uring", name_of(toggle_names, events.uring)},
                {"queue_depth", events.queue_depth},
                {"files", events.files},
                {"preallocate", events.preallocate}});
}

constexpr auto events_keys =
    std::to_array<std::string_view>({"segment_bytes", "segment_seconds", "sync_bytes", "sync_ms", "sync", "direct",
                                     "uring", "queue_depth", "files", "preallocate"});

/// What a kind of sink has beside the keys of all.
struct Kind {
    std::string_view name;
    SinkKind kind;
    std::span<const std::string_view> keys;  ///< its own, which other kinds refuse by name
    void (*read)(TableReader& table, SinkConfig& sink);
    void (*print)(Printer& out, const SinkConfig& sink);
    void (*json)(nlohmann::json& out, const SinkConfig& sink);
};

/// The kinds. "null" writes nothing, so it has not even the keys that the others share.
constexpr auto kinds = std::to_array<Kind>({
    {"events", SinkKind::events, events_keys, read_events_sink, print_events_sink, events_sink_json},
    {"hdf5", SinkKind::hdf5, hdf5_keys, read_hdf5_sink, print_hdf5_sink, hdf5_sink_json},
    {"pcapng", SinkKind::pcapng, recorder_keys, read_recorder, print_recorder, recorder_json},
    {"null", SinkKind::null, {}, nullptr, nullptr, nullptr},
});

constexpr auto shared_keys =
    std::to_array<std::string_view>({"path", "full_warning_seconds", "require_mount", "on_error"});

std::string kinds_text() {
    std::vector<std::string_view> names;
    for (const Kind& kind : kinds) names.push_back(kind.name);
    return any_of(names);
}

const Kind& kind_of(SinkKind kind) {
    for (const Kind& entry : kinds)
        if (entry.kind == kind) return entry;
    return kinds.back();
}

const Kind& read_kind(TableReader& table) {
    if (const toml::node* node = table.get("kind")) {
        const auto* text = node->as_string();
        for (const std::string_view later : {"hdf5", "pcapng"})
            if (text != nullptr && text->get() == later && std::ranges::find(kinds, later, &Kind::name) == kinds.end())
                table.wrong("kind", describe(*node) + ", which this version does not write yet", kinds_text());
    }
    std::vector<std::string_view> names;
    for (const Kind& kind : kinds) names.push_back(kind.name);
    const auto index = table.word("kind", names);
    if (!index) table.missing("kind", kinds_text());
    return kinds[*index];
}

/// Of all kinds: which of them a sink has is said by `refuse_foreign`.
std::vector<std::string_view> all_keys() {
    std::vector<std::string_view> keys{"kind"};
    keys.insert(keys.end(), shared_keys.begin(), shared_keys.end());
    for (const Kind& kind : kinds) keys.insert(keys.end(), kind.keys.begin(), kind.keys.end());
    return keys;
}

/// Keys that only other kinds have.
void refuse_foreign(TableReader& table, const Kind& kind) {
    if (kind.read == nullptr)
        for (const std::string_view key : shared_keys)
            table.refuse(key, fmt::format("nothing: a sink of kind \"{}\" writes no files", kind.name));
    for (const Kind& other : kinds)
        for (const std::string_view key : other.keys)
            if (std::ranges::find(kind.keys, key) == kind.keys.end())
                table.refuse(key, kind.read == nullptr
                                      ? fmt::format("nothing: a sink of kind \"{}\" writes no files", kind.name)
                                      : fmt::format("nothing: a sink of kind \"{}\" has no such key, one of kind "
                                                    "\"{}\" has",
                                                    kind.name, other.name));
}

SinkConfig read_sink(TableReader& table) {
    SinkConfig sink;
    sink.place = table.place();
    table.allow(all_keys());
    const Kind& kind = read_kind(table);
    sink.kind = kind.kind;
    refuse_foreign(table, kind);
    if (kind.read != nullptr) {
        const auto path = table.text("path");
        if (!path) table.missing("path", "what to create, as \"/data/{name}-{run:06}\"");
        check_path(table, *path);
        sink.path = *path;
        sink.full_warning_seconds = number(table, "full_warning_seconds", {0, 1U << 30}, sink.full_warning_seconds);
        sink.require_mount = table.text("require_mount").value_or("");
        sink.on_error = table.choice("on_error", on_error_names).value_or(sink.on_error);
        kind.read(table, sink);
    }
    table.finish();
    return sink;
}

}  // namespace

std::vector<SinkConfig> read_sinks(TableReader& root) {
    std::vector<SinkConfig> out;
    for (TableReader& table : root.tables("sink")) {
        SinkConfig sink = read_sink(table);
        for (const SinkConfig& other : out)
            if (sink.writes() && other.path == sink.path)
                table.wrong("path", fmt::format("the path of the sink at line {}", other.place.line),
                            "a path of its own for each sink");
        out.push_back(std::move(sink));
    }
    if (out.empty()) root.missing("sink", fmt::format("at least one [[sink]], of kind {}", kinds_text()));
    return out;
}

void print_sink(Printer& out, const SinkConfig& sink) {
    const SinkConfig defaults;
    const Kind& kind = kind_of(sink.kind);
    out.header("[[sink]]");
    out.line("kind", in_quotes(kind.name));
    if (!sink.writes()) return;
    out.line("path", in_quotes(sink.path));
    kind.print(out, sink);
    out.number("full_warning_seconds", sink.full_warning_seconds, defaults.full_warning_seconds);
    if (!sink.require_mount.empty()) out.line("require_mount", in_quotes(sink.require_mount));
    out.choice("on_error", on_error_names, sink.on_error, defaults.on_error);
}

nlohmann::json sink_json(const SinkConfig& sink) {
    const Kind& kind = kind_of(sink.kind);
    nlohmann::json out{{"kind", kind.name}};
    if (!sink.writes()) return out;
    out["path"] = sink.path;
    kind.json(out, sink);
    out["full_warning_seconds"] = sink.full_warning_seconds;
    if (!sink.require_mount.empty()) out["require_mount"] = sink.require_mount;
    out["on_error"] = name_of(on_error_names, sink.on_error);
    return out;
}

}  // namespace weir::pipeline::detail

namespace weir::pipeline {

std::string_view sink_kind_name(SinkKind kind) {
    return detail::kind_of(kind).name;
}

}  // namespace weir::pipeline
