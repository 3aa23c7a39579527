// Of the packets that are missing when a run is ended: which of them may not have been sent yet. Only those of the
// event that a source was busy with, and of later ones; what it left out before, it has lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <span>

#include "core/one_writer.hpp"
#include "core/units.hpp"

namespace weir::stages {

/// Of one source. Written by one lcore, read by any thread.
class CutOff {
public:
    struct Summary {
        core::TimeNs newest_ns = std::numeric_limits<core::TimeNs>::min();  ///< when the newest event with it began
        std::uint64_t in_newest = 0;                                        ///< missing in that event
        core::TimeNs absent_ns = core::never;                               ///< the first event without it began
        std::uint64_t absent = 0;  ///< missing in events without it that began after the newest one
    };

    /// An event that began at `begun_ns` and has something of the source; `missing` packets were cut off if the source
    /// sent nothing for a later event.
    void add_present(core::TimeNs begun_ns, std::uint64_t missing) noexcept {
        if (begun_ns < newest_ns_.load(std::memory_order_relaxed)) return;
        newest_ns_.store(begun_ns, std::memory_order_relaxed);
        in_newest_.store(missing, std::memory_order_relaxed);
        if (absent_ns_.load(std::memory_order_relaxed) >= begun_ns) return;
        absent_.store(0, std::memory_order_relaxed);
        absent_ns_.store(core::never, std::memory_order_relaxed);
    }
    /// An event that has nothing of it when the run ends.
    void add_absent(core::TimeNs begun_ns, std::uint64_t missing) noexcept {
        if (begun_ns < newest_ns_.load(std::memory_order_relaxed)) return;
        core::add(absent_, missing);
        if (begun_ns < absent_ns_.load(std::memory_order_relaxed))
            absent_ns_.store(begun_ns, std::memory_order_relaxed);
    }
    [[nodiscard]] Summary summary() const noexcept {
        return {newest_ns_.load(std::memory_order_relaxed), in_newest_.load(std::memory_order_relaxed),
                absent_ns_.load(std::memory_order_relaxed), absent_.load(std::memory_order_relaxed)};
    }

private:
    std::atomic<core::TimeNs> newest_ns_{std::numeric_limits<core::TimeNs>::min()};
    std::atomic<core::TimeNs> absent_ns_{core::never};
    std::atomic<std::uint64_t> in_newest_{0};
    std::atomic<std::uint64_t> absent_{0};
};

/// Packets of a source that may not have been sent yet, by what all workers saw of it.
[[nodiscard]] inline std::uint64_t cut_off_packets(std::span<const CutOff::Summary> workers) noexcept {
    core::TimeNs newest_ns = std::numeric_limits<core::TimeNs>::min();
    for (const CutOff::Summary& worker : workers)
        if (worker.newest_ns > newest_ns) newest_ns = worker.newest_ns;
    std::uint64_t packets = 0;
    for (const CutOff::Summary& worker : workers) {
        if (worker.newest_ns == newest_ns) packets += worker.in_newest;
        if (worker.absent > 0 && worker.absent_ns >= newest_ns) packets += worker.absent;
    }
    return packets;
}

}  // namespace weir::stages
