// One lap: the whole working set goes once through the production stages (or through a baseline), fused on the calling
// lcore. Building the stages is not part of the time; draining them is.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "port/buffers.hpp"
#include "working_set.hpp"

namespace weir::bench {

enum class Mode : std::uint8_t {
    touch,     ///< take each packet, read its headers, give its buffer back: the packet limit
    assemble,  ///< RxStage and BuildStage; events are given back unread
    consume,   ///< the same, and every payload byte gathered once into an aligned output that stays in cache
    store,     ///< the production worker with the null sink: gathered into blocks, and their checksums
    copy,      ///< take each packet, copy its payload with non-temporal stores into memory: the byte limit
    verify,    ///< not timed: every gathered message is compared with what was sent
};
[[nodiscard]] std::string_view name_of(Mode mode) noexcept;

/// A device whose DMA has just written the working set: takes mbufs from the pool as a poll-mode driver does, in bulk,
/// and writes their first cache line; the data lie where the working set has them.
class ColdDevice {
public:
    /// `copies`: as virtual devices do, each frame is copied into the mbuf's own room by this core.
    ColdDevice(rte_mempool* pool, const WorkingSet& set, bool copies) : pool_(pool), set_(set), copies_(copies) {}
    /// Up to packets.size() packets; 0 at the end of the working set. Throws nothing: no buffer means fewer packets.
    [[nodiscard]] std::uint32_t receive(std::span<port::Packet> packets) noexcept;
    [[nodiscard]] bool ended() const noexcept { return next_ == set_.frames().size(); }
    [[nodiscard]] std::size_t position() const noexcept { return next_; }
    [[nodiscard]] bool starved() const noexcept { return starved_; }

private:
    rte_mempool* pool_;
    const WorkingSet& set_;
    bool copies_;
    std::size_t next_ = 0;
    bool starved_ = false;
};

struct Lap {
    std::uint64_t cycles = 0;
    std::uint64_t wall_ns = 0;  ///< CLOCK_MONOTONIC_RAW
    std::uint64_t cpu_ns = 0;   ///< of this thread
    std::uint64_t lost = 0;     ///< packets that were not placed
    [[nodiscard]] double busy() const noexcept {
        return wall_ns > 0 ? static_cast<double>(cpu_ns) / static_cast<double>(wall_ns) : 0;
    }
};

/// Notes in `lap` how long it lived.
class Stopwatch {
public:
    explicit Stopwatch(Lap& lap) noexcept;
    ~Stopwatch();
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

private:
    Lap& lap_;
    std::uint64_t cpu_;
    std::uint64_t wall_;
    std::uint64_t cycles_;
};

/// A lap with the frames taken out of the caches before; again, up to three times, when somebody else had the CPU
/// meanwhile, which is counted in `disturbed`.
[[nodiscard]] Lap run_cold(const std::function<Lap()>& run, const WorkingSet& set, const FrameMemory& memory,
                           std::uint32_t& disturbed);

/// Largest number of events open at once that the stages are sized for, whatever the case: what a case costs then
/// depends on how many are open, not on how many could be.
inline constexpr std::uint32_t open_events_max = 1024;

/// The same, fewer with many sources: as many messages.
[[nodiscard]] std::uint32_t open_events_max_of(const StreamKind& kind) noexcept;

/// Buffers that the pool needs so that a lap never starves.
[[nodiscard]] std::uint32_t buffers_needed(const StreamKind& kind, std::uint32_t open_events) noexcept;

struct LapSetup {
    rte_mempool* pool = nullptr;
    bool device_copies = false;  ///< frames lie in the mbufs' own rooms; else in the working set
    config::AssemblyMode assembly = config::AssemblyMode::automatic;  ///< with as many buffers as it likes
    std::uint32_t open_events = open_events_max;                      ///< that the cells for copies are enough for
};

class LapRunner {
public:
    /// `outputs`: where `copy` writes.
    LapRunner(const StreamKind& kind, const LapSetup& setup, std::span<std::byte> outputs);
    ~LapRunner();
    LapRunner(const LapRunner&) = delete;
    LapRunner& operator=(const LapRunner&) = delete;

    /// Throws core::RunError when the self-check fails: every packet placed, every event complete, the ledger balanced,
    /// every buffer back in the pool.
    Lap run(Mode mode, const WorkingSet& set);
    /// The same by bench::run_cold.
    Lap run_cold(Mode mode, const WorkingSet& set, const FrameMemory& memory, std::uint32_t& disturbed);

private:
    struct Stages;
    void run_stages(Mode mode, const WorkingSet& set, Lap& lap);
    void run_baseline(Mode mode, const WorkingSet& set, Lap& lap);
    void check_pool(Mode mode) const;

    const StreamKind& kind_;
    LapSetup setup_;
    rte_mempool* pool_;
    std::span<std::byte> outputs_;
    std::uint32_t laps_ = 0;
};

/// As the fastest plain loop does it: whole lines, past the caches. Both a multiple of 64 bytes; `out` aligned.
void copy_streaming(std::byte* out, const std::byte* from, std::size_t bytes) noexcept;

/// Memory that a lap gives back stays with the process from now on, so that the next lap does not pay for its pages
/// again.
void keep_memory() noexcept;

/// Keeps the thread on the CPU for the length of a measurement if the system allows it.
class Undisturbed {
public:
    Undisturbed() noexcept;
    ~Undisturbed();
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;
    [[nodiscard]] bool granted() const noexcept { return granted_; }

private:
    bool granted_ = false;
};

[[nodiscard]] std::uint64_t raw_ns() noexcept;
[[nodiscard]] std::uint64_t thread_ns() noexcept;

}  // namespace weir::bench
