// `weir inspect`: lists a run, verifies it, and gives single events back.
#include "inspect.hpp"

#include <fmt/core.h>

#include <boost/program_options.hpp>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <optional>

#include "core/error.hpp"
#include "store/image.hpp"
#include "store/run_reader.hpp"
#include "store/sha256.hpp"

namespace weir::app {

namespace {

using nlohmann::json;
using store::EventInfo;
using store::RunReader;
using store::SourceInfo;
using store::SourceState;

constexpr std::string_view intro = R"(usage: weir inspect PATH [options]

Reads every byte of a run (the directory that `weir run` or `weir replay` wrote), lists its events, and says
whether everything verifies: checksums of all blocks, the index, the manifest, and the ledger's count of events.
An unfinished run, .NAME.part, is read up to where it ends.

)";

constexpr std::string_view examples = R"(
examples:
  weir inspect out                        a table of the first events, totals, and the verdict
  weir inspect out --json --digest sha256 for programs: every event with the digest of its payload
  weir inspect out --export 7 frame.bin   the payload of event 7: source 0, then 1, ..., zeros where bytes are missing
  weir inspect out --export 1:7 m0.bin --source 0
                                          event 7 of epoch 1 (a detector restart begins a new epoch), one source only
  weir inspect out --png 7 frame.png      event 7 as a 16-bit image, its 1st to 99th percentile stretched from black to
                                          white; sources below each other, 1024 pixels wide unless --width says otherwise

exit status: 0 everything verifies (incomplete events included), 1 it does not, 2 bad usage
)";

/// "--export ID FILE" or "--png ID FILE"
struct Extract {
    std::optional<std::uint32_t> epoch;
    std::uint64_t id = 0;
    std::string file;
};

struct Options {
    std::string path;
    bool json = false;
    bool digest = false;
    bool all = false;
    std::optional<Extract> to_file;
    std::optional<Extract> to_png;
    std::optional<std::uint32_t> source;
    std::optional<std::uint32_t> width;
};

template <class T>
T parse_number(std::string_view text, std::string_view whole) {
    const bool hexadecimal = text.starts_with("0x");
    const std::string_view digits = hexadecimal ? text.substr(2) : text;
    T value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
    if (result.ec != std::errc{} || result.ptr != digits.data() + digits.size())
        throw core::UsageError(
            fmt::format("inspect: \"{}\" is not an event; write ID or EPOCH:ID, like 7 or 1:7", whole));
    return value;
}

Extract parse_extract(const std::string& event, const std::string& file) {
    Extract extract;
    const std::size_t colon = event.find(':');
    if (colon != std::string::npos) extract.epoch = parse_number<std::uint32_t>(event.substr(0, colon), event);
    extract.id = parse_number<std::uint64_t>(event.substr(colon == std::string::npos ? 0 : colon + 1), event);
    extract.file = file;
    return extract;
}

/// Takes `NAME EVENT FILE` out of the arguments: Boost has no options with exactly two values.
std::optional<Extract> take_extract(std::vector<std::string>& args, std::string_view name) {
    for (std::size_t i = 0; i < args.size(); ++i) {
        if (args[i] != name) continue;
        if (args.size() - i < 3) throw core::UsageError(fmt::format("inspect: {} needs an event and a file", name));
        const Extract extract = parse_extract(args[i + 1], args[i + 2]);
        args.erase(args.begin() + static_cast<std::ptrdiff_t>(i), args.begin() + static_cast<std::ptrdiff_t>(i) + 3);
        if (take_extract(args, name)) throw core::UsageError(fmt::format("inspect: {} can be given once", name));
        return extract;
    }
    return {};
}

/// Nothing if --help was asked for and printed.
std::optional<Options> parse_options(std::vector<std::string> args) {
    namespace po = boost::program_options;
    Options options;
    std::string digest;
    po::options_description visible("options");
    visible.add_options()("help,h", "this text")("json", "print JSON instead of a table")(
        "digest", po::value(&digest)->value_name("sha256"), "with --json: the SHA-256 of every event's payload")(
        "all", "list all events, not only the first 20")("export", "[EPOCH:]ID FILE: write the payload of one event")(
        "png", "[EPOCH:]ID FILE: write one event as a 16-bit image")(
        "source", po::value<std::uint32_t>()->value_name("N"), "with --export and --png: only this source")(
        "width", po::value<std::uint32_t>()->value_name("N"), "with --png: pixels in a row");
    po::options_description all_options;
    all_options.add(visible).add_options()("path", po::value(&options.path));
    po::positional_options_description positional;
    positional.add("path", 1);

    for (const std::string& arg : args) {
        if (arg != "--help" && arg != "-h") continue;
        std::cout << intro << visible << examples;
        return {};
    }
    options.to_file = take_extract(args, "--export");
    options.to_png = take_extract(args, "--png");
    po::variables_map values;
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(args).options(all_options).positional(positional).style(style).run(), values);
    po::notify(values);

    if (options.path.empty())
        throw core::UsageError("inspect: which run? give the path of its directory (weir inspect --help)");
    if (!digest.empty() && digest != "sha256") throw core::UsageError("inspect: --digest knows sha256 only");
    if (values.count("export") + values.count("png") > 0)
        throw core::UsageError("inspect: --export and --png need an event and a file");
    options.json = values.count("json") > 0;
    options.digest = !digest.empty();
    options.all = values.count("all") > 0;
    if (values.count("source") > 0) options.source = values["source"].as<std::uint32_t>();
    if (values.count("width") > 0) options.width = values["width"].as<std::uint32_t>();
    if (options.source && !options.to_file && !options.to_png)
        throw core::UsageError("inspect: --source goes with --export or --png");
    if (options.width && !options.to_png) throw core::UsageError("inspect: --width goes with --png");
    return options;
}

// --- one event -------------------------------------------------------------------------------------------------------

EventInfo find_event(const RunReader& run, const Extract& extract) {
    const std::optional<EventInfo> event = run.find(extract.epoch, extract.id);
    const std::string epoch = extract.epoch ? fmt::format("{}:", *extract.epoch) : "";
    if (!event) throw core::RunError(fmt::format("{} has no event {}{}", run.path().string(), epoch, extract.id));
    return *event;
}

/// The payload with zeros for missing ranges. Where a size is not known nothing can be filled in: then what was
/// received is written without gaps, and said.
void export_event(const RunReader& run, const EventInfo& event, const Options& options) {
    bool sizes_known = true;
    bool found = !options.source.has_value();
    std::uint64_t total = 0;
    std::vector<std::uint64_t> starts;
    std::vector<bool> chosen;
    for (const SourceInfo& source : event.sources) {
        chosen.push_back(!options.source || *options.source == source.id);
        starts.push_back(total);
        if (!chosen.back()) continue;
        found = true;
        sizes_known = sizes_known && source.size_known();
        total += source.declared_bytes;
    }
    if (!found) throw core::RunError(fmt::format("event {} has no source {}", event.id, *options.source));

    store::File file = store::File::create(options.to_file->file);
    std::uint64_t compact = 0;
    try {
        run.read_payload(event, [&](std::size_t source, std::uint64_t offset, std::span<const std::byte> piece) {
            if (!chosen[source]) return;
            file.write_at(sizes_known ? starts[source] + offset : compact, piece);
            compact += piece.size();
        });
    } catch (const core::RunError&) {
        std::remove(options.to_file->file.c_str());  // half an event would look like one
        throw;
    }
    if (sizes_known && !file.truncate(total))
        throw core::RunError(fmt::format("cannot write {}", options.to_file->file));
    const std::uint64_t written = sizes_known ? total : compact;
    std::cerr << fmt::format("event {}:{}: {} bytes to {}", event.epoch, event.id, written, options.to_file->file);
    if (!sizes_known) {
        std::cerr << " (a message's size was never learnt: received bytes only, gaps are not filled)";
    } else if (compact < total) {
        std::cerr << fmt::format(" ({} of them missing, written as zeros)", total - compact);
    }
    std::cerr << '\n';
}

/// JUNGFRAU modules are 1024 pixels wide. For other formats only the user knows.
std::uint32_t image_width(const RunReader& run, const Options& options) {
    constexpr std::uint32_t jungfrau_width = 1024;
    if (options.width) return *options.width;
    const json start = run.start().is_object() ? run.start().value("start", json()) : json();
    const json& known = run.manifest().contains("config") ? run.manifest() : start;
    if (!known.is_object() || !known.contains("config")) return jungfrau_width;
    const json& config = known["config"];
    if (!config.is_object() || !config.contains("stream") || !config["stream"].is_array()) return jungfrau_width;
    for (const json& stream : config["stream"]) {
        if (!stream.is_object() || !stream.contains("format") || stream["format"] == "jungfrau") continue;
        throw core::RunError(fmt::format("format {} has no image geometry: say --width", stream["format"].dump()));
    }
    return jungfrau_width;
}

void write_event_png(const RunReader& run, const EventInfo& event, const Options& options) {
    store::Image image = store::event_image(run, event, image_width(run, options), options.source);
    const store::Levels levels = store::percentile_levels(image);
    store::stretch(image, levels);
    store::write_png(options.to_png->file, image);
    std::cerr << fmt::format("event {}:{}: {} x {} pixels, values {} to {} from black to white, to {}\n", event.epoch,
                             event.id, image.width, image.height, levels.low, levels.high, options.to_png->file);
}

// --- JSON ------------------------------------------------------------------------------------------------------------

json source_json(const SourceInfo& source) {
    json object = {{"id", source.id}, {"bytes", source.received_bytes}};
    if (source.state == SourceState::absent_unknown) {
        object["missing"] = "all";
    } else if (source.state == SourceState::size_unknown) {
        object["missing"] = "unknown";
    } else {
        object["missing"] = json::array();
        for (const store::MissingRange& range : source.missing)
            object["missing"].push_back({range.offset, range.bytes});
    }
    return object;
}

json event_json(const EventInfo& event) {
    json object = {{"epoch", event.epoch},       {"id", event.id},
                   {"complete", event.complete}, {"bytes", event.payload_bytes},
                   {"first_ns", event.first_ns}, {"last_ns", event.last_ns}};
    if (!event.complete) object["cause"] = store::cause_names[static_cast<std::size_t>(event.cause)];
    object["sources"] = json::array();
    for (const SourceInfo& source : event.sources) object["sources"].push_back(source_json(source));
    return object;
}

json run_json(const RunReader& run, const store::Verification& result) {
    json object = run.manifest();
    if (!run.closed() && run.start().is_object()) {
        object = run.start().value("start", json::object());
        if (!object.is_object()) object = json::object();
        object["name"] = run.start().value("name", json());
    }
    object.erase("ledger");
    object["path"] = run.path().string();
    object["closed"] = run.closed();
    object["run"] = run.run() ? json(*run.run()) : json();
    object["created_ns"] = run.created_ns();
    object["events"] = result.events;
    object["complete"] = result.complete;
    object["payload_bytes"] = result.payload_bytes;
    object["stored_bytes"] = result.stored_bytes;
    return object;
}

std::string dump(const json& object) {
    return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Events are printed as they are read: a run can have more of them than memory.
int print_json(const RunReader& run, const Options& options) {
    store::Sha256 digest;
    store::ScanHooks hooks;
    bool first = true;
    if (options.digest) {
        hooks.begin = [&](const EventInfo&) { digest.reset(); };
        hooks.payload = [&](std::span<const std::byte> bytes) { digest.update(bytes); };
    }
    hooks.end = [&](const EventInfo& event) {
        json object = event_json(event);
        if (options.digest) object["sha256"] = digest.hex();
        std::cout << (first ? "" : ",") << "\n  " << dump(object);
        first = false;
    };
    std::cout << "{\"events\": [";
    const store::Verification result = run.scan(hooks);
    std::cout << "],\n\"run\": " << dump(run_json(run, result));
    std::cout << ",\n\"ledger\": " << dump(run.manifest().value("ledger", json::object()));
    std::cout << ",\n\"errors\": " << dump(result.problems);
    std::cout << ",\n\"verified\": " << (result.verified ? "true" : "false") << "}\n";
    return result.verified ? 0 : 1;
}

// --- text ------------------------------------------------------------------------------------------------------------

std::string time_text(std::int64_t ns) {
    const std::int64_t below = ((ns % core::ns_per_s) + core::ns_per_s) % core::ns_per_s;
    const std::time_t seconds = static_cast<std::time_t>((ns - below) / core::ns_per_s);
    std::tm fields{};
    if (::gmtime_r(&seconds, &fields) == nullptr) return std::to_string(ns);
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", fields.tm_year + 1900, fields.tm_mon + 1,
                       fields.tm_mday, fields.tm_hour, fields.tm_min, fields.tm_sec, below / 1000);
}

std::string bytes_text(std::uint64_t bytes) {
    if (bytes < 10'000) return fmt::format("{} B", bytes);
    double value = static_cast<double>(bytes);
    const char* unit = "B";
    for (const char* next : {"KiB", "MiB", "GiB", "TiB", "PiB"}) {
        if (value < 1024) break;
        value /= 1024;
        unit = next;
    }
    return fmt::format("{:.1f} {}", value, unit);
}

std::string count_text(std::uint64_t count, std::string_view thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

/// "sources 1 (2 gaps, 8192 B missing), 3 (nothing came)"
std::string missing_text(const EventInfo& event) {
    constexpr int listed_max = 3;
    std::string text;
    int listed = 0;
    for (const SourceInfo& source : event.sources) {
        std::uint64_t missing = 0;
        for (const store::MissingRange& range : source.missing) missing += range.bytes;
        std::string what;
        if (source.state == SourceState::partial)
            what = fmt::format("{}, {} missing", count_text(source.missing.size(), "gap"), bytes_text(missing));
        if (source.state == SourceState::size_unknown) what = "size never learnt";
        if (source.state == SourceState::absent || source.state == SourceState::absent_unknown) what = "nothing came";
        if (what.empty()) continue;
        if (++listed > listed_max) return text + ", …";
        text += fmt::format("{}source {}: {}", listed > 1 ? "; " : "", source.id, what);
    }
    return text;
}

void print_event(const EventInfo& event) {
    const std::string state =
        event.complete ? "complete" : std::string(store::cause_names[static_cast<std::size_t>(event.cause)]);
    std::cout << fmt::format("{:>5}  {:>20}  {:<10}  {:>10}  {}  {}\n", event.epoch, event.id, state,
                             bytes_text(event.payload_bytes), time_text(event.first_ns), missing_text(event));
}

void print_heading(const RunReader& run) {
    const json name = run.start().is_object() ? run.start().value("name", json()) : json();
    std::cout << fmt::format("run {}", run.path().string());
    if (name.is_string() && !name.get<std::string>().empty()) std::cout << " (" << name.get<std::string>() << ")";
    if (run.run()) std::cout << fmt::format(", number {}", *run.run());
    std::cout << ", begun " << time_text(run.created_ns()) << " UTC" << (run.closed() ? "" : ", not closed") << "\n\n";
    std::cout << fmt::format("{:>5}  {:>20}  {:<10}  {:>10}  {:<26}  {}\n", "epoch", "event", "state", "payload",
                             "first packet (UTC)", "missing");
}

void print_verdict(const store::Verification& result) {
    std::cout << fmt::format("\n{}, {} complete, {} incomplete; {} of payload in {} on disk, {}\n",
                             count_text(result.events, "event"), result.complete, result.events - result.complete,
                             bytes_text(result.payload_bytes), bytes_text(result.stored_bytes),
                             count_text(result.segments, "segment"));
    if (result.verified) {
        std::cout << "verified: every block, the index, the manifest and the ledger are whole and agree\n";
        return;
    }
    constexpr std::size_t shown_max = 20;
    std::cout << fmt::format("NOT verified, {}:\n", count_text(result.problem_count, "problem"));
    for (std::size_t i = 0; i < std::min(shown_max, result.problems.size()); ++i)
        std::cout << "  " << result.problems[i] << '\n';
    if (result.problem_count > shown_max) std::cout << fmt::format("  and {} more\n", result.problem_count - shown_max);
    if (result.events > 0) std::cout << "the listed events can be read all the same\n";
}

int print_text(const RunReader& run, const Options& options) {
    constexpr std::uint64_t rows_max = 20;
    std::uint64_t rows = 0;
    store::ScanHooks hooks;
    hooks.end = [&](const EventInfo& event) {
        if (++rows <= rows_max || options.all) print_event(event);
    };
    print_heading(run);
    const store::Verification result = run.scan(hooks);
    if (rows > rows_max && !options.all)
        std::cout << fmt::format("  … and {} more (--all lists them)\n", rows - rows_max);
    print_verdict(result);
    return result.verified ? 0 : 1;
}

}  // namespace

int inspect_command(const std::vector<std::string>& args) {
    const std::optional<Options> options = parse_options(args);
    if (!options) return 0;
    const RunReader run(options->path);
    if (options->to_file) export_event(run, find_event(run, *options->to_file), *options);
    if (options->to_png) write_event_png(run, find_event(run, *options->to_png), *options);
    if (options->json) return print_json(run, *options);
    if (options->to_file || options->to_png) return 0;
    return print_text(run, *options);
}

}  // namespace weir::app
