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
    /// Events written, and those lost to an error.
    [[nodiscard]] std::uint64_t written() const noexcept { return written_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

private:
    void run() noexcept;
    [[nodiscard]] bool serve(WorkerEdge& edge) noexcept;
    void append(OutputBuffer& buffer) noexcept;
    void fail(const char* what) noexcept;

    store::RunWriter& writer_;
    std::vector<WorkerEdge> workers_;
    std::uint64_t handed_events_ = 0;
    std::string error_;
    std::atomic<bool> finished_{false};
    std::atomic<bool> failed_{false};
    std::atomic<std::uint64_t> written_{0};
    std::atomic<std::uint64_t> lost_{0};
    std::atomic<std::uint64_t> bytes_{0};
    std::thread thread_;
};

}  // namespace weir::pipeline
