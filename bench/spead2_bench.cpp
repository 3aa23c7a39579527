// weir beside spead2: the same SPEAD packets in the same cold memory, in turns on one core.
// docs/internals/BENCHMARKS.md has the method. Needs a spead2 that its user has built; scripts/bench spead2 finds it.
#include <utility>  // for boost 1.74, which forgets it

#include <fmt/format.h>
#include <spead2/common_memory_pool.h>
#include <spead2/common_raw_packet.h>
#include <spead2/recv_heap.h>
#include <spead2/recv_packet.h>
#include <spead2/recv_stream.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <set>

#include "bench_program.hpp"
#include "core/error.hpp"
#include "lap.hpp"
#include "lap_report.hpp"
#include "machine.hpp"
#include "port/eal.hpp"

namespace weir::bench {

namespace {

constexpr std::size_t batch = 64;  // packets that a reader of spead2 passes on at a time

/// Memory for heaps, on huge pages like that of the frames: spead2's pool asks for it once.
class HeapMemory final : public spead2::memory_allocator {
public:
    explicit HeapMemory(std::size_t bytes) : memory_(bytes) {}
    pointer allocate(std::size_t size, void* /*hint*/) override {
        const std::size_t rounded = (size + 63) / 64 * 64;
        if (memory_.bytes().size() - used_ < rounded) throw std::bad_alloc();
        auto* at = reinterpret_cast<std::uint8_t*>(memory_.bytes().data() + used_);
        used_ += rounded;
        return {at, [](std::uint8_t*) {}};  // it goes with all of the memory
    }

private:
    FrameMemory memory_;
    std::size_t used_ = 0;
};

void leave_out(const spead2::memory_allocator::pointer& /*heap*/, const spead2::recv::packet_header& /*packet*/) {}

/// Takes heaps as they become complete, and gives their memory back at once.
class HeapCounter final : public spead2::recv::stream_base {
public:
    using stream_base::stream_base;
    /// Every heap is to be this; nothing: it is not looked at.
    void compare_with(std::span<const std::byte> heap) { expected_ = heap; }
    [[nodiscard]] std::uint64_t complete() const { return complete_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] bool differs() const { return differs_; }

private:
    void heap_ready(spead2::recv::live_heap&& heap) override {
        if (!heap.is_complete()) return;
        ++complete_;
        bytes_ += static_cast<std::uint64_t>(heap.get_received_length());
        if (expected_.empty()) return;
        const std::size_t bytes = static_cast<std::size_t>(heap.get_received_length());
        const spead2::recv::heap whole(std::move(heap));
        differs_ = differs_ || bytes != expected_.size() ||
                   std::memcmp(whole.get_payload().get(), expected_.data(), bytes) != 0;
    }

    std::span<const std::byte> expected_;
    std::uint64_t complete_ = 0;
    std::uint64_t bytes_ = 0;
    bool differs_ = false;
};

class Spead2Laps {
public:
    Spead2Laps(const StreamKind& kind, const Mix& mix) {
        const std::size_t heaps = mix.open_events + mix.open_events / 8 + 16;
        const std::size_t bytes = kind.message_bytes();
        memory_ = std::make_shared<HeapMemory>((heaps + 1) * (bytes + 64));
        const auto pool = std::make_shared<spead2::memory_pool>(bytes, bytes, heaps, heaps, memory_);
        pool->set_warn_on_empty(false);
        config_.set_memory_allocator(pool);
        config_.set_max_heaps(heaps);
        config_.set_allow_out_of_order(mix.shuffled);  // it is cheaper without
    }

    /// Throws core::RunError if a packet or a byte is missing; with `verify` also if a byte is another one.
    Lap run(const WorkingSet& set, bool copies, bool verify) {
        spead2::recv::stream_config config = config_;
        if (!copies) config.set_memcpy(spead2::recv::packet_memcpy_function(leave_out));
        HeapCounter heaps(config);
        if (verify) heaps.compare_with(set.message());
        Lap lap;
        std::uint64_t refused = 0;
        {
            const Undisturbed undisturbed;
            const Stopwatch stopwatch(lap);
            for (std::span<const Frame> left = set.frames(); !left.empty();) {
                const std::span<const Frame> frames = left.first(std::min(batch, left.size()));
                left = left.subspan(frames.size());
                refused += add(heaps, frames);
            }
        }
        const std::uint64_t packets = heaps.get_stats().packets;
        if (refused > 0 || packets != set.frames().size() || heaps.complete() != set.events() ||
            heaps.bytes() != set.payload_bytes() || heaps.differs())
            throw core::RunError(
                fmt::format("spead2: the self-check failed: {} of {} packets, {} of {} heaps, {} of {} bytes{}",
                            packets - refused, set.frames().size(), heaps.complete(), set.events(), heaps.bytes(),
                            set.payload_bytes(), heaps.differs() ? ", bytes differ" : ""));
        return lap;
    }

private:
    /// As its readers that see whole frames do it.
    static std::uint64_t add(HeapCounter& heaps, std::span<const Frame> frames) {
        spead2::recv::stream_base::add_packet_state state(heaps);
        std::uint64_t refused = 0;
        for (const Frame& frame : frames) {
            const spead2::packet_buffer payload = spead2::udp_from_ethernet(frame.at, frame.bytes);
            spead2::recv::packet_header packet;
            const std::size_t size = spead2::recv::decode_packet(packet, payload.data(), payload.size());
            if (size != payload.size() || !state.add_packet(packet)) ++refused;
        }
        return refused;
    }

    std::shared_ptr<HeapMemory> memory_;
    spead2::recv::stream_config config_;
};

struct Options {
    std::string json_path;
    std::string commit = "unknown";
    std::string version = "unknown";
    std::uint32_t repetitions = 5;
    std::size_t mib = 512;
    std::set<std::string> names;
    std::set<std::uint32_t> open_heaps;
    std::set<std::string> orders;
};

constexpr const char* usage =
    "usage: spead2_bench [--json FILE] [--quick] [--repetitions N] [--mib N] [--case NAME]... [--open N]...\n"
    "                    [--order in_order|shuffled]... [--commit ID] [--version OF_SPEAD2]\n"
    "The same SPEAD packets through weir's stages and through a stream of spead2, in turns.\n"
    "  --quick  256 MiB of frames instead of 512, 3 laps instead of 5\n";

std::uint32_t number_of(const std::string& option, const std::string& text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value == 0)
        throw core::UsageError(fmt::format("{}: found '{}'; accepted: a number above 0", option, text));
    return value;
}

Options parse(int argc, char** argv) {
    Options options;
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
        else if (option == "--version")
            options.version = value();
        else if (option == "--quick")
            options.repetitions = 3, options.mib = 256;
        else if (option == "--repetitions")
            options.repetitions = number_of(option, value());
        else if (option == "--mib")
            options.mib = number_of(option, value());
        else if (option == "--case")
            options.names.insert(value());
        else if (option == "--open")
            options.open_heaps.insert(std::min(number_of(option, value()), open_events_max));
        else if (option == "--order")
            options.orders.insert(value());
        else
            throw core::UsageError(fmt::format("unknown option '{}'\n{}", option, usage));
    }
    if (options.open_heaps.empty()) options.open_heaps = {1, 64, open_events_max};
    if (options.orders.empty()) options.orders = {"in_order", "shuffled"};
    for (const std::string& order : options.orders)
        if (order != "in_order" && order != "shuffled")
            throw core::UsageError(fmt::format("--order: found '{}'; accepted: in_order, shuffled", order));
    for (const std::string& name : options.names)
        if (std::ranges::none_of(spead_kinds(), [&](const StreamKind& kind) { return kind.name == name; }))
            throw core::UsageError(fmt::format("--case: found '{}'; accepted: spead-8k, spead-1k, spead-64", name));
    return options;
}

/// Laps of a case, in turns.
class Case {
public:
    Case(const Options& options, const FrameMemory& memory, double tsc_hz)
        : options_(options), memory_(memory), tsc_hz_(tsc_hz) {}

    nlohmann::json run(LapRunner& weir, const StreamKind& kind, const WorkingSet& set, const Mix& mix) {
        Spead2Laps spead2(kind, mix);
        weir.run(Mode::verify, set);
        spead2.run(set, true, true);
        std::vector<Lap> assemble, consume, without_copy, with_copy;
        std::uint32_t disturbed = 0;
        const auto cold = [&](const std::function<Lap()>& lap) { return run_cold(lap, set, memory_, disturbed); };
        for (std::uint32_t i = 0; i < options_.repetitions; ++i) {
            assemble.push_back(cold([&] { return weir.run(Mode::assemble, set); }));
            without_copy.push_back(cold([&] { return spead2.run(set, false, false); }));
            consume.push_back(cold([&] { return weir.run(Mode::consume, set); }));
            with_copy.push_back(cold([&] { return spead2.run(set, true, false); }));
        }
        nlohmann::json out = describe_case(kind, set, mix);
        out["repetitions"] = options_.repetitions;
        out["disturbed_laps"] = disturbed;
        report_laps(out, "assemble", assemble, set, tsc_hz_);
        report_laps(out, "consume", consume, set, tsc_hz_);
        report_laps(out, "spead2_without_copy", without_copy, set, tsc_hz_);
        report_laps(out, "spead2", with_copy, set, tsc_hz_);
        report_ratio(out, "assemble_of_spead2", assemble, without_copy);
        report_ratio(out, "consume_of_spead2", consume, with_copy);
        return out;
    }

private:
    const Options& options_;
    const FrameMemory& memory_;
    double tsc_hz_;
};

void print_line(const nlohmann::json& result) {
    const auto number = [&](const char* key) { return result[key].get<double>(); };
    fmt::print("{:10}{:>6}  {:9}", result["name"].get<std::string>(), result["open_events"].get<int>(),
               result["order"].get<std::string>());
    for (const char* name : {"assemble", "spead2_without_copy", "consume", "spead2"})
        fmt::print("{:9.2f} {:6.0f}", number(fmt::format("{}_mpps", name).c_str()),
                   number(fmt::format("{}_cycles", name).c_str()));
    for (const char* name : {"assemble_of_spead2", "consume_of_spead2"})
        fmt::print("   {:5.2f} ({:.2f} to {:.2f})", number(name), number(fmt::format("{}_min", name).c_str()),
                   number(fmt::format("{}_max", name).c_str()));
    fmt::print("\n");
    std::fflush(stdout);
}

std::vector<StreamKind> kinds_of(const Options& options) {
    std::vector<StreamKind> kinds;
    for (const StreamKind& kind : spead_kinds())
        if (options.names.empty() || options.names.contains(std::string(kind.name))) kinds.push_back(kind);
    return kinds;
}

nlohmann::json run_cases(const Options& options, std::span<const StreamKind> kinds, std::uint32_t buffers,
                         const FrameMemory& memory, double tsc_hz) {
    nlohmann::json cases = nlohmann::json::array();
    fmt::print("{:10}{:>6}  {:9}", "case", "open", "order");
    for (const char* name : {"assemble", "no copy", "consume", "spead2"}) fmt::print("{:>9} {:>6}", name, "cyc");
    fmt::print("   assemble / no copy      consume / spead2\n");
    const port::BufferPool pool("packets", {buffers, 64});
    Case one(options, memory, tsc_hz);
    for (const StreamKind& kind : kinds) {
        LapRunner weir(kind, {.pool = pool.get()}, {});
        for (const std::uint32_t open : options.open_heaps)
            for (const std::string& order : options.orders) {
                const Mix mix{open, order == "shuffled", open};
                const WorkingSet set(memory, options.mib << 20U, kind, mix);
                cases.push_back(one.run(weir, kind, set, mix));
                print_line(cases.back());
            }
    }
    return cases;
}

int run(int argc, char** argv) {
    const Options options = parse(argc, argv);
    const std::vector<StreamKind> kinds = kinds_of(options);
    std::size_t memory_bytes = options.mib << 20U;
    std::uint32_t buffers = 0;
    for (const StreamKind& kind : kinds) {
        memory_bytes = std::max(memory_bytes, WorkingSet::bytes_needed(kind, *options.open_heaps.rbegin()));
        buffers = std::max(buffers, buffers_needed(kind, open_events_max));
    }
    keep_memory();
    port::EalConfig eal;
    eal.memory_bytes = port::BufferPool::memory_bytes({buffers, 64}) + (std::uint64_t{192} << 20U);
    eal.pin = false;
    port::start_eal(eal);
    nlohmann::json report;
    report["machine"] = describe_machine(options.commit);
    report["machine"]["cpu_used"] = pin_thread();
    const double tsc_hz = calibrate_tsc_hz(1.0);
    const FrameMemory memory(memory_bytes);
    report["machine"]["frame_memory_on_huge_pages"] = memory.huge_share();
    report["spead2"] = options.version;
    report["cases"] = run_cases(options, kinds, buffers, memory, tsc_hz);
    save_report(options.json_path, report);
    port::stop_eal();
    return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
    return weir::bench::run_program("spead2_bench", weir::bench::run, argc, argv);
}
