// [[sink]]: what all kinds have in common.
#include "config/sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/parts.hpp"
#include "config/sinks/entry.hpp"
#include "config/sinks/pcapng.hpp"
#include "options/kind.hpp"

namespace weir::config::detail {

namespace {

// {name}, {run}, {run:06}, {date}, {node}; a brace on its own would end up in a file name.
void check_path(TableReader& table, std::string_view path) {
    constexpr std::string_view accepted =
        "a path with {name}, {run}, {run:06}, {date} or {node} in it, no other braces";
    for (std::size_t at = path.find_first_of("{}"); at != std::string_view::npos; at = path.find_first_of("{}", at)) {
        const std::size_t end = path.find('}', at);
        if (path[at] == '}' || end == std::string_view::npos) table.wrong("path", "a single brace", accepted);
        const std::string_view field = path.substr(at + 1, end - at - 1);
        // {run:0N}: zero-padded to N digits.
        const bool padded = field.size() == 6 && field.substr(0, 5) == "run:0" && field[5] >= '1' && field[5] <= '9';
        if (field != "name" && field != "run" && field != "date" && field != "node" && !padded)
            table.wrong("path", fmt::format("{{{}}}", field), accepted);
        at = end + 1;
    }
}

/// Of all kinds that write files.
OptionTable<SinkConfig> file_options() {
    OptionTable<SinkConfig> out;
    out.text("path", &SinkConfig::path,
             "what the run is written to, refused if it exists. `{name}`, `{run}` (a number kept across restarts, "
             "one for all sinks of a run), `{run:06}` (with leading zeroes), `{date}`, "
             "and in a cluster `{node}` (the name of the node that writes). "
             "`--out` replaces that of the first sink that has one")
        .required("what to create, as \"/data/{name}-{run:06}\"")
        .usually("required but for stream and null")
        .check([](TableReader& table, const SinkConfig& sink) { check_path(table, sink.path); });
    out.integer(
        "full_warning_seconds", {0, 1U << 30}, &SinkConfig::full_warning_seconds,
        "not for stream and null: a warning when at the rate of the last ten seconds the disk will be full in less than this; "
        "again at half of what was left. 0: none");
    out.text("require_mount", &SinkConfig::require_mount,
             "not for stream and null: the run is refused unless a file system is mounted at exactly this directory, "
             "so that a disk that did not come up is not taken for the empty directory under it")
        .kind("path");
    return out;
}

/// Of all kinds that write.
OptionTable<SinkConfig> error_options() {
    OptionTable<SinkConfig> out;
    out.choice("on_error", on_error_names, &SinkConfig::on_error,
               "not for null: what a full disk or a failed write does: the run ends with an error (exit status 1), "
               "or goes on while another sink takes events. Then `written` is about the others, "
               "and what this one lost is in the report's `sinks` and in a warning")
        .otherwise([](SinkConfig& sink) {
            const auto usually = entry_of(sink).usually;
            sink.on_error = usually != nullptr ? usually(sink.options) : SinkError::stop;
        })
        .usually("`\"stop\"`");
    return out;
}

/// What the kinds have in common, as far as this one has it.
OptionTable<SinkConfig> shared_options(bool has_path = true) {
    OptionTable<SinkConfig> out;
    if (has_path) out.include(file_options());
    return out.include(error_options());
}

/// Those that may be written.
std::vector<const SinkEntry*> written_entries() {
    std::vector<const SinkEntry*> entries;
    for (const SinkEntry& entry : sink_entries())
        if (entry.by_itself.empty()) entries.push_back(&entry);
    return entries;
}

std::vector<std::string_view> sink_names() {
    std::vector<std::string_view> names;
    for (const SinkEntry* entry : written_entries()) names.push_back(entry->kind.name);
    return names;
}

void refuse_what_runs_have_by_themselves(TableReader& table) {
    const toml::node* kind = table.get("kind");
    if (kind == nullptr) return;
    for (const SinkEntry& entry : sink_entries())
        if (!entry.by_itself.empty() && kind->value<std::string_view>() == entry.kind.name)
            table.wrong("kind", in_quotes(entry.kind.name),
                        fmt::format("{}, because {}", any_of(sink_names()), entry.by_itself));
}

/// Of all kinds: which of them a sink has is said by `refuse_foreign`.
std::vector<std::string_view> all_keys() {
    std::vector<std::string_view> keys = shared_options().keys();
    keys.insert(keys.begin(), "kind");
    for (const SinkEntry& entry : sink_entries())
        keys.insert(keys.end(), entry.kind.keys.begin(), entry.kind.keys.end());
    return keys;
}

/// Keys that only other kinds have.
void refuse_foreign(TableReader& table, const SinkEntry& entry) {
    const std::string no_files = fmt::format("nothing: a sink of kind \"{}\" writes no files", entry.kind.name);
    if (!entry.writes)
        for (const std::string_view key : shared_options().keys()) table.refuse(key, no_files);
    else if (!entry.has_path)
        for (const std::string_view key : file_options().keys()) table.refuse(key, no_files);
    for (const SinkEntry& other : sink_entries())
        for (const std::string& key : other.kind.keys)
            if (!entry.kind.has(key))
                table.refuse(key, entry.writes ? fmt::format("nothing: a sink of kind \"{}\" has no such key, "
                                                             "one of kind \"{}\" has",
                                                             entry.kind.name, other.kind.name)
                                               : no_files);
}

const SinkEntry& read_kind(TableReader& table) {
    refuse_what_runs_have_by_themselves(table);
    const auto index = table.word("kind", sink_names());
    if (!index) table.missing("kind", any_of(sink_names()));
    return *std::ranges::find(sink_entries(), sink_names()[*index],
                              [](const SinkEntry& entry) { return entry.kind.name; });
}

SinkConfig read_sink(TableReader& table) {
    SinkConfig sink;
    sink.place = table.place();
    table.allow(all_keys());
    const SinkEntry& entry = read_kind(table);
    refuse_foreign(table, entry);
    sink.options = entry.kind.read(table);
    if (entry.writes) shared_options(entry.has_path).read_values(table, sink);
    return sink;
}

}  // namespace

std::vector<SinkConfig> read_sinks(TableReader& root, const RunConfig& run) {
    std::vector<SinkConfig> out;
    for (TableReader& table : root.tables("sink")) {
        SinkConfig sink = read_sink(table);
        if (sink.has_path()) check_node_in_path(table, run, sink);
        for (const SinkConfig& other : out)
            if (sink.has_path() && other.path == sink.path)
                table.wrong("path", fmt::format("the path of the sink at line {}", other.place.line),
                            "a path of its own for each sink");
        out.push_back(std::move(sink));
    }
    if (out.empty())
        root.missing("sink", fmt::format("at least one [[sink]], of kind {}; or --out PATH", any_of(sink_names())));
    return out;
}

std::string print_sink(const SinkConfig& sink) {
    const SinkEntry& entry = entry_of(sink);
    const std::string head = fmt::format("\n[[sink]]\nkind = {}\n", in_quotes(entry.kind.name));
    return entry.writes ? head + shared_options(entry.has_path).print(sink) + entry.kind.print(sink.options) : head;
}

nlohmann::json sink_json(const SinkConfig& sink) {
    const SinkEntry& entry = entry_of(sink);
    nlohmann::json out = entry.writes ? shared_options(entry.has_path).report(sink) : nlohmann::json::object();
    out.update(entry.kind.report(sink.options));
    out["kind"] = entry.kind.name;
    return out;
}

void explain_sinks(Reference& out) {
    const std::vector<const SinkEntry*> entries = written_entries();
    std::vector<Explained> shared = shared_options().explained();
    std::string meanings;
    for (const SinkEntry* entry : entries)
        meanings += fmt::format("{}{}",
                                meanings.empty()          ? ""
                                : entry == entries.back() ? ", or "
                                                          : ", ",
                                entry->meaning);
    shared.insert(shared.begin(),
                  {"kind", quoted_words(sink_names()), "required", meanings, {{"enum", sink_names()}}, true});
    out.push_back({"sink", "key", std::move(shared)});
    for (const SinkEntry* entry : entries)
        if (!entry->kind.keys.empty())
            out.push_back({fmt::format("sink.{}", entry->kind.name), "key", entry->kind.explained});
}

bool goes_to_builders(const SinkConfig& sink) {
    return sink.as<RecorderConfig>() == nullptr;
}

void check_sinks(const RunConfig& run) {
    for (const SinkEntry& entry : sink_entries())
        if (entry.check != nullptr) entry.check(run);
}

void warn_of_sinks(RunConfig& run) {
    for (const SinkEntry& entry : sink_entries())
        if (entry.warn != nullptr) entry.warn(run);
}

}  // namespace weir::config::detail
