// The thread of one event sink: an ordinary one, which gives the sink what the workers formatted and passes the buffers
// on, to the next sink's thread or back to their workers. The only part of the pipeline that may block; while it does,
// buffers run out, workers stop, and rx lcores go on polling.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "port/ring.hpp"
#include "stages/output_fence.hpp"
#include "stages/stage.hpp"
#include "store/disk_watch.hpp"
#include "store/event_sink.hpp"
#include "store/latest_event.hpp"

namespace weir::stages {

class SinkThread {
public:
    /// Where buffers come from: a worker, or the thread of the sink before.
    struct Edge {
        port::Ring<OutputBuffer*>* full = nullptr;
        std::function<bool()> finished;  ///< nothing more comes than what is in the ring
    };
    struct Config {
        store::EventSink* sink = nullptr;
        std::vector<Edge> in;
        port::Ring<OutputBuffer*>* next = nullptr;      ///< to the next sink; null: this is the last
        std::vector<port::Ring<OutputBuffer*>*> freed;  ///< of the last: back to each worker
        OutputFence* fence = nullptr;                   ///< of the last: somebody wants to know what is written
        store::LatestEvent* latest_event = nullptr;     ///< sees what passes; null: nobody wants pictures
    };

    explicit SinkThread(Config config);
    ~SinkThread();
    void start();
    void join();

    [[nodiscard]] const store::EventSink& sink() const noexcept { return sink_; }
    [[nodiscard]] bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }
    [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
    /// The reason, once failed().
    [[nodiscard]] const std::string& error() const noexcept { return error_; }
    /// Events written, and those lost to an error. While it runs, written events are with the kernel; an error of
    /// syncing them takes them back. Once finished() they are on the device.
    [[nodiscard]] std::uint64_t written() const noexcept { return written_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
    /// Events that the sink left out for its N-th cause (EventSink::causes_of_drops), and for all of them.
    [[nodiscard]] std::uint64_t dropped(std::size_t cause) const noexcept {
        return dropped_[cause].load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t dropped() const noexcept;
    /// Times that who takes the events went away in the middle.
    [[nodiscard]] std::uint64_t interrupted() const noexcept { return interrupted_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
    /// Of the written events, those that are on the device already.
    [[nodiscard]] std::uint64_t synced() const noexcept { return synced_.load(std::memory_order_relaxed); }
    /// Free space and how long it lasts, as of the last second in which the disk answered. Any thread.
    [[nodiscard]] store::DiskOutlook disk() const noexcept;

private:
    void run() noexcept;
    [[nodiscard]] bool serve(Edge& edge) noexcept;
    void append(OutputBuffer& buffer) noexcept;
    void take_finished() noexcept;
    void pass_on(std::size_t held) noexcept;
    template <class Action>
    void attempt(Action action) noexcept;
    void account() noexcept;
    void watch_disk() noexcept;

    Config config_;
    store::EventSink& sink_;
    std::deque<OutputBuffer*> given_;  ///< to the sink, which may still read them; oldest first
    std::uint64_t handed_events_ = 0;
    std::string error_;
    std::atomic<bool> finished_{false};
    std::atomic<bool> failed_{false};
    std::atomic<std::uint64_t> written_{0};
    std::atomic<std::uint64_t> lost_{0};
    std::atomic<std::uint64_t> bytes_{0};
    std::atomic<std::uint64_t> synced_{0};
    std::atomic<std::uint64_t> interrupted_{0};
    std::array<std::atomic<std::uint64_t>, store::EventSink::drop_causes_max> dropped_{};
    store::DiskWatch disk_watch_;
    TimeNs disk_watched_ns_ = 0;
    static constexpr std::uint64_t unknown = ~std::uint64_t{0};
    std::atomic<std::uint64_t> disk_free_bytes_{unknown};
    std::atomic<std::uint64_t> disk_bytes_per_second_{unknown};
    std::atomic<std::uint64_t> disk_seconds_left_{unknown};
    std::thread thread_;
};

}  // namespace weir::stages
