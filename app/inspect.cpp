// `weir inspect`: lists a run, verifies it, and gives single events back.
#include "command.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdio>
#include <iostream>
#include <limits>
#include <optional>

#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "draw_received.hpp"
#include "events_json.hpp"
#include "filled_message.hpp"
#include "inspect_cluster.hpp"
#include "inspect_text.hpp"
#include "multi_event_text.hpp"
#include "options_common.hpp"
#include "reduction_text.hpp"
#include "run_text.hpp"
#include "store/json_members.hpp"
#include "store/png.hpp"
#include "store/received_image.hpp"
#include "store/run_reader.hpp"
#include "terminal.hpp"
#include "wire/reported_stream.hpp"

namespace weir::app {

namespace {

using nlohmann::json;
using store::EventInfo;
using store::RunReader;
using store::SourceInfo;

constexpr std::string_view inspect_intro = R"(usage: weir inspect PATH [options]

Reads every byte of a run (the directory that `weir run` or `weir replay` wrote), lists its events, says what is
missing, where and why, and whether everything verifies: checksums of all blocks, the index, the manifest, and the
ledger's count of events. That takes as long as reading the files. --quick leaves the payload out: a big run is listed
at once, but "verified" is then not said. An unfinished run, .NAME.part, is always read whole, up to where it ends.

PATH may be a folder with the runs of a cluster's builders, finished or not, and the reports of its other nodes; they may
also lie in folders in it, one of each node. They are read as one run, and what the nodes say of each other is held side by
side. The events are listed with --all or --incomplete, in JSON also with --digest.

)";

constexpr std::string_view inspect_examples = R"(
examples:
  weir inspect out                        a table of the first events, what is missing, and the verdict
  weir inspect out --incomplete --all     every event that is not complete
  weir inspect out --quick                what is in a run of a terabyte
  weir inspect whole                      the runs of all builders of a cluster, in the folder whole
  weir inspect out --json --digest sha256 for programs: every event with the digest of its payload
  weir inspect out --export 7 frame.bin   the payload of event 7: source 0, then 1, ..., zeros where bytes are missing
  weir inspect out --export 1:7 m0.bin --source 0
                                          event 7 of epoch 1 (a detector restart begins a new epoch), one source only
  weir inspect out --png 7 frame.png      event 7 as a 16-bit image, its 1st to 99th percentile stretched from black to
                                          white, red where nothing came, yellow where a calibrated pixel is saturated.
                                          JUNGFRAU, MOENCH and EIGER (its ports where their headers say)
  weir inspect out --png 7 frame.png --width 1024 --pixel-bits 16
                                          the same of another format, whose pixels only you know

weir export writes whole runs in other formats.

exit status: 0 everything verifies (incomplete events included), 1 it does not, 2 bad usage, 3 it does, but
--require-lossless does not hold. With --quick, 0 says that nothing wrong was found outside the payload; in JSON,
"verified" is then null, not true.
)";

/// "--export ID FILE" or "--png ID FILE"
struct Extract {
    EventName event;
    std::string file;
};

struct Options {
    std::string path;
    bool json = false;
    bool digest = false;
    bool all = false;
    bool incomplete = false;
    bool quick = false;
    std::string require;  ///< required_lossless()
    std::optional<Extract> to_file;
    std::optional<Extract> to_png;
    std::optional<std::uint32_t> source;
    std::optional<std::uint32_t> width;
    std::optional<std::uint32_t> pixel_bits;
};

/// Takes `NAME EVENT FILE` out of the arguments: Boost has no options with exactly two values.
std::optional<Extract> take_extract(std::vector<std::string>& args, std::string_view name) {
    for (std::size_t i = 0; i < args.size(); ++i) {
        if (args[i] != name) continue;
        if (args.size() - i < 3) throw core::UsageError(fmt::format("inspect: {} needs an event and a file", name));
        const Extract extract{parse_event_name(args[i + 1], "inspect"), args[i + 2]};
        args.erase(args.begin() + static_cast<std::ptrdiff_t>(i), args.begin() + static_cast<std::ptrdiff_t>(i) + 3);
        if (take_extract(args, name)) throw core::UsageError(fmt::format("inspect: {} can be given once", name));
        return extract;
    }
    return {};
}

void check_image_options(const Options& options) {
    if (options.source && !options.to_file && !options.to_png)
        throw core::UsageError("inspect: --source goes with --export or --png");
    if (options.width && !options.to_png) throw core::UsageError("inspect: --width goes with --png");
    if (options.pixel_bits && !options.to_png) throw core::UsageError("inspect: --pixel-bits goes with --png");
    if (options.pixel_bits && !wire::is_pixel_bits(*options.pixel_bits))
        throw core::UsageError(
            fmt::format("inspect: --pixel-bits: found {}; accepted: 4, 8, 12, 16, 32", *options.pixel_bits));
}

/// Nothing if --help was asked for and printed.
std::optional<Options> parse_options(std::vector<std::string> args) {
    namespace po = boost::program_options;
    Options options;
    std::string digest;
    po::options_description visible = options_for_terminal("options");
    visible.add_options()("help,h", "this text")("json", "print JSON instead of a table")(
        "digest", po::value(&digest)->value_name("sha256"), "with --json: the SHA-256 of every event's payload")(
        "all", "list all events, not only the first 20")("incomplete", "list only events that are not complete")(
        "verify", "read and check everything, payload included (the default)")(
        "quick", "read all but the payload: manifest, index, and the heads of the listed events")(
        "require-lossless", po::value<std::string>()->implicit_value("yes")->value_name("yes|known"),
        "exit with status 3 if something was lost, or if nothing shows whether it was; `known` lets the second pass")(
        "export", "[EPOCH:]ID FILE: write the payload of one event")(
        "png", "[EPOCH:]ID FILE: write one event as a 16-bit image")(
        "source", po::value<std::uint32_t>()->value_name("N"), "with --export and --png: only this source")(
        "width", po::value<std::uint32_t>()->value_name("N"), "with --png: pixels in a row")(
        "pixel-bits", po::value<std::uint32_t>()->value_name("N"),
        "with --png: bits of a pixel as received: 4, 8, 12, 16 or 32");
    po::options_description all_options;
    all_options.add(visible).add_options()("path", po::value(&options.path));
    po::positional_options_description positional;
    positional.add("path", 1);

    for (const std::string& arg : args) {
        if (arg != "--help" && arg != "-h") continue;
        print_help(inspect_intro, visible, inspect_examples);
        return {};
    }
    options.to_file = take_extract(args, "--export");
    options.to_png = take_extract(args, "--png");
    po::variables_map values;
    // Its value goes after "=" only; the library would take the path for it.
    std::ranges::replace(args, std::string("--require-lossless"), std::string("--require-lossless=yes"));
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
    options.incomplete = values.count("incomplete") > 0;
    options.quick = values.count("quick") > 0;
    options.require = required_lossless(values);
    if (options.quick && values.count("verify") > 0)
        throw core::UsageError("inspect: --quick leaves out what --verify reads; give one of them");
    if (options.quick && options.digest)
        throw core::UsageError("inspect: --digest needs the payload, which --quick does not read");
    if (values.count("source") > 0) options.source = values["source"].as<std::uint32_t>();
    if (values.count("width") > 0) options.width = values["width"].as<std::uint32_t>();
    if (values.count("pixel-bits") > 0) options.pixel_bits = values["pixel-bits"].as<std::uint32_t>();
    check_image_options(options);
    return options;
}

// --- one event -------------------------------------------------------------------------------------------------------

/// The payload with zeros for missing ranges; a reduced one as it is, which has a place for everything. Where a size is
/// not known nothing can be filled in: then what was received is written without gaps, and said.
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
        sizes_known = sizes_known && (event.reduced() || source.size_known());
        total += event.reduced() ? source.reduced_bytes : source.declared_bytes;
    }
    if (!found) throw core::RunError(fmt::format("event {} has no source {}", event.id, *options.source));
    const std::string problem = too_large_text(sizes_known ? total : 0, event.content_bytes(), event_bytes_max_default);
    if (!problem.empty())
        throw core::RunError(
            fmt::format("event {}:{} is not exported: {}; weir export --to raw --max-event raises that", event.epoch,
                        event.id, problem));

    store::File file = store::File::create(options.to_file->file);
    std::uint64_t compact = 0;
    try {
        run.read_payload(event, [&](std::size_t source, std::uint64_t offset, std::span<const std::byte> piece) {
            if (!chosen[source]) return;
            file.write_at(sizes_known ? starts[source] + offset : compact, piece);
            compact += piece.size();
        });
        if (sizes_known && !file.truncate(total))
            throw core::RunError(fmt::format("cannot write {}", options.to_file->file));
    } catch (const std::exception&) {
        std::remove(options.to_file->file.c_str());  // half an event would look like one
        throw;
    }
    const std::uint64_t written = sizes_known ? total : compact;
    std::string remark;
    if (!sizes_known)
        remark = " (a message's size was never learnt: received bytes only, gaps are not filled)";
    else if (event.reduced())
        remark = fmt::format(" ({})", store::content_names[static_cast<std::size_t>(event.content)]);
    else if (compact < total)
        remark = fmt::format(" ({} of them missing, written as zeros)", total - compact);
    core::print_stderr("event {}:{}: {} bytes to {}{}\n", event.epoch, event.id, written, options.to_file->file,
                       remark);
}

/// As the run's formats have it, or as the user says. Nothing is guessed: two pixels of 8 bits look like one of 16.
store::ReceivedShape image_shape(const json& streams, const Options& options) {
    const auto known = wire::image_of_streams(streams);
    store::ReceivedShape shape;
    if (known) shape = {known->columns, known->bits, {}};
    const bool same = known && options.width.value_or(known->columns) == known->columns &&
                      options.pixel_bits.value_or(known->bits) == known->bits;
    if (same) shape.format = wire::find_format(store::text_at(streams.front(), "format"))->name;
    const std::string unknown =
        known ? "" : fmt::format("{}{}", options.width ? "" : " --width", options.pixel_bits ? "" : " --pixel-bits");
    if (!unknown.empty())
        throw core::RunError(
            fmt::format("no image: the run does not say how its messages are rows of pixels; say{}", unknown));
    shape.columns = options.width.value_or(shape.columns);
    shape.bits = options.pixel_bits.value_or(shape.bits);
    return shape;
}

void write_pixel_png(const RunReader& run, const EventInfo& event, const Options& options) {
    if (options.pixel_bits)
        throw core::UsageError("inspect: --pixel-bits: the run says what its pixels are; leave it out");
    const store::PayloadInfo info = store::payload_of(run);
    const store::PixelImage image =
        store::pixel_image(run, event, info, options.width.value_or(info.columns), options.source);
    const store::PixelLevels levels = store::pixel_levels(image);
    store::write_png(options.to_png->file, image, levels);
    core::print_stderr(
        "event {}:{}: {} x {} pixels, {:.6g} to {:.6g}{}{} from black to white, red without a value, yellow saturated, "
        "to {}\n",
        event.epoch, event.id, image.width, image.height, levels.low, levels.high, info.unit.empty() ? "" : " ",
        info.unit, options.to_png->file);
}

void write_event_png(const RunReader& run, const EventInfo& event, const Options& options) {
    if (event.reduced()) return write_pixel_png(run, event, options);
    const json config = config_of(run);
    const store::ReceivedShape shape = image_shape(store::at_or_null(config, "stream"), options);
    core::print_stderr("event {}:{}: {}\n", event.epoch, event.id,
                       draw_received(run, event, shape, options.source, options.to_png->file));
}

// --- JSON ------------------------------------------------------------------------------------------------------------

json run_json(const RunReader& run, const store::Verification& result, const json& multi_event) {
    json object = run.manifest();
    if (!run.closed() && run.start().is_object()) {
        object = run.start().value("start", json::object());
        if (!object.is_object()) object = json::object();
        object["name"] = run.start().value("name", json());
    }
    object.erase("ledger");
    object["path"] = run.path().string();
    object["closed"] = run.closed();
    const LossVerdict verdict = loss_verdict(run);
    object["lossless"] = verdict.lossless;
    object["evidence"] = verdict.evidence;
    object["run"] = run.run() ? json(*run.run()) : json();
    object["created_ns"] = run.created_ns();
    object["events"] = result.events;
    object["complete"] = result.complete;
    object["payload_bytes"] = result.payload_bytes;
    object["stored_bytes"] = result.stored_bytes;
    if (run.version().value_or(store::format_version) < store::format_version_reduced || !result.payload_read)
        return object;
    object["decoded_bytes"] = decoded_bytes(result);
    object["encodings"] = encodings_json(result);
    if (!multi_event.is_null()) object["multi_event"] = multi_event;
    return object;
}

int print_json(const RunReader& run, const Options& options) {
    std::cout << "{";
    EventsJson events(run, {options.digest, options.incomplete});
    const store::ScanHooks hooks = events.hooks();
    store::Verification result =
        options.quick ? run.scan_index(hooks, std::numeric_limits<std::uint64_t>::max()) : run.scan(hooks);
    events.finish(result);
    std::cout << ",\n\"run\": " << dump(run_json(run, result, events.packets().totals_json()));
    std::cout << ",\n\"ledger\": " << dump(run.manifest().value("ledger", json::object()));
    std::cout << ",\n\"errors\": " << dump(result.problems);
    std::cout << ",\n\"checked\": " << (result.payload_read ? "\"everything\"" : "\"all but the payload\"");
    // "true" is never said of what was not read.
    const char* const good = result.payload_read ? "true" : "null";
    std::cout << ",\n\"verified\": " << (result.verified ? good : "false") << "}\n";
    return result.verified ? 0 : 1;
}

int inspect_command(const std::vector<std::string>& args) {
    const std::optional<Options> options = parse_options(args);
    if (!options) return 0;
    const auto cluster = store::find_cluster_run(options->path);
    const RunReader run = cluster ? cluster->reader() : RunReader(options->path);
    if (options->to_file) export_event(run, find_event(run, options->to_file->event), *options);
    if (options->to_png) write_event_png(run, find_event(run, options->to_png->event), *options);
    if (!options->json && (options->to_file || options->to_png)) return 0;
    const TableOptions table{options->all, options->incomplete, options->quick};
    if (cluster) return inspect_cluster(*cluster, run, {table, options->json, options->digest, options->require});
    const int status = options->json ? print_json(run, *options) : print_text(run, table);
    return status != 0 ? status : lossless_status(loss_verdict(run), options->require, "inspect");
}

}  // namespace

Command inspect_entry() {
    return {"inspect", "list and verify what a run has written, and what it lacks", inspect_command};
}

}  // namespace weir::app
