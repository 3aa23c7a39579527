// [[sink]]: what all kinds have in common, and the table of kinds.
#include "config/sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/parts.hpp"
#include "config/sink_kinds.hpp"
#include "options/kind.hpp"

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

OptionTable<EventsSinkConfig> events_options() {
    constexpr std::uint64_t bytes_max = std::uint64_t{1} << 44;
    OptionTable<EventsSinkConfig> out;
    out.size("segment_bytes", {1U << 20, bytes_max}, &EventsSinkConfig::segment_bytes,
             "a new file begins after this many bytes,");
    // Years fit, and so do their nanoseconds.
    out.integer("segment_seconds", {0, 1U << 30}, &EventsSinkConfig::segment_seconds,
                "and with the first event that comes this long after the first one in the file; 0: not by time. After "
                "200000 files the last one grows");
    out.size("sync_bytes", {4096, bytes_max}, &EventsSinkConfig::sync_bytes,
             "data is synced to the disk after this many bytes,");
    out.integer("sync_ms", {1, 3'600'000}, &EventsSinkConfig::sync_ms,
                "and at least this often. What is synced survives a power cut; what is written survives the end of the "
                "program");
    out.choice("sync", sync_names, &EventsSinkConfig::sync,
               "when: by `sync_bytes` and `sync_ms`; only when a file is full; only at the end of the run; never, so "
               "that nothing is called synced and `written` means with the kernel");
    out.choice(
        "direct", toggle_names, &EventsSinkConfig::direct,
        "writes go past the page cache (O_DIRECT), straight from the workers' buffers. `\"auto\"`: where the file "
        "system takes them, and the run says where not; `\"on\"`: it is refused where not. The run is of version "
        "2 ([EVENT_FILE.md](EVENT_FILE.md)), and a file ends where a buffer ends. When to turn it on, and why it is "
        "not the "
        "default: [DISKS.md](../guides/DISKS.md#which-set-up)");
    out.choice("uring", toggle_names, &EventsSinkConfig::uring,
               "io_uring, so that several writes are under way at once: with `direct` and where the kernel allows it; "
               "always, or the run is refused; never");
    out.integer("queue_depth", {1, 1024}, &EventsSinkConfig::queue_depth,
                "with io_uring: writes under way at once, each up to a buffer (1 MiB and more). Workers have 4 to 16 "
                "buffers each, more than that cannot be under way");
    out.integer("files", {1, 64}, &EventsSinkConfig::files,
                "files that are written at the same time, buffers taking turns. More than one makes the run version 2");
    out.size("preallocate", {0, std::uint64_t{1} << 40}, &EventsSinkConfig::preallocate,
             "with `direct`: disk space is set aside in steps of this, which keeps writes from waiting for each other; "
             "the rest goes when the file is full or the run ends. 0: not")
        .kind("size, whole MiB, 0..1TiB")
        .check([](TableReader& table, const EventsSinkConfig& events) {
            if (events.preallocate % (1U << 20) != 0)
                table.wrong("preallocate", format_size(events.preallocate), "whole MiB, or 0");
        });
    return out;
}

using SinkOptions = decltype(SinkConfig::options);

struct SinkEntry {
    SinkKind kind;
    Kind<SinkOptions> options;
    bool writes = true;  ///< if not, it has not even the keys that the others share
};

/// The kinds.
const std::vector<SinkEntry>& kinds() {
    static const std::vector<SinkEntry> all{
        {SinkKind::events, kind_of<SinkOptions>("events", events_options())},
        {SinkKind::hdf5, kind_of<SinkOptions>("hdf5", hdf5_options())},
        {SinkKind::pcapng, kind_of<SinkOptions>("pcapng", recorder_options())},
        {SinkKind::null, kind_of<SinkOptions>("null", OptionTable<std::monostate>()), false},
    };
    return all;
}

/// Of all kinds that write.
OptionTable<SinkConfig> shared_options() {
    OptionTable<SinkConfig> out;
    out.text("path", &SinkConfig::path,
             "what the run is written to, refused if it exists. `{name}`, `{run}` (a number kept across restarts, one "
             "for all sinks of a run), `{run:06}` (with leading zeroes), `{date}`. `--out` replaces that of the first "
             "sink that has one")
        .required("what to create, as \"/data/{name}-{run:06}\"")
        .usually("required but for null")
        .check([](TableReader& table, const SinkConfig& sink) { check_path(table, sink.path); });
    out.integer("full_warning_seconds", {0, 1U << 30}, &SinkConfig::full_warning_seconds,
                "not for null: a warning when at the rate of the last ten seconds the disk will be full in less than "
                "this; again at half of what was left. 0: none");
    out.text("require_mount", &SinkConfig::require_mount,
             "not for null: the run is refused unless a file system is mounted at exactly this directory, so that a "
             "disk that did not come up is not taken for the empty directory under it")
        .kind("path");
    out.choice("on_error", on_error_names, &SinkConfig::on_error,
               "not for null: what a full disk or a failed write does: the run ends with an error (exit status 1), or "
               "goes on while another sink takes events. Then `written` is about the others, and what this one lost is "
               "in the report's `sinks` and in a warning")
        .otherwise([](SinkConfig& sink) {
            // What is there to find out why things go wrong does not end a run by itself.
            const auto* recorder = std::get_if<RecorderConfig>(&sink.options);
            const bool flight = recorder != nullptr && recorder->packets == RecordMode::incomplete;
            sink.on_error = flight ? SinkError::carry_on : SinkError::stop;
        })
        .usually("`\"stop\"`");
    return out;
}

std::vector<std::string_view> kind_names() {
    std::vector<std::string_view> names;
    for (const SinkEntry& entry : kinds()) names.push_back(entry.options.name);
    return names;
}

const SinkEntry& entry_of(SinkKind kind) {
    return *std::ranges::find(kinds(), kind, &SinkEntry::kind);
}

/// Of all kinds: which of them a sink has is said by `refuse_foreign`.
std::vector<std::string_view> all_keys() {
    std::vector<std::string_view> keys = shared_options().keys();
    keys.insert(keys.begin(), "kind");
    for (const SinkEntry& entry : kinds())
        keys.insert(keys.end(), entry.options.keys.begin(), entry.options.keys.end());
    return keys;
}

/// Keys that only other kinds have.
void refuse_foreign(TableReader& table, const SinkEntry& entry) {
    const std::string no_files = fmt::format("nothing: a sink of kind \"{}\" writes no files", entry.options.name);
    if (!entry.writes)
        for (const std::string_view key : shared_options().keys()) table.refuse(key, no_files);
    for (const SinkEntry& other : kinds())
        for (const std::string& key : other.options.keys)
            if (!entry.options.has(key))
                table.refuse(key, entry.writes
                                      ? fmt::format("nothing: a sink of kind \"{}\" has no such key, one of kind "
                                                    "\"{}\" has",
                                                    entry.options.name, other.options.name)
                                      : no_files);
}

SinkConfig read_sink(TableReader& table) {
    SinkConfig sink;
    sink.place = table.place();
    table.allow(all_keys());
    const auto index = table.word("kind", kind_names());
    if (!index) table.missing("kind", any_of(kind_names()));
    const SinkEntry& entry = kinds()[*index];
    sink.kind = entry.kind;
    refuse_foreign(table, entry);
    sink.options = entry.options.read(table);
    if (entry.writes) shared_options().read_values(table, sink);
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
    if (out.empty()) root.missing("sink", fmt::format("at least one [[sink]], of kind {}", any_of(kind_names())));
    return out;
}

std::string print_sink(const SinkConfig& sink) {
    const SinkEntry& entry = entry_of(sink.kind);
    const std::string head = fmt::format("\n[[sink]]\nkind = {}\n", in_quotes(entry.options.name));
    return entry.writes ? head + shared_options().print(sink) + entry.options.print(sink.options) : head;
}

nlohmann::json sink_json(const SinkConfig& sink) {
    const SinkEntry& entry = entry_of(sink.kind);
    nlohmann::json out = entry.writes ? shared_options().report(sink) : nlohmann::json::object();
    out.update(entry.options.report(sink.options));
    out["kind"] = entry.options.name;
    return out;
}

void explain_sinks(Reference& out) {
    std::string words;
    for (const SinkEntry& entry : kinds()) words += (words.empty() ? "`" : ", `") + in_quotes(entry.options.name) + "`";
    std::vector<Explained> shared = shared_options().explained();
    shared.insert(
        shared.begin(),
        {"kind", words, "required",
         "event files ([EVENT_FILE.md](EVENT_FILE.md)), HDF5 files in NeXus layout ([HDF5.md](HDF5.md)), the "
         "packets themselves ([RECORDER.md](../guides/RECORDER.md); beside other sinks or alone), or nowhere"});
    out.push_back({"sink", "key", std::move(shared)});
    for (const SinkEntry& entry : kinds())
        if (!entry.options.keys.empty())
            out.push_back({fmt::format("sink.{}", entry.options.name), "key", entry.options.explained});
}

}  // namespace weir::pipeline::detail

namespace weir::pipeline {

std::string_view sink_kind_name(SinkKind kind) {
    return detail::entry_of(kind).options.name;
}

}  // namespace weir::pipeline
