// The pipeline benchmark: one lcore, production stages, packets that are in no cache. docs/internals/BENCHMARKS.md has
// the method, what would make its numbers worthless, and results.
#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "bench_program.hpp"
#include "core/error.hpp"
#include "lap.hpp"
#include "lap_report.hpp"
#include "machine.hpp"
#include "port/eal.hpp"
#include "study.hpp"

namespace weir::bench {

namespace {

struct Options {
    std::string json_path;
    std::string commit = "unknown";
    bool quick = false;
    bool huge = false;
    bool warm = false;
    std::string study;
    std::optional<std::uint32_t> repetitions;
    std::optional<std::uint32_t> sources;
    std::optional<std::size_t> mib;
    std::set<std::string> names;
    std::set<std::uint32_t> open_events;
    std::set<std::string> orders;
    std::vector<Mode> modes = {Mode::touch, Mode::assemble, Mode::consume, Mode::copy};
};

constexpr const char* usage =
    "usage: pipeline_bench [--json FILE] [--quick] [--commit ID] [--repetitions N] [--mib N] [--warm] [--huge]\n"
    "                      [--case NAME]... [--open N]... [--order in_order|shuffled]... [--sources N]\n"
    "                      [--all-modes | --mode NAME...]\n"
    "       pipeline_bench --study pools|assembly [--json FILE] [--repetitions N] [--mib N]\n"
    "Feeds one lcore from cold memory and reports the rates of touch, assemble, consume and copy.\n"
    "  --quick        fewer repetitions and 256 MiB of frames instead of 1 GiB\n"
    "  --repetitions  laps per case and mode (default 5, quick 3); medians are reported, with the spread\n"
    "  --mib          size of the working set\n"
    "  --warm         do not take the frames out of the caches before each lap (with a small --mib: the cost of the "
    "code)\n"
    "  --sources      that make an event (default 2); of --open what makes at most 2048 messages\n"
    "  --huge         DPDK memory on hugetlb pages, which must be free (default: 4 KiB pages, as a run without PCI "
    "device)\n"
    "  --all-modes    also store (the worker, null sink)\n";

std::uint32_t number_of(const std::string& option, const std::string& text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value == 0)
        throw core::UsageError(fmt::format("{}: found '{}'; accepted: a number above 0", option, text));
    return value;
}

Mode mode_of(const std::string& name) {
    for (int i = 0; i < static_cast<int>(Mode::verify); ++i)
        if (name_of(static_cast<Mode>(i)) == name) return static_cast<Mode>(i);
    throw core::UsageError(fmt::format("--mode: there is no mode '{}'", name));
}

Options parse(int argc, char** argv) {
    Options options;
    std::vector<Mode> modes;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        const auto value = [&]() -> std::string {
            if (++i == argc) throw core::UsageError(option + " needs a value");
            return argv[i];
        };
        if (option == "--json")
            options.json_path = value();
        else if (option == "--commit")
            options.commit = value();
        else if (option == "--quick")
            options.quick = true;
        else if (option == "--huge")
            options.huge = true;
        else if (option == "--study")
            options.study = value();
        else if (option == "--warm")
            options.warm = true;
        else if (option == "--all-modes")
            options.modes = {Mode::touch, Mode::assemble, Mode::consume, Mode::store, Mode::copy};
        else if (option == "--mode")
            modes.push_back(mode_of(value()));
        else if (option == "--repetitions")
            options.repetitions = number_of(option, value());
        else if (option == "--mib")
            options.mib = number_of(option, value());
        else if (option == "--sources")
            options.sources = number_of(option, value());
        else if (option == "--case")
            options.names.insert(value());
        else if (option == "--open")
            options.open_events.insert(std::min(number_of(option, value()), open_events_max));
        else if (option == "--order")
            options.orders.insert(value());
        else
            throw core::UsageError(fmt::format("unknown option '{}'\n{}", option, usage));
    }
    if (!modes.empty()) options.modes = modes;
    if (options.open_events.empty()) options.open_events = {1, 64, open_events_max};
    if (options.orders.empty()) options.orders = {"in_order", "shuffled"};
    for (const std::string& name : options.names)
        if (std::ranges::none_of(stream_kinds(), [&](const StreamKind& kind) { return kind.name == name; }))
            throw core::UsageError(fmt::format("--case: there is no case '{}'", name));
    for (const std::string& order : options.orders)
        if (order != "in_order" && order != "shuffled")
            throw core::UsageError(fmt::format("--order: found '{}'; accepted: in_order, shuffled", order));
    return options;
}

void start_eal(const Options& options, std::uint64_t memory_bytes) {
    if (!options.huge) {
        port::EalConfig config;
        config.memory_bytes = memory_bytes;
        config.pin = false;
        return port::start_eal(config);
    }
    std::vector<std::string> args = {
        "pipeline_bench",  "--in-memory",         "--no-pci",
        "--no-telemetry",  "--log-level=*:error", "--lcores=127@(0-" + std::to_string(port::usable_cpus().back()) + ")",
        "--main-lcore=127"};
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    if (::rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0)
        throw core::RunError(fmt::format("DPDK could not start: {}", rte_strerror(rte_errno)));
}

class Case {
public:
    Case(const Options& options, const StreamKind& kind, const FrameMemory& memory, LapRunner& runner, double tsc_hz)
        : options_(options), kind_(kind), memory_(memory), runner_(runner), tsc_hz_(tsc_hz) {}

    nlohmann::json run(const WorkingSet& set, const Mix& mix) {
        runner_.run(Mode::verify, set);
        const std::uint32_t repetitions = options_.repetitions.value_or(options_.quick ? 3 : 5);
        std::map<Mode, std::vector<Lap>> laps;
        std::uint32_t disturbed = 0;
        // Modes take turns, so that whatever the machine does meanwhile meets all of them.
        for (std::uint32_t i = 0; i < repetitions; ++i)
            for (const Mode mode : options_.modes) {
                laps[mode].push_back(options_.warm ? runner_.run(mode, set)
                                                   : runner_.run_cold(mode, set, memory_, disturbed));
            }
        nlohmann::json out = describe_case(kind_, set, mix);
        out["repetitions"] = repetitions;
        out["disturbed_laps"] = disturbed;
        std::uint64_t lost = 0;
        for (const auto& [mode, list] : laps) {
            for (const Lap& lap : list) lost += lap.lost;
            report_laps(out, std::string(name_of(mode)), list, set, tsc_hz_);
        }
        out["lost"] = lost;
        report_ratio(out, "assemble_of_touch", laps[Mode::assemble], laps[Mode::touch]);
        report_ratio(out, "consume_of_copy", laps[Mode::consume], laps[Mode::copy]);
        return out;
    }

private:
    const Options& options_;
    const StreamKind& kind_;
    const FrameMemory& memory_;
    LapRunner& runner_;
    double tsc_hz_;
};

void print_line(const nlohmann::json& result, const std::vector<Mode>& modes) {
    std::string line = fmt::format("{:28}{:>6}  {:9}", result["name"].get<std::string>(),
                                   result["open_events"].get<int>(), result["order"].get<std::string>());
    for (const Mode mode : modes)
        line += fmt::format("{:9.2f} {:6.0f}", result[fmt::format("{}_mpps", name_of(mode))].get<double>(),
                            result[fmt::format("{}_cycles", name_of(mode))].get<double>());
    fmt::print("{}   {:4.0f} % {:4.0f} %\n", line, result.value("assemble_of_touch", 0.0) * 100,
               result.value("consume_of_copy", 0.0) * 100);
    std::fflush(stdout);
}

/// Events that are open in the largest case of a kind.
std::uint32_t open_most(const Options& options, const StreamKind& kind) {
    return std::min(*options.open_events.rbegin(), open_events_max_of(kind));
}

/// What the cases need, and no more.
struct Sizes {
    std::vector<StreamKind> kinds;
    std::size_t set_bytes = 0;     ///< of a case, unless more is needed
    std::size_t memory_bytes = 0;  ///< for frames
    std::uint32_t buffers = 0;

    explicit Sizes(const Options& options)
        : set_bytes(
              (!options.study.empty() ? options.mib.value_or(512) : options.mib.value_or(options.quick ? 256 : 1024))
              << 20U) {
        memory_bytes = set_bytes;
        for (StreamKind kind : stream_kinds()) {
            if (options.names.empty() ? kind.only_if_named : !options.names.contains(std::string(kind.name))) continue;
            kind.sources = options.sources.value_or(kind.sources);
            kinds.push_back(kind);
            memory_bytes = std::max(memory_bytes, WorkingSet::bytes_needed(kind, open_most(options, kind)));
            buffers = std::max(buffers, buffers_needed(kind, open_events_max_of(kind)));
        }
    }
};

nlohmann::json run_cases(const Options& options, const Sizes& sizes, const FrameMemory& memory,
                         const FrameMemory& outputs, double tsc_hz) {
    nlohmann::json cases = nlohmann::json::array();
    fmt::print("{:28}{:>6}  {:9}", "case", "open", "order");
    for (const Mode mode : options.modes) fmt::print("{:>9} {:>6}", name_of(mode), "cyc");
    fmt::print("   a/t    c/c\n");
    const port::BufferPool pool("packets", {sizes.buffers, 64});
    for (const StreamKind& kind : sizes.kinds) {
        LapRunner runner(kind, {.pool = pool.get()}, outputs.bytes());
        Case one(options, kind, memory, runner, tsc_hz);
        // One size for all cases of a kind, because how much memory there is has a cost of its own.
        const std::size_t bytes =
            options.quick ? sizes.set_bytes
                          : std::max(sizes.set_bytes, WorkingSet::bytes_needed(kind, open_most(options, kind)));
        for (const std::uint32_t open : options.open_events)
            for (const std::string& order : options.orders) {
                if (open > open_events_max_of(kind)) continue;
                if (kind.responder && (open != 1 || order != "in_order")) continue;  // there is no other way
                const Mix mix{open, order == "shuffled", open};
                const WorkingSet set(memory, bytes, kind, mix);
                cases.push_back(one.run(set, mix));
                print_line(cases.back(), options.modes);
            }
    }
    return cases;
}

int run(int argc, char** argv) {
    const Options options = parse(argc, argv);
    const Sizes sizes(options);
    keep_memory();
    start_eal(options, port::BufferPool::memory_bytes({sizes.buffers, 64}) + (std::uint64_t{192} << 20U) +
                           (options.study.empty() ? 0 : study_eal_bytes));
    const int cpu = pin_thread();
    const double tsc_hz = calibrate_tsc_hz(options.quick ? 0.3 : 1.0);
    const FrameMemory memory(sizes.memory_bytes);
    const FrameMemory outputs(std::size_t{64} << 20U);

    nlohmann::json report;
    report["machine"] = describe_machine(options.commit);
    report["machine"]["cpu_used"] = cpu;
    report["machine"]["tsc_hz"] = std::round(tsc_hz);
    report["machine"]["frame_memory_on_huge_pages"] = std::round(memory.huge_share() * 1000) / 1000;
    report["machine"]["dpdk_memory"] = options.huge ? "hugetlb" : "4 KiB pages (--no-huge)";
    report["machine"]["real_time_scheduling"] = Undisturbed().granted();
    if (options.study.empty())
        report["cases"] = run_cases(options, sizes, memory, outputs, tsc_hz);
    else
        report["rows"] = run_study({options.study, sizes.set_bytes, options.repetitions.value_or(3), tsc_hz}, memory,
                                   outputs.bytes());
    save_report(options.json_path, report);
    port::stop_eal();
    return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
    return weir::bench::run_program("pipeline_bench", weir::bench::run, argc, argv);
}
