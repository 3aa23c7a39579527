// The writer: an ordinary thread that appends what the workers formatted to the run's files. The only part of the
// pipeline that may block; while it does, buffers run out, workers stop, and rx lcores go on polling.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/counters.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/work_stage.hpp"
#include "port/ring.hpp"
#include "store/disk_watch.hpp"
#include "store/run_writer.hpp"

namespace weir::pipeline {

class WriterThread {
public:
    struct WorkerEdge {
        port::Ring<OutputBuffer*>* full = nullptr;
        port::Ring<OutputBuffer*>* free = nullptr;
        const WorkStage* worker = nullptr;
    };

    WriterThread(store::RunWriter& writer, std::vector<WorkerEdge> workers);
    ~WriterThread();
    void start();
    void join();

    [[nodiscard]] bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }
    [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
    /// The reason, once failed().
    [[nodiscard]] const std::string& error() const noexcept { return error_; }
    /// Events written, and those lost to an error. While it runs, written events are with the kernel; an error of
    /// syncing them takes them back. Once finished() they are on the device.
    [[nodiscard]] std::uint64_t written() const noexcept { return written_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
    /// Of the written events, those that are on the device already.
    [[nodiscard]] std::uint64_t synced() const noexcept { return synced_.load(std::memory_order_relaxed); }
    /// Free space and how long it lasts, as of the last second in which the disk answered. Any thread.
    [[nodiscard]] store::DiskOutlook disk() const noexcept;

private:
    void run() noexcept;
    [[nodiscard]] bool serve(WorkerEdge& edge) noexcept;
    void append(OutputBuffer& buffer) noexcept;
    template <class Action>
    void attempt(Action action) noexcept;
    void account() noexcept;
    void watch_disk() noexcept;

    store::RunWriter& writer_;
    std::vector<WorkerEdge> workers_;
    std::uint64_t handed_events_ = 0;
    std::string error_;
    std::atomic<bool> finished_{false};
    std::atomic<bool> failed_{false};
    std::atomic<std::uint64_t> written_{0};
    std::atomic<std::uint64_t> lost_{0};
    std::atomic<std::uint64_t> bytes_{0};
    std::atomic<std::uint64_t> synced_{0};
    store::DiskWatch disk_watch_;
    TimeNs disk_watched_ns_ = 0;
    static constexpr std::uint64_t unknown = ~std::uint64_t{0};
    std::atomic<std::uint64_t> disk_free_bytes_{unknown};
    std::atomic<std::uint64_t> disk_bytes_per_second_{unknown};
    std::atomic<std::uint64_t> disk_seconds_left_{unknown};
    std::thread thread_;
};

}  // namespace weir::pipeline
