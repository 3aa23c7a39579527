#include "lap.hpp"

#include <fmt/format.h>
#include <immintrin.h>
#include <malloc.h>
#include <rte_cycles.h>
#include <rte_prefetch.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "core/error.hpp"
#include "reduce/gather.hpp"
#include "stages/build_stage.hpp"
#include "stages/bytes_encoder.hpp"
#include "stages/work_stage.hpp"

namespace weir::bench {

using assemble::Event;
using assemble::Message;
using port::Packet;

namespace {

constexpr std::uint32_t burst = 64;
/// A lap in which this thread had its CPU for less than this share of the time measured the neighbours.
constexpr double busy_min = 0.98;
constexpr std::uint32_t roce_runs = 65536;  // packets out of order are runs of their own until they join
constexpr core::TimeNs packet_ns = 100;
constexpr core::TimeNs start_ns = core::ns_per_s;
constexpr core::TimeNs timeout_ns = 3600 * core::ns_per_s;
/// The output that stays in cache: what the zstd reducer collects before it compresses.
constexpr std::size_t scratch_bytes = std::size_t{256} << 10U;

std::uint64_t clock_ns(clockid_t clock) noexcept {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::uint64_t raw_ns() noexcept {
    return clock_ns(CLOCK_MONOTONIC_RAW);
}

std::uint64_t thread_ns() noexcept {
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

Stopwatch::Stopwatch(Lap& lap) noexcept
    : lap_(lap), cpu_(thread_ns()), wall_(raw_ns()), cycles_(::rte_rdtsc_precise()) {}

Stopwatch::~Stopwatch() {
    lap_.cycles = ::rte_rdtsc_precise() - cycles_;
    lap_.wall_ns = raw_ns() - wall_;
    lap_.cpu_ns = thread_ns() - cpu_;
}

Lap run_cold(const std::function<Lap()>& run, const WorkingSet& set, const FrameMemory& memory,
             std::uint32_t& disturbed) {
    for (int attempt = 0;; ++attempt) {
        memory.evict(set.extent_bytes());
        const Lap lap = run();
        if (lap.busy() >= busy_min || attempt == 3) return lap;
        ++disturbed;
    }
}

std::string_view name_of(Mode mode) noexcept {
    constexpr std::array<std::string_view, 6> names = {"touch", "assemble", "consume", "store", "copy", "verify"};
    return names[static_cast<std::size_t>(mode)];
}

void keep_memory() noexcept {
    ::mallopt(M_MMAP_MAX, 0);
    ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
    ::mallopt(M_TOP_PAD, 64 << 20);
}

Undisturbed::Undisturbed() noexcept {
    const sched_param priority{.sched_priority = 1};
    granted_ = ::sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
}

Undisturbed::~Undisturbed() {
    const sched_param priority{.sched_priority = 0};
    if (granted_) ::sched_setscheduler(0, SCHED_OTHER, &priority);
}

void copy_streaming(std::byte* out, const std::byte* from, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += 64) {
#ifdef __AVX512F__
        _mm512_stream_si512(reinterpret_cast<__m512i*>(out + at), _mm512_loadu_si512(from + at));
#else
        for (std::size_t part = 0; part < 64; part += 16)
            _mm_stream_si128(reinterpret_cast<__m128i*>(out + at + part),
                             _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + part)));
#endif
    }
}

std::uint32_t ColdDevice::receive(std::span<Packet> packets) noexcept {
    const std::size_t left = set_.frames().size() - next_;
    const auto count = static_cast<std::uint32_t>(std::min(packets.size(), left));
    std::array<rte_mbuf*, burst> mbufs;
    if (count == 0 || ::rte_mempool_get_bulk(pool_, reinterpret_cast<void**>(mbufs.data()), count) != 0) {
        starved_ = count > 0;
        return 0;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        const Frame& frame = set_.frames()[next_];
        rte_mbuf& mbuf = *mbufs[i];
        if (copies_) {
            mbuf.data_off = RTE_PKTMBUF_HEADROOM;
            std::memcpy(rte_pktmbuf_mtod(&mbuf, std::byte*), frame.at, frame.bytes);
        } else {
            mbuf.buf_addr = frame.at;
            mbuf.data_off = 0;
        }
        mbuf.refcnt = 1;
        mbuf.nb_segs = 1;
        mbuf.port = 0;
        mbuf.ol_flags = 0;
        mbuf.packet_type = 0;
        mbuf.pkt_len = frame.bytes;
        mbuf.data_len = static_cast<std::uint16_t>(frame.bytes);
        packets[i] = {&mbuf, start_ns + static_cast<core::TimeNs>(next_) * packet_ns, mbuf.pkt_len, mbuf.data_len, 0};
        ++next_;
    }
    return count;
}

std::uint32_t open_events_max_of(const StreamKind& kind) noexcept {
    return std::max(1U, std::min(open_events_max, 2 * open_events_max / kind.sources));
}

std::uint32_t buffers_needed(const StreamKind& kind, std::uint32_t open_events) noexcept {
    // Events overlap a little more than their number says, and the rings and bursts hold some.
    return (open_events + open_events / 8 + 16) * kind.sources * kind.packets + 4096;
}

/// The stages of one lap and the rings between them, sized as a plan would for `open_events_max`.
struct LapRunner::Stages {
    Stages(const StreamKind& kind, std::uint32_t lap, const LapSetup& setup)
        : streams{runtime_of(kind)},
          steering(steering_of(kind)),
          sources(kind.sources),
          open_max(2 * open_events_max_of(kind) + 16),
          queued_max(open_events_max_of(kind)),
          messages_max((open_max + queued_max) * sources + 16 * sources + 4 * burst + (kind.roce ? roce_runs : 0)),
          packets(fmt::format("packets{}", lap), 1024),
          descriptors(fmt::format("descriptors{}", lap), 2 * messages_max + 1024),
          commands(fmt::format("commands{}", lap), 2 * messages_max + 1024),
          recycle(fmt::format("recycle{}", lap), messages_max),
          events(fmt::format("events{}", lap), slots()),
          released(fmt::format("released{}", lap), slots()),
          event_room(1, open_max + queued_max) {
        make_rx(kind, setup);
        make_build();
        stages::WorkStage::Config worker;
        worker.to_file = false;
        worker.sources_needed = sources;
        worker.sources.assign(sources, {kind.message_bytes(), kind.payload_bytes});
        worker.refs_max = kind.packets;
        worker.build = {{&events, &released}};
        worker.recycle = {&recycle};
        // Every byte is read, as with a reducer after it.
        auto encoder =
            std::make_unique<stages::BytesEncoder>(stages::BytesEncoder::Config{kind.packets, true}, nullptr);
        work = std::make_unique<stages::WorkStage>(worker, std::move(encoder), signals);
    }

    [[nodiscard]] std::uint32_t slots() const { return 2 * open_max + queued_max + 128 + 1; }

    void make_rx(const StreamKind& kind, const LapSetup& setup) {
        stages::RxStage::Config config;
        config.steering = {&steering};
        config.rings = {{&packets, &ended}};
        config.steer_in.resize(1);
        config.steer_out.resize(1);
        config.descriptors = {&descriptors};
        config.commands = {&commands};
        config.recycle = {&recycle};
        config.table.sources = sources;
        config.table.messages_max = messages_max;
        config.table.buffers_max = setup.pool->size;
        size_copies(kind, setup, config.table.copies);
        config.table.range_blocks = 4096;
        config.table.horizon = 2 * (open_max + queued_max);
        config.table.touch = true;
        config.table.timeout_ns = timeout_ns;
        config.table.number_bits.assign(sources, kind.roce ? 32 : streams[0].context.number_bits);
        if (kind.roce) {
            config.listener.sources.resize(sources);
            for (std::uint32_t source = 0; source < sources; ++source) config.listener.sources[source].source = source;
            config.listener.runs_max = roce_runs;
            config.listener.window = 4 * open_max;
            config.listener.timeout_ns = timeout_ns;
        }
        if (kind.responder) answer(kind, config);
        number_bits = config.table.number_bits;
        rx = std::make_unique<stages::RxStage>(config, streams, rx_signals, signals);
    }

    /// Cells as a plan has them; as many as the open events need.
    void size_copies(const StreamKind& kind, const LapSetup& setup, assemble::CopyConfig& copies) const {
        if (setup.assembly == config::AssemblyMode::reference) return;
        const bool all = setup.assembly == config::AssemblyMode::copy;
        copies.at_once_bytes = all ? kind.payload_bytes : assemble::CopyConfig::small_bytes;
        if (kind.payload_bytes > copies.at_once_bytes) return;
        if (all) copies.cell_bytes = 65536;
        const std::uint32_t in_cell = copies.in_cell(kind.payload_bytes);
        copies.cells = (2 * setup.open_events + 256) * sources * ((kind.packets + in_cell - 1) / in_cell);
    }

    /// As a configuration with service = "rc" does it; the answers go to a ring, as those of a replay.
    void answer(const StreamKind& kind, stages::RxStage::Config& config) {
        for (std::uint32_t source = 0; source < sources; ++source) {
            roce::QueuePair queue_pair;
            queue_pair.service = roce::Service::rc;
            queue_pair.peer_qp = source;
            queue_pair.psn = 0;
            queue_pair.path_mtu = kind.payload_bytes;
            queue_pair.needs_immediate = true;
            queue_pair.region_count = 1;
            queue_pair.regions[0].bytes = kind.message_bytes();
            config.responder.sources.push_back({.source = source, .queue_pair = queue_pair});
        }
        config.table.event_room = &event_room;
        config.answer_log = &answers;
    }

    /// Counts the answers as they leave.
    void send_answers() noexcept {
        for (; answers.front() != nullptr; answers.pop()) ++answered;
    }

    void make_build() {
        stages::BuildStage::Config config;
        config.builder.sources = sources;
        config.builder.sources_needed = sources;
        config.builder.open_max = open_max;
        config.builder.queued_max = queued_max;
        config.builder.event_room = &event_room;
        config.builder.timeout_ns = timeout_ns;
        config.builder.horizon = 2 * (open_max + queued_max);
        config.builder.touch = true;
        config.builder.owner.assign(sources, 0);
        config.builder.number_bits = number_bits;
        config.builder.messages_max = messages_max;
        config.rx = {{&descriptors, &commands, &rx_signals}};
        config.work = {{&events, &released}};
        build = std::make_unique<stages::BuildStage>(config, signals);
    }

    std::vector<stages::StreamRuntime> streams;
    steer::Steering steering;
    std::uint32_t sources;
    std::uint32_t open_max;    ///< events
    std::uint32_t queued_max;  ///< events
    std::uint32_t messages_max;
    std::vector<std::uint8_t> number_bits;
    stages::RunSignals signals;
    stages::RxSignals rx_signals;
    std::atomic<bool> ended{false};
    port::Ring<Packet> packets;
    port::Ring<assemble::Descriptor> descriptors;
    port::Ring<assemble::Command> commands;
    port::Ring<Message*> recycle;
    port::Ring<Event*> events;
    port::Ring<Event*> released;
    assemble::EventRoom event_room;
    stages::AnswerRing answers;
    std::uint64_t answered = 0;
    std::unique_ptr<stages::RxStage> rx;
    std::unique_ptr<stages::BuildStage> build;
    std::unique_ptr<stages::WorkStage> work;
};

namespace {

/// Takes events as a worker does, and gives them back.
class Consumer {
public:
    Consumer(Mode mode, const WorkingSet& set, std::uint32_t refs_max) : mode_(mode), set_(set), refs_(refs_max) {
        if (mode == Mode::consume || mode == Mode::verify) {
            scratch_.resize(scratch_bytes + 64);
            const auto at = reinterpret_cast<std::uintptr_t>(scratch_.data());
            outputs_ = std::span(scratch_).subspan((64 - at % 64) % 64, scratch_bytes);
        }
    }

    template <class Stages>
    std::uint32_t poll(Stages& stages) noexcept {
        std::array<Event*, 32> taken;
        const std::uint32_t count = stages.events.pop(taken);
        for (std::uint32_t i = 0; i < count; ++i) {
            for (Message* message : taken[i]->messages) {
                if (message == nullptr) continue;
                if (mode_ != Mode::assemble) read(*message);
                stages.recycle.push(message);
            }
            ++events_;
        }
        stages.released.push({taken.data(), count});
        return count;
    }

    [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] bool differs() const noexcept { return differs_; }

private:
    void read(const Message& message) noexcept {
        refs_.assign(message);
        reduce::GatherCursor cursor;
        std::size_t of_message = 0;
        for (;;) {
            if (at_ == outputs_.size()) at_ = 0;
            const std::span<std::byte> out = outputs_.subspan(at_);
            const std::size_t bytes = reduce::gather(refs_, cursor, out);
            if (bytes == 0) break;
            if (mode_ == Mode::verify)
                differs_ = differs_ || std::memcmp(out.data(), set_.message().data() + of_message, bytes) != 0;
            of_message += bytes;
            at_ += (bytes + 63) / 64 * 64;
        }
        bytes_ += of_message;
    }

    Mode mode_;
    const WorkingSet& set_;
    std::span<std::byte> outputs_;
    std::vector<std::byte> scratch_;
    reduce::SortedRefs refs_;
    std::size_t at_ = 0;
    std::uint64_t events_ = 0;
    std::uint64_t bytes_ = 0;
    bool differs_ = false;
};

}  // namespace

LapRunner::LapRunner(const StreamKind& kind, const LapSetup& setup, std::span<std::byte> outputs)
    : kind_(kind), setup_(setup), pool_(setup.pool), outputs_(outputs) {}

LapRunner::~LapRunner() = default;

Lap LapRunner::run(Mode mode, const WorkingSet& set) {
    Lap lap;
    if (mode == Mode::touch || mode == Mode::copy)
        run_baseline(mode, set, lap);
    else
        run_stages(mode, set, lap);
    check_pool(mode);
    return lap;
}

Lap LapRunner::run_cold(Mode mode, const WorkingSet& set, const FrameMemory& memory, std::uint32_t& disturbed) {
    return bench::run_cold([&] { return run(mode, set); }, set, memory, disturbed);
}

void LapRunner::check_pool(Mode mode) const {
    if (::rte_mempool_avail_count(pool_) != pool_->size)
        throw core::RunError(fmt::format("{} {}: {} of {} buffers did not come back", kind_.name, name_of(mode),
                                         pool_->size - ::rte_mempool_avail_count(pool_), pool_->size));
}

void LapRunner::run_stages(Mode mode, const WorkingSet& set, Lap& lap) {
    ++laps_;
    auto stages = std::make_unique<Stages>(kind_, laps_ % 8, setup_);
    ColdDevice device(pool_, set, setup_.device_copies);
    Consumer consumer(mode, set, kind_.packets);
    std::array<Packet, burst> packets;
    bool stuck = false;
    const Undisturbed undisturbed;
    {
        const Stopwatch stopwatch(lap);
        for (std::uint32_t idle = 0; !stuck;) {
            // A worker that falls behind is waited for, as a replay does it.
            const std::uint32_t count = stages->events.count() < stages->queued_max / 2 ? device.receive(packets) : 0;
            if (count > 0)
                stages->packets.push({packets.data(), count});
            else if (device.ended())
                stages->ended.store(true, std::memory_order_release);
            const core::TimeNs now = start_ns + static_cast<core::TimeNs>(device.position()) * packet_ns;
            std::size_t work = count + stages->rx->poll(now) + stages->build->poll(now);
            if (kind_.responder) stages->send_answers();
            if (mode == Mode::store)
                work += stages->work->poll(now);
            else
                work += consumer.poll(*stages);
            // Copies hold no buffers: what is left of them is work.
            if (work == 0 && device.ended() && stages->rx->buffers_held() == 0 && stages->signals.builders_finished())
                break;
            idle = work > 0 ? 0 : idle + 1;
            stuck = idle > 100'000;
        }
    }
    const auto placed = [&] {
        return stages->rx->packets().get(wire::PacketCounter::placed) +
               stages->build->packets().get(wire::PacketCounter::placed);
    }();
    const std::uint64_t complete = stages->build->events().get(assemble::EventCounter::complete);
    lap.lost = set.frames().size() - placed;
    const bool all_read = mode == Mode::assemble || mode == Mode::store || consumer.bytes() == set.payload_bytes();
    // Every message asks for one acknowledgement.
    const bool same = stages->build->placed_bytes() == set.payload_bytes() &&
                      stages->answered == (kind_.responder ? std::uint64_t{set.events()} * kind_.sources : 0);
    if (stuck || device.starved() || stages->rx->received_packets() != set.frames().size() || lap.lost > 0 ||
        complete != set.events() || !all_read || !same || consumer.differs())
        throw core::RunError(fmt::format(
            "{} {}: the self-check failed: {} of {} packets placed, {} of {} events complete{}{}{}", kind_.name,
            name_of(mode), placed, set.frames().size(), complete, set.events(), stuck ? ", stuck" : "",
            device.starved() ? ", no buffers" : "", consumer.differs() ? ", bytes differ" : ""));
}

void LapRunner::run_baseline(Mode mode, const WorkingSet& set, Lap& lap) {
    ++laps_;
    port::Ring<Packet> ring(fmt::format("packets{}", laps_ % 8), 1024);
    ColdDevice device(pool_, set, setup_.device_copies);
    std::array<Packet, burst> packets;
    std::array<void*, burst> buffers;
    std::uint64_t sum = 0;
    std::size_t at = 0;
    std::size_t frame = 0;
    const Undisturbed undisturbed;
    {
        const Stopwatch stopwatch(lap);
        while (const std::uint32_t count = device.receive(packets)) {
            ring.push({packets.data(), count});
            const std::uint32_t taken = ring.pop(packets);
            for (std::uint32_t i = 0; i < taken; ++i) {
                const auto* first = rte_pktmbuf_mtod(packets[i].mbuf, const std::byte*);
                ::rte_prefetch0(first);
                if (kind_.header_last_byte >= 64) ::rte_prefetch0(first + 64);
            }
            for (std::uint32_t i = 0; i < taken; ++i, ++frame) {
                const auto* first = rte_pktmbuf_mtod(packets[i].mbuf, const std::byte*);
                sum += std::to_integer<std::uint64_t>(first[36]) +
                       std::to_integer<std::uint64_t>(first[kind_.header_last_byte]);
                buffers[i] = packets[i].mbuf;
                if (mode == Mode::touch) continue;
                if (i + 1 < taken) {
                    const auto* next = rte_pktmbuf_mtod(packets[i + 1].mbuf, const std::byte*);
                    for (std::size_t line = 128; line < 1024; line += 64) ::rte_prefetch0(next + line);
                }
                if (at + kind_.payload_bytes > outputs_.size()) at = 0;
                copy_streaming(outputs_.data() + at, set.payload_of(frame), kind_.payload_bytes);
                at += kind_.payload_bytes;
            }
            port::release_buffers(buffers.data(), taken);
        }
        _mm_sfence();
    }
    if (frame != set.frames().size() || sum == 0)
        throw core::RunError(
            fmt::format("{} {}: {} of {} packets", kind_.name, name_of(mode), frame, set.frames().size()));
}

}  // namespace weir::bench
