// `weir diff`: which events of two runs differ, and how. The comparison is in store/run_diff.hpp.
#include "command.hpp"

#include <fmt/core.h>

#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>

#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "options/text.hpp"
#include "options_common.hpp"
#include "run_text.hpp"
#include "store/cluster_run.hpp"
#include "store/run_diff.hpp"
#include "terminal.hpp"

namespace weir::app {

namespace {

namespace po = boost::program_options;
using nlohmann::json;
using store::Change;
using store::EventDifference;
using store::PayloadDifference;
using store::RunDiff;
using store::RunReader;
using store::SourceDifference;

constexpr std::string_view diff_intro = R"(usage: weir diff RUN RUN [options]

Says which events of two runs differ, and how: events that only one of them has; events that are complete in one only;
sources, and ranges that are missing; the detector's own header fields that are kept with a message; and the payload,
decoded: how many bytes differ and where the first one is, and in images which pixels. Events are found by epoch and
number, so their order in the files, the number of lcores, and compression make no difference. How the runs were
configured differently is said first, and is no difference by itself. When packets came is compared with --times only.
A RUN may be a folder with the runs of a cluster's builders.

Every byte that is compared is checked on the way; an event that is damaged counts as one that differs. Memory: 64
bytes per event, and two events.

)";

constexpr std::string_view diff_examples = R"(
examples:
  weir diff live replayed                 are they the same? the first 20 events that are not
  weir diff live replayed --json          every event that differs, for programs
  weir diff old new --tolerance 0.01      of calibrated pixels: differences up to 0.01 (keV, photons) are none

exit status: 0 the events are the same, 1 they differ (or a run cannot be read to its end), 2 bad usage, or a path that
is no run
)";

struct DiffOptions {
    std::vector<std::string> runs;
    bool json = false;
    bool quiet = false;
    std::uint64_t limit = 0;
    std::optional<double> tolerance;
    RunDiff::Config diff;
};

double tolerance_of(const std::string& text) {
    std::size_t used = 0;
    double value = -1;
    try {
        value = std::stod(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    if (used == text.size() && std::isfinite(value) && value >= 0) return value;
    throw core::UsageError(fmt::format("diff: --tolerance: found \"{}\"; accepted: a number from 0 on", text));
}

std::optional<DiffOptions> parse_diff_options(const std::vector<std::string>& args) {
    po::options_description visible = options_for_terminal("options");
    // clang-format off
    visible.add_options()
        ("json", "print JSON instead of text")
        ("times", "compare also when packets came")
        ("tolerance", po::value<std::string>()->value_name("X"), "of calibrated pixels: values that differ by no more are the same")
        ("limit", po::value<std::uint64_t>()->value_name("N"), "print the first N events that differ; default: 20, with --json all")
        ("max-event", po::value<std::string>()->value_name("SIZE")->default_value("2GiB"), "an event with more payload is not compared, and counts as one that differs")
        ("quiet", "print nothing: the exit status says it")
        ("help,h", "this text");
    // clang-format on
    po::options_description all;
    all.add(visible).add_options()("run", po::value<std::vector<std::string>>());
    const po::variables_map given = parse(args, all, "run");
    if (given.count("help") > 0) {
        print_help(diff_intro, visible, diff_examples);
        return {};
    }
    DiffOptions options;
    if (given.count("run") > 0) options.runs = given["run"].as<std::vector<std::string>>();
    if (options.runs.size() != 2)
        throw core::UsageError(fmt::format("diff: found {}; two runs are compared: weir diff RUN RUN",
                                           count_text(options.runs.size(), "run")));
    options.json = given.count("json") > 0;
    options.quiet = given.count("quiet") > 0;
    constexpr std::uint64_t usual_limit = 20;
    options.limit = options.json ? std::numeric_limits<std::uint64_t>::max() : usual_limit;
    if (given.count("limit") > 0) options.limit = given["limit"].as<std::uint64_t>();
    if (given.count("tolerance") > 0) options.tolerance = tolerance_of(given["tolerance"].as<std::string>());
    options.diff.tolerance = options.tolerance.value_or(0);
    options.diff.times = given.count("times") > 0;
    const std::string size = given["max-event"].as<std::string>();
    const std::optional<std::uint64_t> bytes_max = options::parse_size(size);
    if (!bytes_max || *bytes_max == 0)
        throw core::UsageError(fmt::format("diff: --max-event: found \"{}\"; accepted: a size like 8GiB", size));
    options.diff.bytes_max = *bytes_max;
    return options;
}

/// A path that is no run is a mistake on the command line: exit status 1 says that two runs differ.
RunReader open_run(const std::string& path) {
    try {
        return store::open_run(path);
    } catch (const core::RunError& error) {
        throw core::UsageError(fmt::format("diff: {}", error.what()));
    }
}

// --- JSON ------------------------------------------------------------------------------------------------------------

json changes_json(const std::vector<Change>& changes) {
    json object = json::object();
    for (const Change& change : changes) object[std::string(change.what)] = {change.first, change.second};
    return object;
}

/// JSON has no NaN and no infinity.
json value_json(double value) {
    if (std::isnan(value)) return "no value";
    if (std::isinf(value)) return "saturated";
    return value;
}

json payload_json(const PayloadDifference& payload) {
    json object = {{"compared", payload.compared}, {"bytes", payload.bytes}, {"first_offset", payload.first_offset}};
    if (payload.first_byte) object["first_bytes"] = {*payload.first_byte, *payload.second_byte};
    if (payload.pixels == 0) return object;
    object["pixels"] = payload.pixels;
    object["largest"] = payload.largest;
    object["listed"] = json::array();
    for (const PayloadDifference::Pixel& pixel : payload.listed)
        object["listed"].push_back({{"row", pixel.row},
                                    {"column", pixel.column},
                                    {"values", {value_json(pixel.first), value_json(pixel.second)}}});
    return object;
}

json event_difference_json(const EventDifference& event) {
    constexpr std::array<const char*, 3> names{"both", "first", "second"};
    json object = {{"epoch", event.epoch}, {"id", event.id}, {"in", names[static_cast<std::size_t>(event.in)]}};
    if (!event.changes.empty()) object["changes"] = changes_json(event.changes);
    for (const SourceDifference& source : event.sources) {
        json one = {{"id", source.id}};
        if (!source.changes.empty()) one["changes"] = changes_json(source.changes);
        if (source.payload) one["payload"] = payload_json(*source.payload);
        object["sources"].push_back(one);
    }
    return object;
}

json totals_json(const RunDiff::Totals& totals) {
    return {{"compared", totals.compared},     {"same", totals.same},
            {"differ", totals.differ},         {"unreadable", totals.unreadable},
            {"only_first", totals.only_first}, {"only_second", totals.only_second},
            {"copies", totals.copies}};
}

json diff_run_json(const RunReader& run) {
    return {{"path", run.path().string()}, {"closed", run.closed()}, {"being_written", run.being_written()}};
}

/// Events are printed as they are found: there may be more of them than memory.
class DiffJson {
public:
    DiffJson(const RunReader& first, const RunReader& second, const RunDiff& diff) {
        json description = json::array();
        for (const auto& [pointer, change] : diff.description())
            description.push_back({{"key", pointer}, {"values", {change.first, change.second}}});
        std::cout << "{\"first\": " << dump(diff_run_json(first)) << ",\n\"second\": " << dump(diff_run_json(second))
                  << ",\n\"description\": " << dump(description) << ",\n\"events\": [";
    }
    void put(const EventDifference& event) {
        std::cout << (first_ ? "" : ",") << "\n  " << dump(event_difference_json(event));
        first_ = false;
    }
    static void end(const RunDiff::Totals& totals) {
        std::cout << "],\n\"totals\": " << dump(totals_json(totals))
                  << ",\n\"same\": " << (totals.all_same() ? "true" : "false") << "}\n";
    }

private:
    bool first_ = true;
};

// --- text ------------------------------------------------------------------------------------------------------------

/// In words: "nothing" for what one of both does not have.
std::string value_text(const json& value) {
    if (value.is_null()) return "nothing";
    if (value.is_string()) return value.get<std::string>();
    if (value.is_array() && value.empty()) return "none";
    constexpr std::size_t most = 60;
    std::string text = dump(value);
    if (text.size() > most) text = text.substr(0, most) + "...";
    return text;
}

std::string pixel_text(double value) {
    if (std::isnan(value)) return "no value";
    if (std::isinf(value)) return "saturated";
    return fmt::format("{:.7g}", value);
}

void print_changes(const std::vector<Change>& changes, std::string_view indent) {
    for (const Change& change : changes)
        fmt::print("{}{}: {} | {}\n", indent, change.what, value_text(change.first), value_text(change.second));
}

void print_payload(const PayloadDifference& payload) {
    fmt::print("    payload: {} of {} bytes differ, the first at {}", payload.bytes, payload.compared,
               payload.first_offset);
    if (payload.first_byte) fmt::print(": {:#04x} | {:#04x}", *payload.first_byte, *payload.second_byte);
    fmt::print("\n");
    if (payload.pixels == 0) return;
    fmt::print("    {}, the largest difference is {:.7g}\n", count_text(payload.pixels, "pixel"), payload.largest);
    for (const PayloadDifference::Pixel& pixel : payload.listed)
        fmt::print("      row {} column {}: {} | {}\n", pixel.row, pixel.column, pixel_text(pixel.first),
                   pixel_text(pixel.second));
    if (payload.pixels > payload.listed.size()) fmt::print("      ...\n");
}

void print_event(const EventDifference& event) {
    const std::string name = fmt::format("event {}:{}", event.epoch, event.id);
    if (event.in != EventDifference::In::both) {
        fmt::print("{}: only in the {} run\n", name, event.in == EventDifference::In::first ? "first" : "second");
        return;
    }
    fmt::print("{}\n", name);
    print_changes(event.changes, "  ");
    for (const SourceDifference& source : event.sources) {
        fmt::print("  source {}\n", source.id);
        print_changes(source.changes, "    ");
        if (source.payload) print_payload(*source.payload);
    }
}

void print_head(const RunReader& first, const RunReader& second, const RunDiff& diff) {
    fmt::print("first: {}\nsecond: {}\n", first.path().string(), second.path().string());
    const auto description = diff.description();
    if (description.empty()) return;
    fmt::print("they were configured differently, which is no difference by itself:\n");
    for (const auto& [pointer, change] : description)
        fmt::print("  {}: {} | {}\n", pointer, value_text(change.first), value_text(change.second));
}

void print_totals(const RunDiff::Totals& totals, std::uint64_t printed) {
    const std::uint64_t all = totals.differ + totals.only_first + totals.only_second;
    if (printed < all) fmt::print("... and {} more (--limit)\n", all - printed);
    fmt::print("{} in both: {} the same, {} not", count_text(totals.compared, "event"), totals.same, totals.differ);
    if (totals.unreadable > 0) fmt::print(" ({} cannot be read)", totals.unreadable);
    fmt::print("; {} only in the first run, {} only in the second\n", totals.only_first, totals.only_second);
    if (totals.copies > 0) fmt::print("{}\n", copies_text(totals.copies));
}

void warn_if_open(const RunReader& run) {
    if (run.being_written())
        core::print_stderr("weir: {} is still being written: what it has so far is compared\n", run.path().string());
    else if (!run.closed())
        core::print_stderr("weir: {} was not closed: its events up to where it ends are compared\n",
                           run.path().string());
}

int diff_command(const std::vector<std::string>& args) {
    const std::optional<DiffOptions> options = parse_diff_options(args);
    if (!options) return 0;
    const RunReader first = open_run(options->runs[0]);
    const RunReader second = open_run(options->runs[1]);
    const RunDiff diff(first, second, options->diff);
    if (options->tolerance && !diff.has_pixels())
        throw core::UsageError(
            "diff: --tolerance is for runs that both keep calibrated pixels; what was received is "
            "compared byte by byte");
    warn_if_open(first);
    warn_if_open(second);
    std::unique_ptr<DiffJson> as_json;
    if (!options->quiet && options->json) as_json = std::make_unique<DiffJson>(first, second, diff);
    if (!options->quiet && !options->json) print_head(first, second, diff);
    std::uint64_t printed = 0;
    std::unique_ptr<Progress> progress;
    const RunDiff::Totals totals = diff.compare(
        [&](const EventDifference& event) {
            if (options->quiet || printed == options->limit) return;
            ++printed;
            if (progress) progress->clear();
            if (as_json)
                as_json->put(event);
            else
                print_event(event);
        },
        [&](std::uint64_t done, std::uint64_t of) {
            if (!progress) progress = std::make_unique<Progress>("compared", of, options->quiet);
            progress->at(done);
        });
    progress.reset();
    if (as_json) DiffJson::end(totals);
    if (!options->quiet && !options->json) print_totals(totals, printed);
    return totals.all_same() ? 0 : 1;
}

}  // namespace

Command diff_entry() {
    return {"diff", "say which events of two runs differ, and how", diff_command};
}

}  // namespace weir::app
