// The thread behind live pedestals: takes dark frames from all workers, makes a generation of pedestals of each
// interval that has ended, and saves snapshots. An ordinary thread: it may block, and does so when it writes. Pixels
// are added up by several threads, if so configured, each for rows of its own; sums are whole numbers, so what comes
// out does not depend on how many there are.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/slice_threads.hpp"
#include "reduce/pedestal/tracker.hpp"
#include "stages/pedestal_setup.hpp"
#include "stages/pedestal_worker.hpp"
#include "store/pedestal_snapshot.hpp"

namespace weir::stages {

class PedestalKeeper {
public:
    struct Config {
        std::shared_ptr<PedestalSetup> setup;
        std::uint32_t workers = 1;
        std::uint32_t refs_max = 4096;
        bool wait = false;
        const RunSignals* signals = nullptr;
    };

    /// The interval that ends, and the one that has begun.
    static constexpr std::size_t intervals = 2;
    /// What is held of every pixel of every storage cell.
    static constexpr std::size_t pixel_bytes = reduce::PedestalState::pixel_bytes +
                                               intervals * reduce::SumArrays::pixel_bytes +
                                               reduce::Generations::pixel_bytes;

    explicit PedestalKeeper(const Config& config);
    ~PedestalKeeper();
    PedestalKeeper(const PedestalKeeper&) = delete;
    PedestalKeeper& operator=(const PedestalKeeper&) = delete;

    [[nodiscard]] PedestalWorker& worker(std::uint32_t index) noexcept { return *workers_[index]; }
    /// Where snapshots go; empty: nowhere. `worker_finished` says whether a worker has had its last event.
    void start(std::filesystem::path snapshots, std::function<bool(std::uint32_t)> worker_finished);
    /// Everything that workers have handed over is in, and the last snapshot is written.
    [[nodiscard]] bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }
    void join();

    /// Counters of this thread; each worker has its own.
    [[nodiscard]] const core::Tally<reduce::PedestalCounter>& tally() const noexcept { return tally_; }
    /// The report's `pedestal`: generations with the first event they are for, and snapshots. For any thread.
    [[nodiscard]] nlohmann::json json() const;
    /// The first snapshot that could not be written, once finished(); empty if all could.
    [[nodiscard]] std::string error() const;

private:
    /// The dark frames of one interval.
    struct Interval {
        explicit Interval(std::size_t pixels) : sums(pixels) {}
        reduce::IntervalPlace place = reduce::interval_none;
        std::uint32_t frames = 0;
        reduce::PedestalCounts counts;
        std::array<std::uint64_t, builders_max> last_sequence{};  ///< by shard
        reduce::SumArrays sums;
    };
    /// Intervals up to `place` end once all workers are past the event that said so.
    struct Closing {
        reduce::IntervalPlace place = 0;
        std::uint32_t shard = 0;
        std::uint64_t sequence = 0;
    };
    struct Generation {
        std::uint32_t number = 0;
        std::uint32_t epoch = 0;
        std::uint64_t first_event = 0;
        std::uint32_t frames = 0;
        reduce::PedestalCounts counts;
        std::uint64_t masked = 0;
    };

    void run() noexcept;
    [[nodiscard]] bool drain() noexcept;
    void handle(std::uint32_t worker, const PedestalNote& note) noexcept;
    /// A frame that a worker has handed over, and wants back.
    struct Waiting {
        DarkFrame* frame = nullptr;
        std::uint32_t worker = 0;
    };

    [[nodiscard]] bool admit(const DarkFrame& frame) noexcept;
    void take(std::uint32_t worker, DarkFrame& frame) noexcept;
    void add_waiting() noexcept;
    [[nodiscard]] reduce::PedestalCounts add_slice(std::uint32_t slice, Interval& interval,
                                                   const reduce::Generations::View& judge) const noexcept;
    void fall_back() noexcept;
    [[nodiscard]] bool all_past(const Closing& closing) const noexcept;
    [[nodiscard]] bool close_ready() noexcept;
    void close(reduce::IntervalPlace place) noexcept;
    void publish(Interval& interval) noexcept;
    void save() noexcept;

    std::shared_ptr<const PedestalSetup> setup_;
    bool wait_;
    const RunSignals* signals_;
    std::size_t pixels_;
    PedestalShared shared_;
    float outlier_;  ///< RMS; infinite where nothing is one
    reduce::PedestalTracker tracker_;
    std::vector<std::unique_ptr<Interval>> intervals_;
    std::vector<std::unique_ptr<DarkFrame>> frames_;
    std::vector<std::unique_ptr<port::Ring<PedestalNote>>> note_rings_;
    std::vector<std::unique_ptr<port::Ring<DarkFrame*>>> frame_rings_;
    std::vector<std::unique_ptr<PedestalWorker>> workers_;
    std::vector<Closing> closing_;                   ///< by place
    std::vector<reduce::IntervalPlace> last_place_;  ///< that a worker said is closed
    std::vector<Waiting> waiting_;                   ///< to be added up together: of one interval
    std::vector<reduce::PedestalCounts> counts_;     ///< by slice
    std::unique_ptr<core::SliceThreads> threads_;
    core::Tally<reduce::PedestalCounter> tally_;
    std::function<bool(std::uint32_t)> worker_finished_;
    std::filesystem::path snapshots_;
    store::PedestalSnapshot about_;
    std::uint32_t generation_ = 0;
    core::TimeNs saved_ns_ = 0;
    std::thread thread_;
    std::atomic<bool> finished_{false};

    mutable std::mutex report_;  ///< the three below
    std::deque<Generation> generations_;
    std::vector<std::string> saved_;
    std::string error_;
};

}  // namespace weir::stages
