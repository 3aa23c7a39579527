// `weir export`: which events, to what. The formats are in export_npy.cpp, export_raw.cpp, export_pcap.cpp,
// export_hdf5.cpp and export_mdf.cpp.
#include "command.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <iostream>
#include <new>

#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "export_target.hpp"
#include "export_virtual.hpp"
#include "options/text.hpp"
#include "options_common.hpp"
#include "output_file.hpp"
#include "run_text.hpp"
#include "store/cluster_run.hpp"
#include "store/run_path.hpp"
#include "terminal.hpp"

namespace weir::app {

namespace po = boost::program_options;
using store::EventInfo;
using store::IndexEntry;
using store::RunReader;

namespace {

/// What --to can be.
struct Format {
    std::string_view name;
    MakeTarget* make;
    /// It gives its target events in the order in which their first packets came, as the packets would be.
    bool by_time = false;
};
constexpr Format formats[] = {{"npy", make_npy_target},         {"raw", make_raw_target},
                              {"pcap", make_pcap_target, true}, {"pcapng", make_pcapng_target, true},
                              {"hdf5", make_hdf5_target},       {"mdf", make_mdf_target}};

/// "npy, raw, pcap"
std::string format_names() {
    std::string names;
    for (const Format& format : formats) names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
    return names;
}

const Format& format_named(const std::string& name) {
    for (const Format& format : formats)
        if (format.name == name) return format;
    throw core::UsageError(fmt::format("export: --to: found \"{}\"; accepted: {}", name, format_names()));
}

constexpr std::string_view export_intro = R"(usage: weir export PATH --to npy|raw|pcap|pcapng|hdf5|mdf [options]

Writes the events of a run in another form; PATH may be a folder with the runs of a cluster's builders. Every block that is read is checked; an event that is damaged is left out,
said, and makes the exit status 1, and so is one larger than --max-event. Memory: the largest event, and 64 bytes per
event.

  npy   an array for numpy.load: (events, sources, shape of a message), with FILE.json beside it that says which event
        is in which place and what was missing of it. A run of calibrated pixels gives them in their type, with the
        type's marker (NaN, -32768, 65535) where there is no value
  raw   the payload as bytes, source 0, then 1, ...: one file per event, or one for all with --concatenate, and an index
        as JSON
  pcap  the packets that the events came from, made again from the payload and the detector header that is kept with
        it: `weir replay` turns them into the same events. Fields of the header that changed from packet to packet are
        those of the packet that came first. Not of a run that keeps pixels instead of what was received
  pcapng  the same with comments, for Wireshark: each event says on its first packet whether it is complete and why not,
        each port what it received and lost. A name that ends in .zst is compressed
  hdf5  a folder of HDF5 files in NeXus layout, as the hdf5 sink writes them (docs/reference/HDF5.md). With --virtual PATH
        is a folder in which the builders of a cluster have such files already, and what is written is one file that
        shows all of them as one run, without a copy of the data
  mdf   the events inside multi-event packets (the reducer "mfp"), one MDF event of raw banks for each, as LHCb's tools
        read them (docs/reference/reduce/mfp.md)

)";

constexpr std::string_view export_examples = R"(
examples:
  weir export run7 --to npy --out run7.npy                 JUNGFRAU: (events, modules, 512, 1024), 16-bit pixels
  weir export run7 --to npy --dtype f4 --shape 100x32 --fill nan
  weir export run7 --to raw --events 100-199 --out folder  folder/event-0-100.bin and so on
  weir export run7 --to raw --event 7 --event 1:9
  weir export run7 --to pcap --out again.pcap
  weir export run7 --to pcapng --events 100-199 --out some.pcapng
  weir export run7 --to hdf5 --codec bitshuffle-lz4 --out run7-hdf5     h5py opens run7-hdf5/master.h5
  weir export run7 --to hdf5 --definition NXmx --nexus sample=lysozyme --nexus distance_mm=150 --nexus ...
  weir export run7 --to hdf5 --virtual                     run7/bu0-h5, run7/bu1-h5, ...: h5py opens run7/cluster.h5
  weir export run7 --to mdf --complete --out run7.mdf

exit status: 0, 1 when something asked for could not be exported, 2 bad usage
)";

/// Which events: those of the ranges and names, or all.
struct Selection {
    struct Range {
        std::optional<std::uint32_t> epoch;
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        [[nodiscard]] bool has(const IndexEntry& entry) const {
            return (!epoch || *epoch == entry.epoch) && entry.event >= first && entry.event <= last;
        }
    };
    std::vector<Range> ranges;
    std::vector<EventName> names;

    [[nodiscard]] bool has(const IndexEntry& entry) const {
        if (ranges.empty() && names.empty()) return true;
        for (const Range& range : ranges)
            if (range.has(entry)) return true;
        for (const EventName& name : names)
            if (name.id == entry.event && (!name.epoch || *name.epoch == entry.epoch)) return true;
        return false;
    }
};

Selection selection_of(const po::variables_map& given) {
    Selection selection;
    if (given.count("event") > 0)
        for (const std::string& text : given["event"].as<std::vector<std::string>>())
            selection.names.push_back(parse_event_name(text, "export"));
    if (given.count("events") > 0)
        for (const std::string& text : given["events"].as<std::vector<std::string>>()) {
            const std::size_t dash = text.find('-');
            if (dash == std::string::npos)
                throw core::UsageError(
                    fmt::format("export: --events: found \"{}\"; accepted: A-B or EPOCH:A-B, like 100-199", text));
            const EventName first = parse_event_name(text.substr(0, dash), "export");
            const EventName last = parse_event_name(text.substr(dash + 1), "export");
            if (last.epoch || last.id < first.id)
                throw core::UsageError(fmt::format("export: --events: {} is no range", text));
            selection.ranges.push_back({first.epoch, first.id, last.id});
        }
    return selection;
}

std::vector<std::uint64_t> shape_of(const std::string& text) {
    std::vector<std::uint64_t> shape;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('x', at), text.size());
        std::uint64_t value = 0;
        const auto result = std::from_chars(text.data() + at, text.data() + end, value);
        if (result.ec != std::errc{} || result.ptr != text.data() + end || value == 0 || value > (1U << 30))
            throw core::UsageError(fmt::format("export: --shape: found \"{}\"; accepted: like 512x1024", text));
        shape.push_back(value);
        at = end + 1;
    }
    return shape;
}

po::options_description described() {
    po::options_description description = options_for_terminal("options");
    // clang-format off
    description.add_options()
        ("to", po::value<std::string>()->value_name("FORMAT"), "npy, raw, pcap, pcapng, hdf5 or mdf")
        ("out", po::value<std::string>()->value_name("PATH"), "where to; refused if it exists. Default: the run's name with the format's after it, here")
        ("events", po::value<std::vector<std::string>>()->value_name("[EPOCH:]A-B"), "only these numbers, both ends included; can be repeated")
        ("event", po::value<std::vector<std::string>>()->value_name("[EPOCH:]ID"), "only this event; can be repeated")
        ("complete", "leave incomplete events out")
        ("source", po::value<std::uint32_t>()->value_name("N"), "only this source")
        ("dtype", po::value<std::string>()->value_name("T"), "npy: u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8, little-endian. Default: the pixels of the detector, else u1")
        ("shape", po::value<std::string>()->value_name("RxC"), "npy: of one source's message. Default: rows and columns of the detector, else flat")
        ("fill", po::value<std::string>()->value_name("X")->default_value("0"), "npy: the value that stands where bytes are missing; a run of calibrated pixels keeps its markers if it is not given")
        ("split-sources", "npy: --out is a folder, with a file per source")
        ("concatenate", "raw: --out is one file with all events one after another")
        ("packet-bytes", po::value<std::uint32_t>()->value_name("N")->default_value(8192), "pcap, pcapng: payload of a packet where the format does not fix it")
        ("codec", po::value<std::string>()->value_name("C"), "hdf5: raw, zstd, lz4, bitshuffle-lz4 or bitshuffle-zstd. Default: as the run's reducers compressed")
        ("nexus", po::value<std::vector<std::string>>()->value_name("KEY=VALUE"), "hdf5: what weir cannot know of the experiment, as in the sink's nexus table; can be repeated. Default: as the run's own hdf5 sink had it")
        ("virtual", "hdf5: one file over the HDF5 files of a cluster's builders in the folder PATH: all events, none copied. Default of --out: PATH/cluster.h5")
        ("definition", po::value<std::string>()->value_name("D"), "hdf5: NXmx; refused if anything is missing that this application definition requires")
        ("max-event", po::value<std::string>()->value_name("SIZE")->default_value("2GiB"), "an event that is larger, its missing bytes included where they are filled in, is left out and said")
        ("quiet", "no progress line and no summary")
        ("help,h", "this text");
    // clang-format on
    return description;
}

bool makes_packets(std::string_view to) {
    return to == "pcap" || to == "pcapng";
}

/// Options of one format given with another would be ignored.
void refuse_options_of_others(const po::variables_map& given, const std::string& to) {
    const std::pair<const char*, const char*> owned[] = {
        {"dtype", "npy"},       {"shape", "npy"},         {"fill", "npy"},   {"split-sources", "npy"},
        {"concatenate", "raw"}, {"packet-bytes", "pcap"}, {"codec", "hdf5"}, {"nexus", "hdf5"},
        {"definition", "hdf5"}, {"virtual", "hdf5"}};
    for (const auto& [name, owner] : owned)
        if (given.count(name) > 0 && !given[name].defaulted() && to != owner &&
            !(makes_packets(to) && makes_packets(owner)))
            throw core::UsageError(fmt::format("export: --{} goes with --to {}", name, owner));
    if ((makes_packets(to) || to == "mdf") && given.count("source") > 0)
        throw core::UsageError(
            "export: --source goes with --to npy, raw and hdf5: events of one source would not be the same");
}

/// The files are there already, and all of them are shown.
void refuse_options_beside_virtual(const po::variables_map& given) {
    for (const char* name : {"events", "event", "complete", "source", "codec", "nexus", "definition", "max-event"})
        if (given.count(name) > 0 && !given[name].defaulted())
            throw core::UsageError(
                fmt::format("export: --{} does not go with --virtual, which shows files as they are", name));
}

ExportOptions options_of(const po::variables_map& given, const RunReader& run, const std::string& to) {
    ExportOptions options;
    if (given.count("out") > 0) {
        options.out = given["out"].as<std::string>();
    } else {
        std::string name = std::filesystem::absolute(run.path()).lexically_normal().filename().string();
        if (name.starts_with('.')) name.erase(0, 1);
        options.out = name + "." + to;
    }
    if (!options.out.has_filename()) options.out = options.out.parent_path();
    if (given.count("source") > 0) options.source = given["source"].as<std::uint32_t>();
    if (given.count("dtype") > 0) options.dtype = given["dtype"].as<std::string>();
    if (given.count("shape") > 0) options.shape = shape_of(given["shape"].as<std::string>());
    options.fill = given["fill"].as<std::string>();
    options.fill_given = !given["fill"].defaulted();
    options.split_sources = given.count("split-sources") > 0;
    if (given.count("codec") > 0) options.codec = given["codec"].as<std::string>();
    if (given.count("nexus") > 0) options.nexus = given["nexus"].as<std::vector<std::string>>();
    if (given.count("definition") > 0) {
        const std::string definition = given["definition"].as<std::string>();
        if (definition != "NXmx")
            throw core::UsageError(fmt::format("export: --definition: found \"{}\"; accepted: NXmx", definition));
        options.require_nxmx = true;
    }
    options.concatenate = given.count("concatenate") > 0;
    options.packet_bytes = given["packet-bytes"].as<std::uint32_t>();
    const std::string event_max = given["max-event"].as<std::string>();
    const std::optional<std::uint64_t> event_bytes_max = options::parse_size(event_max);
    if (!event_bytes_max || *event_bytes_max == 0)
        throw core::UsageError(fmt::format("export: --max-event: found \"{}\"; accepted: a size like 8GiB", event_max));
    options.event_bytes_max = *event_bytes_max;
    constexpr std::uint32_t packet_bytes_max = 65000;
    if (options.packet_bytes == 0 || options.packet_bytes > packet_bytes_max)
        throw core::UsageError(
            fmt::format("export: --packet-bytes: found {}; accepted: 1 to {}", options.packet_bytes, packet_bytes_max));
    return options;
}

/// The entries that were chosen; each name that was given must be among them.
std::vector<IndexEntry> chosen_entries(const RunReader& run, const Selection& selection, std::uint64_t& copies) {
    std::vector<IndexEntry> entries =
        run.entries([&](const IndexEntry& entry) { return selection.has(entry); }, &copies);
    for (const EventName& name : selection.names) {
        const auto is_it = [&](const IndexEntry& e) {
            return e.event == name.id && (!name.epoch || *name.epoch == e.epoch);
        };
        const auto count = std::count_if(entries.begin(), entries.end(), is_it);
        const std::string epoch = name.epoch ? fmt::format("{}:", *name.epoch) : "";
        if (count == 0) throw core::RunError(fmt::format("{} has no event {}{}", run.path().string(), epoch, name.id));
        if (count > 1)
            throw core::RunError(fmt::format("event {0} is there in {1} epochs: say EPOCH:{0}", name.id, count));
    }
    if (entries.empty()) throw core::RunError(fmt::format("{} has no such events", run.path().string()));
    return entries;
}

/// To a terminal in lines that fit; elsewhere in one, which programs can read.
void say(const std::string& text) {
    const bool terminal = ::isatty(STDERR_FILENO) == 1;
    core::print_stderr("{}\n", terminal ? wrapped(text, columns_of(STDERR_FILENO)) : text);
}

/// One event after the other, each in memory as a whole.
class Exporter {
public:
    Exporter(const RunReader& run, const ExportOptions& options, bool complete_only)
        : run_(run), options_(options), complete_only_(complete_only) {}

    void put(const IndexEntry& entry, ExportTarget& target) {
        event_.messages.clear();
        std::optional<store::PayloadPlacer> placer;
        store::ScanHooks hooks;
        EventInfo head;
        hooks.begin = [&](const EventInfo& info) {
            head = info;
            prepare(head);
            placer.emplace(head, [this](std::size_t source, std::uint64_t, std::span<const std::byte> piece) {
                if (chosen_[source]) append(event_.messages[source].bytes, piece);
            });
        };
        hooks.payload = [&](std::span<const std::byte> bytes) { placer->take(bytes); };
        try {
            head = run_.read(entry, hooks);
        } catch (const core::RunError& error) {
            return leave_out(entry, error.what());
        } catch (const std::bad_alloc&) {
            return leave_out(entry, fmt::format("no memory for its {}", bytes_text(head.content_bytes())).c_str());
        }
        if (complete_only_ && !head.complete) return;
        event_.info = &head;
        try {
            target.put(event_);
        } catch (const EventRefused& error) {
            return leave_out(entry, error.what());
        }
        ++exported_;
    }

    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
    [[nodiscard]] std::uint64_t exported() const noexcept { return exported_; }

private:
    void leave_out(const IndexEntry& entry, const char* why) {
        ++lost_;
        say(fmt::format("weir: event {}:{} is left out: {}", entry.epoch, entry.event, why));
    }

    void prepare(const EventInfo& info) {
        const std::string problem =
            too_large_text(info.content_bytes(), info.content_bytes(), options_.event_bytes_max);
        if (!problem.empty()) throw EventRefused(problem + "; --max-event raises that");
        event_.messages.resize(info.sources.size());
        chosen_.assign(info.sources.size(), false);
        for (std::size_t i = 0; i < info.sources.size(); ++i)
            chosen_[i] = !options_.source || *options_.source == info.sources[i].id;
    }

    /// Memory is taken as bytes come, not as a record says.
    static void append(std::vector<std::byte>& bytes, std::span<const std::byte> piece) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
    }

    const RunReader& run_;
    const ExportOptions& options_;
    bool complete_only_;
    ExportEvent event_;
    std::vector<bool> chosen_;
    std::uint64_t lost_ = 0;
    std::uint64_t exported_ = 0;
};

/// In the order in which their first packets came, as the packets would: events are written when they are closed.
void sort_by_time(const RunReader& run, std::vector<IndexEntry>& entries) {
    std::vector<std::pair<core::TimeNs, IndexEntry>> timed;
    timed.reserve(entries.size());
    for (const IndexEntry& entry : entries) {
        core::TimeNs first = timed.empty() ? 0 : timed.back().first;  // a damaged one stays where it is
        try {
            first = run.read_head(entry).first_ns;
        } catch (const core::RunError&) {
        }
        timed.emplace_back(first, entry);
    }
    std::stable_sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = timed[i].second;
}

int export_command(const std::vector<std::string>& args) {
    po::options_description description = described();
    po::options_description all_options;
    all_options.add(description).add_options()("path", po::value<std::string>());
    const po::variables_map given = parse(args, all_options, "path");
    if (given.count("help") > 0) {
        print_help(export_intro, description, export_examples);
        return 0;
    }
    if (given.count("path") == 0)
        throw core::UsageError("export: which run? give the path of its directory (weir export --help)");
    if (given.count("to") == 0)
        throw core::UsageError("export: --to npy, raw, pcap, pcapng, hdf5 or mdf? (weir export --help)");
    const std::string to = given["to"].as<std::string>();
    const Format& format = format_named(to);
    refuse_options_of_others(given, to);
    if (given.count("virtual") > 0) {
        refuse_options_beside_virtual(given);
        return export_virtual(given["path"].as<std::string>(),
                              given.count("out") > 0 ? given["out"].as<std::string>() : "", given.count("quiet") > 0);
    }
    const Selection selection = selection_of(given);

    const RunReader run = store::open_run(given["path"].as<std::string>());
    const ExportOptions options = options_of(given, run, to);
    refuse_existing(options.out);
    std::uint64_t copies = 0;
    std::vector<IndexEntry> entries = chosen_entries(run, selection, copies);
    if (format.by_time) sort_by_time(run, entries);
    const std::unique_ptr<ExportTarget> target = format.make(run, options, entries);
    Exporter exporter(run, options, given.count("complete") > 0);
    {
        Progress progress("exporting", entries.size(), given.count("quiet") > 0);
        std::uint64_t done = 0;
        for (const IndexEntry& entry : entries) {
            exporter.put(entry, *target);
            progress.at(++done);
        }
    }
    if (exporter.exported() == 0) throw core::RunError("no event could be exported");
    const std::string summary = target->finish();
    if (given.count("quiet") == 0) say(fmt::format("{}: {}", count_text(exporter.exported(), "event"), summary));
    if (copies > 0 && given.count("quiet") == 0) say(copies_text(copies));
    if (!run.closed() && given.count("quiet") == 0) say("the run was not closed: these are the events that are whole");
    const std::string shortfall = target->shortfall();
    if (!shortfall.empty()) say("weir: " + shortfall);
    return exporter.lost() == 0 && shortfall.empty() ? 0 : 1;
}

}  // namespace

Command export_entry() {
    return {"export", "a run as numpy arrays, bytes, HDF5, MDF, or as packets again", export_command};
}

}  // namespace weir::app
