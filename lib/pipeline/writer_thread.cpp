#include "pipeline/writer_thread.hpp"

#include <time.h>

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

/// Does something with the run; the first error is kept, and nothing more is tried after it.
template <class Action>
void WriterThread::attempt(Action action) noexcept {
    try {
        action();
    } catch (const std::exception& error) {
        if (failed_.load(std::memory_order_relaxed)) return;
        error_ = error.what();
        failed_.store(true, std::memory_order_release);
    }
}

/// After an error the run writer says how many events stayed; the others are lost.
void WriterThread::account() noexcept {
    const store::RunWriter::Stats& stats = writer_.stats();
    written_.store(stats.events, std::memory_order_relaxed);
    synced_.store(stats.synced_events, std::memory_order_relaxed);
    lost_.store(failed_.load(std::memory_order_relaxed) ? handed_events_ - stats.events : 0, std::memory_order_relaxed);
    bytes_.store(stats.bytes, std::memory_order_relaxed);
}

void WriterThread::append(OutputBuffer& buffer) noexcept {
    handed_events_ += buffer.events_ended;
    if (!failed_.load(std::memory_order_relaxed))
        attempt([&] { writer_.append(buffer.memory.first(buffer.used_bytes)); });
    account();
    watch_disk();
}

store::DiskOutlook WriterThread::disk() const noexcept {
    const auto value = [](const std::atomic<std::uint64_t>& from) -> std::optional<std::uint64_t> {
        const std::uint64_t number = from.load(std::memory_order_relaxed);
        if (number == unknown) return {};
        return number;
    };
    return {value(disk_free_bytes_), value(disk_bytes_per_second_), value(disk_seconds_left_)};
}

/// Once a second. Asking the file system may block like any other call to it, so this is the thread for it.
void WriterThread::watch_disk() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    const TimeNs now = time.tv_sec * core::ns_per_s + time.tv_nsec;
    if (disk_watched_ns_ != 0 && now - disk_watched_ns_ < core::ns_per_s) return;
    disk_watched_ns_ = now;
    disk_watch_.update(now, writer_.stats().bytes, writer_.free_bytes());
    const store::DiskOutlook& outlook = disk_watch_.outlook();
    disk_free_bytes_.store(outlook.free_bytes.value_or(unknown), std::memory_order_relaxed);
    disk_bytes_per_second_.store(outlook.bytes_per_second.value_or(unknown), std::memory_order_relaxed);
    disk_seconds_left_.store(outlook.seconds_left.value_or(unknown), std::memory_order_relaxed);
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
        if (!failed_.load(std::memory_order_relaxed)) attempt([&] { writer_.sync_if_due(); });
        account();
        watch_disk();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    // The account is drawn up next: what it calls written has to be on the device by then.
    attempt([&] { writer_.settle(); });
    account();
    finished_.store(true, std::memory_order_release);
}

}  // namespace weir::pipeline
