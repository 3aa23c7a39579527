// [[reduce]] kind = "pedestal": which frames are dark, and what is made of them.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/reducer.hpp"
#include "reduce/pedestal/collect.hpp"

namespace weir::pipeline::detail {

namespace {

constexpr auto keys =
    std::to_array<std::string_view>({"every", "flag", "all", "gain", "frames", "outlier", "outlier_after", "rms_max",
                                     "interval", "snapshots", "snapshot_seconds", "start", "rms", "keep", "queue"});

using Dark = PedestalOptions::Dark;
using Start = PedestalOptions::Start;

constexpr std::uint32_t header_bytes = 48;
constexpr std::string_view dark_accepted =
    "one of every = N (every Nth event number), flag = { offset = 40, bytes = 4, mask = 0x80000000 } (a field of the "
    "detector header), all = true (a run of nothing but dark frames)";

/// TOML has no unsigned 64-bit integers, so the largest is written as a negative one.
std::uint64_t unsigned_value(TableReader& table, std::string_view key, std::uint64_t fallback) {
    const auto value = table.signed_integer(key);
    return value ? static_cast<std::uint64_t>(*value) : fallback;
}

void read_dark(TableReader& table, PedestalOptions& out) {
    const auto every = table.integer("every", {1, std::uint64_t{1} << 40U});
    auto flag = table.table("flag");
    const bool all = table.boolean("all").value_or(false);
    const int found = (every ? 1 : 0) + (flag ? 1 : 0) + (all ? 1 : 0);
    if (found == 0) table.missing("every", dark_accepted);
    if (found > 1)
        table.wrong(every ? "every" : "flag", fmt::format("{} ways to tell dark frames", found), dark_accepted);
    out.dark = every ? Dark::every : flag ? Dark::flag : Dark::all;
    out.every = every.value_or(0);
    if (!flag) return;
    out.flag = read_field(*flag, header_bytes, {"value"});
    if (flag->get("value") != nullptr) out.flag_value = unsigned_value(*flag, "value", 0);
    flag->finish();
}

/// The sums of an interval have room for so many dark frames.
std::uint64_t interval_max(const PedestalOptions& options) {
    return reduce::PedestalSums::frames_max * std::max<std::uint64_t>(options.every, 1);
}

std::uint64_t interval_default(const PedestalOptions& options) {
    return options.dark == Dark::every ? 10 * options.every : 1000;
}

void read_start(TableReader& table, PedestalOptions& out) {
    const auto start = table.text("start");
    if (start && start->empty())
        table.wrong("start", "an empty string", "\"files\" (those of jungfrau), \"last\", or the path of a snapshot");
    if (start == "last") {
        out.start = Start::last;
        if (out.snapshots.empty())
            table.wrong("start", "\"last\" without snapshots",
                        "\"last\" with snapshots = \"DIR\", where to look for it");
    } else if (start && *start != "files") {
        out.start = Start::snapshot;
        out.start_path = config_path(table, *start).string();
    }
    if (const toml::node* rms = table.get("rms")) {
        out.rms = read_files(table, "rms", *rms);
        if (out.start == Start::snapshot)
            table.wrong("rms", "files beside a snapshot to start from, which has them", "rms where start is \"files\"");
    }
}

ReduceOptions read(TableReader& table) {
    PedestalOptions options;
    read_dark(table, options);
    options.gain = static_cast<std::uint32_t>(table.integer("gain", {0, 2}).value_or(0));
    options.frames = static_cast<std::uint32_t>(table.integer("frames", {2, 10'000'000}).value_or(options.frames));
    options.outlier = table.number("outlier", 0, 1000).value_or(options.outlier);
    options.outlier_after = static_cast<std::uint32_t>(
        table.integer("outlier_after", {2, options.frames}).value_or(std::min(options.outlier_after, options.frames)));
    options.rms_max = table.number("rms_max", 0, 16383).value_or(0);
    options.interval = table.integer("interval", {std::max<std::uint64_t>(options.every, 1), interval_max(options)})
                           .value_or(interval_default(options));
    if (const auto snapshots = table.text("snapshots")) {
        if (snapshots->empty()) table.wrong("snapshots", "an empty string", "a folder");
        options.snapshots = config_path(table, *snapshots).string();
    }
    options.snapshot_seconds =
        static_cast<std::uint32_t>(table.integer("snapshot_seconds", {0, 86400 * 365}).value_or(0));
    read_start(table, options);
    options.keep = table.boolean("keep").value_or(true);
    options.queue = static_cast<std::uint32_t>(table.integer("queue", {1, 1024}).value_or(options.queue));
    return options;
}

std::string dark_text(const PedestalOptions& options) {
    const std::string value =
        options.flag_value ? fmt::format(", value = {}", static_cast<std::int64_t>(*options.flag_value)) : "";
    return field_text(options.flag, value);
}

std::string start_text(const PedestalOptions& options) {
    return options.start == Start::files ? "files" : options.start == Start::last ? "last" : options.start_path;
}

void print(Printer& out, const ReduceOptions& from) {
    const auto& options = std::get<PedestalOptions>(from);
    const PedestalOptions defaults;
    if (options.dark == Dark::every) out.line("every", std::to_string(options.every));
    if (options.dark == Dark::flag) out.line("flag", dark_text(options));
    if (options.dark == Dark::all) out.line("all", "true");
    out.number("gain", options.gain, defaults.gain);
    out.number("frames", options.frames, defaults.frames);
    out.line("outlier", fmt::format("{}", options.outlier), options.outlier == defaults.outlier);
    out.number("outlier_after", options.outlier_after, std::min(defaults.outlier_after, options.frames));
    out.line("rms_max", fmt::format("{}", options.rms_max), options.rms_max == 0);
    out.number("interval", options.interval, interval_default(options));
    if (options.snapshots.empty())
        out.comment("snapshots: with the run, if it has a folder (default)");
    else
        out.line("snapshots", in_quotes(options.snapshots));
    out.number("snapshot_seconds", options.snapshot_seconds, 0);
    out.line("start", in_quotes(start_text(options)), options.start == Start::files);
    if (!options.rms.empty()) out.line("rms", files_text(options.rms));
    out.line("keep", options.keep ? "true" : "false", options.keep);
    out.number("queue", options.queue, defaults.queue);
}

nlohmann::json json(const ReduceOptions& from) {
    const auto& options = std::get<PedestalOptions>(from);
    nlohmann::json out{{"gain", options.gain},
                       {"frames", options.frames},
                       {"outlier", options.outlier},
                       {"outlier_after", options.outlier_after},
                       {"rms_max", options.rms_max},
                       {"interval", options.interval},
                       {"snapshot_seconds", options.snapshot_seconds},
                       {"start", start_text(options)},
                       {"keep", options.keep},
                       {"queue", options.queue}};
    if (options.dark == Dark::every) out["every"] = options.every;
    if (options.dark == Dark::all) out["all"] = true;
    if (options.dark == Dark::flag) {
        out["flag"] = field_json(options.flag);
        if (options.flag_value) out["flag"]["value"] = *options.flag_value;
    }
    if (!options.snapshots.empty()) out["snapshots"] = options.snapshots;
    if (!options.rms.empty()) out["rms"] = files_json(options.rms);
    return out;
}

}  // namespace

const ReducerEntry pedestal_entry{"pedestal", set_of(ReduceData::raw_pixels), {}, {}, keys, read, print, json};

}  // namespace weir::pipeline::detail
