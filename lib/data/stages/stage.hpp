// What runs on an lcore, and what the stages of different lcores tell each other besides what goes through rings.
#pragma once

#include <rte_cycles.h>
#include <algorithm>
#include <array>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "assemble/overload.hpp"
#include "core/units.hpp"
#include "stages/poll_counts.hpp"

namespace weir::stages {

using core::never;
using core::TimeNs;

/// One step of the pipeline. An lcore polls its stages in order; which stages share an lcore is data (the topology).
class Stage {
public:
    virtual ~Stage() = default;
    /// Bounded work; returns how much was moved, 0 if there was nothing to do. Never blocks, allocates, throws, logs or
    /// reads a clock: `now` is the wall clock, which only live input takes for the time of its data.
    virtual std::size_t poll(TimeNs now) noexcept = 0;

    /// poll(), and counts what became of it. `tsc`: when it began, by the time stamp counter; then when it ended.
    std::size_t counted_poll(TimeNs now, std::uint64_t& tsc) noexcept {
        blocked_ = Blocked::none;
        const std::size_t work = poll(now);
        const std::uint64_t end = ::rte_rdtsc();
        polls_.add(work, blocked_, tsc, end);
        tsc = end;
        return work;
    }
    [[nodiscard]] PollCounts::Values polls() const noexcept { return polls_.values(); }

protected:
    /// In a poll: there was something to do that could not be done for want of this.
    void blocked(Blocked what) noexcept { blocked_ = what; }

private:
    PollCounts polls_;
    Blocked blocked_ = Blocked::none;
};

/// Written by one rx lcore, read by the builder (and, where packets are steered on, by other rx lcores).
struct alignas(core::cache_line_bytes) RxSignals {
    /// No descriptor with an earlier time follows; stored after everything before it went into the rings.
    std::atomic<TimeNs> watermark{std::numeric_limits<TimeNs>::min()};
    /// The same for packets that this lcore steers to others: it depends on its own input only, where `watermark` also
    /// waits for what others steer here.
    std::atomic<TimeNs> steered_until{std::numeric_limits<TimeNs>::min()};
    std::atomic<assemble::Fill> fill{assemble::Fill::low};  ///< of what this lcore's messages may hold
    std::atomic<bool> need_room{false};                     ///< buffers are short: an open event should make room
    std::atomic<bool> steered_all{false};                   ///< nothing more will be steered to other rx lcores
    std::atomic<bool> finished{false};                      ///< the last descriptor is in the ring
};

/// Most shards of the builder.
constexpr std::uint32_t builders_max = 16;

/// Written by one shard of the builder.
struct alignas(core::cache_line_bytes) BuildSignals {
    std::atomic<bool> empty{true};         ///< no event is open or queued
    std::atomic<bool> finished{false};     ///< the last event is in the ring
    std::span<const TimeNs> newest_whole;  ///< once `input_done`: EventBuilder::newest_whole
    std::atomic<bool> input_done{false};
    /// Events of a lower Event::sequence have left: they are in the workers' rings, or dropped.
    std::atomic<std::uint64_t> left{0};
};

/// Written by the control thread or the stage named, read by all.
struct RunSignals {
    alignas(core::cache_line_bytes) std::atomic<bool> stop_input{false};  ///< control: take no more packets, drain
    std::atomic<bool> exit{false};                                        ///< control: lcores leave their loops
    std::uint32_t builders = 1;  ///< shards of the builder; set before anything runs
    std::array<BuildSignals, builders_max> build;
    std::atomic<std::uint32_t> overloaded{0};  ///< builders that leave events out (Overload::prescale)

    /// No event is open or queued anywhere.
    [[nodiscard]] bool builders_empty() const noexcept {
        for (std::uint32_t i = 0; i < builders; ++i)
            if (!build[i].empty.load(std::memory_order_relaxed)) return false;
        return true;
    }
    /// Every shard has taken all its input.
    [[nodiscard]] bool input_done() const noexcept {
        for (std::uint32_t i = 0; i < builders; ++i)
            if (!build[i].input_done.load(std::memory_order_acquire)) return false;
        return true;
    }
    /// The last event is in a worker's ring.
    [[nodiscard]] bool builders_finished() const noexcept {
        for (std::uint32_t i = 0; i < builders; ++i)
            if (!build[i].finished.load(std::memory_order_acquire)) return false;
        return true;
    }
};

/// A buffer of formatted blocks on its way from a worker through the threads of the sinks, and back.
struct OutputBuffer {
    std::span<std::byte> memory;
    std::uint32_t worker = 0;  ///< whose it is
    std::size_t used_bytes = 0;
    std::uint64_t events_ended = 0;  ///< events whose last block is in here
    bool event_open = false;         ///< the same worker's next buffer must follow directly
};

}  // namespace weir::stages
