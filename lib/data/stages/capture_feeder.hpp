// The capture reader of `weir replay`: an ordinary thread that brings the records of captures into the pipeline. It may
// block, and it counts what it hands over: the left side of the ledger.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "port/buffers.hpp"
#include "port/capture_blocks.hpp"
#include "port/packet_batch.hpp"
#include "port/ring.hpp"
#include "stages/capture_source.hpp"
#include "stages/pass_signals.hpp"
#include "stages/stage.hpp"
#include "stages/time_bound.hpp"
#include "store/capture/reader.hpp"
#include "wire/packet_counter.hpp"

namespace weir::stages {

/// How fast a capture is replayed.
struct Pace {
    double speed = 0;  ///< 0: as fast as it goes; 1: as recorded; x: x times that
};

/// Reads captures (several are merged by time) and feeds their records to an rx lcore.
class CaptureFeeder {
public:
    struct Config {
        std::vector<std::string> files;
        Pace pace;
        std::vector<std::uint16_t> ports;  ///< per file: whose streams it is for
        std::uint32_t blocks = 0;          ///< that the files are read into, for packets by reference
        bool wait = true;                  ///< false: behave like a NIC and lose what finds no room
        std::uint32_t loop = 1;         ///< how often the files are read, each time after the last in time and numbers
        std::optional<TimeBound> from;  ///< records with earlier stamps are skipped
        std::optional<TimeBound> to;    ///< records from this stamp on are skipped
    };

    /// Opens the files: throws core::RunError. The ring and pool must outlive the feeder. `passes` is for Config::loop
    /// above 1.
    CaptureFeeder(const Config& config, port::Ring<port::Packet>& ring, port::BufferPool& pool, PassSignals* passes);
    ~CaptureFeeder();
    void start(const RunSignals& signals);
    void join();
    /// Of a feeder that was never started: nothing comes.
    void end_unstarted() noexcept {
        if (!thread_.joinable()) ended_.store(true, std::memory_order_release);
    }

    [[nodiscard]] const std::atomic<bool>& ended() const noexcept { return ended_; }
    /// Records outside the range of time that was asked for.
    [[nodiscard]] std::uint64_t skipped() const noexcept { return source_.skipped(); }
    /// Packets of interfaces that are not read.
    [[nodiscard]] std::uint64_t other_link() const noexcept { return source_.other_link(); }
    [[nodiscard]] const std::atomic<TimeNs>& cut_ns() const noexcept { return source_.cut_ns(); }
    /// Sentences about what could not be read of the files; none before it has ended.
    [[nodiscard]] std::vector<std::string> unread() const {
        return ended_.load(std::memory_order_acquire) ? source_.unread() : std::vector<std::string>();
    }
    /// It was told to stop before it had read everything.
    [[nodiscard]] bool was_stopped() const noexcept { return was_stopped_.load(std::memory_order_relaxed); }
    /// How often the files have been read, the one under way included; for after join().
    [[nodiscard]] std::uint32_t passes() const noexcept { return source_.passes(); }
    /// Records taken from the files so far, without those skipped.
    [[nodiscard]] std::uint64_t records() const noexcept { return records_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t record_bytes() const noexcept { return record_bytes_.load(std::memory_order_relaxed); }
    /// Time spent waiting for room in the pipeline, and for the moment that a record is due.
    [[nodiscard]] std::uint64_t waiting_ns() const noexcept { return waiting_ns_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t pacing_ns() const noexcept { return pacing_ns_.load(std::memory_order_relaxed); }
    /// Packets that ended here: oversized, or without room.
    [[nodiscard]] const wire::PacketTally& packets() const noexcept { return packets_; }
    /// Sentences about the files; for after join().
    [[nodiscard]] std::vector<std::string> warnings() const { return source_.warnings(); }
    [[nodiscard]] core::TimeNs ran_back_ns() const noexcept { return source_.ran_back_ns(); }

private:
    void run(const RunSignals& signals);
    void run_once(const RunSignals& signals);
    [[nodiscard]] bool rewind(const RunSignals& signals);
    [[nodiscard]] bool close_first_pass(const RunSignals& signals);
    void hand_over(const store::CaptureReader::Record& record, std::uint16_t port, TimeNs time_ns,
                   const RunSignals& signals);
    [[nodiscard]] rte_mbuf* buffer_for(const store::CaptureReader::Record& record, const RunSignals& signals);
    void wait_for_room() noexcept;
    void flush(const RunSignals& signals) noexcept;
    void keep_pace(TimeNs time_ns, const RunSignals& signals);

    Config config_;
    port::Ring<port::Packet>& ring_;
    port::BufferPool& pool_;
    PassSignals* passes_;
    port::CaptureBlocks blocks_;  ///< before the source, which gives its back
    CaptureSource source_;
    port::PacketBatch batch_;  ///< on its way into the ring; its buffers come from the pool and the blocks
    TimeNs wall_start_ns_ = 0;
    std::uint64_t pushed_ = 0;  ///< packets that are in the ring, or were
    wire::PacketTally packets_;
    std::atomic<bool> was_stopped_{false};
    std::atomic<std::uint64_t> records_{0};
    std::atomic<std::uint64_t> record_bytes_{0};
    std::atomic<std::uint64_t> waiting_ns_{0};
    std::atomic<std::uint64_t> pacing_ns_{0};
    std::atomic<bool> ended_{false};
    std::thread thread_;
};

}  // namespace weir::stages
