#include "pipeline/writer_thread.hpp"

#include <array>
#include <chrono>
#include <exception>

namespace weir::pipeline {

WriterThread::WriterThread(store::RunWriter& writer, std::vector<WorkerEdge> workers)
    : writer_(writer), workers_(std::move(workers)) {}

WriterThread::~WriterThread() {
    join();
}

void WriterThread::start() {
    thread_ = std::thread([this] { run(); });
}

void WriterThread::join() {
    if (thread_.joinable()) thread_.join();
}

void WriterThread::fail(const char* what) noexcept {
    if (failed_.load(std::memory_order_relaxed)) return;
    error_ = what;
    failed_.store(true, std::memory_order_release);
}

void WriterThread::append(OutputBuffer& buffer) noexcept {
    handed_events_ += buffer.events_ended;
    if (!failed_.load(std::memory_order_relaxed)) {
        try {
            writer_.append(buffer.memory.first(buffer.used_bytes));
        } catch (const std::exception& error) {
            fail(error.what());
        }
    }
    // After an error the run writer says how many events stayed; the others are lost.
    const std::uint64_t stayed = writer_.stats().events;
    written_.store(stayed, std::memory_order_relaxed);
    lost_.store(failed_.load(std::memory_order_relaxed) ? handed_events_ - stayed : 0, std::memory_order_relaxed);
    bytes_.store(writer_.stats().bytes, std::memory_order_relaxed);
}

bool WriterThread::serve(WorkerEdge& edge) noexcept {
    bool worked = false;
    std::array<OutputBuffer*, 1> taken;
    bool inside_event = false;
    for (;;) {
        if (edge.full->pop(taken) == 0) {
            if (!inside_event) return worked;
            // The rest of the event must follow directly; the worker is filling it.
            std::this_thread::sleep_for(std::chrono::microseconds(20));
            continue;
        }
        worked = true;
        inside_event = taken[0]->event_open;
        append(*taken[0]);
        edge.free->push(taken[0]);
        if (!inside_event && workers_.size() > 1) return true;
    }
}

void WriterThread::run() noexcept {
    for (;;) {
        bool all_finished = true;
        for (const WorkerEdge& edge : workers_) all_finished &= edge.worker->finished();
        bool worked = false;
        for (WorkerEdge& edge : workers_) worked |= serve(edge);
        if (worked) continue;
        if (all_finished) break;
        try {
            if (!failed_.load(std::memory_order_relaxed)) writer_.sync_if_due();
        } catch (const std::exception& error) {
            fail(error.what());
            const std::uint64_t stayed = writer_.stats().events;
            written_.store(stayed, std::memory_order_relaxed);
            lost_.store(handed_events_ - stayed, std::memory_order_relaxed);
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    finished_.store(true, std::memory_order_release);
}

}  // namespace weir::pipeline
