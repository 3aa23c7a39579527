#include "stages/sink_thread.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <utility>

#include "core/clock_ns.hpp"

namespace weir::stages {

SinkThread::SinkThread(Config config) : config_(std::move(config)), sink_(*config_.sink) {}

SinkThread::~SinkThread() {
    join();
}

void SinkThread::start() {
    thread_ = std::thread([this] { run(); });
}

void SinkThread::join() {
    if (thread_.joinable()) thread_.join();
}

/// Does something with the sink; the first error is kept, and nothing more is tried after it.
template <class Action>
void SinkThread::attempt(Action action) noexcept {
    try {
        action();
    } catch (const std::exception& error) {
        if (failed_.load(std::memory_order_relaxed)) return;
        error_ = error.what();
        failed_.store(true, std::memory_order_release);
    }
}

/// After an error the sink says how many events stayed; the others are lost.
void SinkThread::account() noexcept {
    const store::EventSink::Stats& stats = sink_.stats();
    written_.store(stats.events, std::memory_order_relaxed);
    synced_.store(stats.synced_events, std::memory_order_relaxed);
    std::uint64_t settled = stats.events;
    for (std::size_t cause = 0; cause < dropped_.size(); ++cause) {
        dropped_[cause].store(stats.dropped[cause], std::memory_order_relaxed);
        settled += stats.dropped[cause];
    }
    interrupted_.store(stats.interrupted, std::memory_order_relaxed);
    lost_.store(failed_.load(std::memory_order_relaxed) ? handed_events_ - settled : 0, std::memory_order_relaxed);
    bytes_.store(stats.bytes, std::memory_order_relaxed);
}

std::uint64_t SinkThread::dropped() const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t cause = 0; cause < dropped_.size(); ++cause) sum += dropped(cause);
    return sum;
}

/// As many places in the rings as there are buffers: no push can fail.
void SinkThread::pass_on(std::size_t held) noexcept {
    while (given_.size() > held) {
        OutputBuffer* const buffer = given_.front();
        given_.pop_front();
        if (config_.next != nullptr) {
            config_.next->push(buffer);
            continue;
        }
        const std::uint32_t worker = buffer->worker;
        config_.freed[worker]->push(buffer);
        if (config_.fence != nullptr) config_.fence->end_buffer(worker);
    }
}

void SinkThread::append(OutputBuffer& buffer) noexcept {
    handed_events_ += buffer.events_ended;
    given_.push_back(&buffer);
    if (config_.latest_event != nullptr) config_.latest_event->pass(buffer.memory.first(buffer.used_bytes));
    if (!failed_.load(std::memory_order_relaxed))
        attempt([&] { sink_.append(buffer.memory.first(buffer.used_bytes)); });
    take_finished();
}

/// What the sink has finished meanwhile.
void SinkThread::take_finished() noexcept {
    if (!failed_.load(std::memory_order_relaxed)) attempt([&] { sink_.collect(); });
    pass_on(sink_.held());
    account();
    watch_disk();
}

store::DiskOutlook SinkThread::disk() const noexcept {
    const auto value = [](const std::atomic<std::uint64_t>& from) -> std::optional<std::uint64_t> {
        const std::uint64_t number = from.load(std::memory_order_relaxed);
        if (number == unknown) return {};
        return number;
    };
    return {value(disk_free_bytes_), value(disk_bytes_per_second_), value(disk_seconds_left_)};
}

/// Once a second. Asking the file system may block like any other call to it, so this is the thread for it.
void SinkThread::watch_disk() noexcept {
    const TimeNs now = core::clock_ns(CLOCK_MONOTONIC);
    if (disk_watched_ns_ != 0 && now - disk_watched_ns_ < core::ns_per_s) return;
    disk_watched_ns_ = now;
    disk_watch_.update(now, sink_.stats().bytes, sink_.free_bytes());
    const store::DiskOutlook& outlook = disk_watch_.outlook();
    disk_free_bytes_.store(outlook.free_bytes.value_or(unknown), std::memory_order_relaxed);
    disk_bytes_per_second_.store(outlook.bytes_per_second.value_or(unknown), std::memory_order_relaxed);
    disk_seconds_left_.store(outlook.seconds_left.value_or(unknown), std::memory_order_relaxed);
}

bool SinkThread::serve(Edge& edge) noexcept {
    bool worked = false;
    std::array<OutputBuffer*, 1> taken;
    bool inside_event = false;
    for (;;) {
        if (edge.full->pop(taken) == 0) {
            if (!inside_event) return worked;
            // The rest of the event must follow directly; the worker is filling it, perhaps in a buffer that is here.
            take_finished();
            std::this_thread::sleep_for(std::chrono::microseconds(20));
            continue;
        }
        worked = true;
        inside_event = taken[0]->event_open;
        append(*taken[0]);
        if (!inside_event && config_.in.size() > 1) return true;
    }
}

void SinkThread::run() noexcept {
    for (;;) {
        const bool all_finished = std::ranges::all_of(config_.in, [](const Edge& edge) { return edge.finished(); });
        bool worked = false;
        for (Edge& edge : config_.in) worked |= serve(edge);
        if (worked) continue;
        if (all_finished) break;
        if (!failed_.load(std::memory_order_relaxed)) attempt([&] { sink_.sync_if_due(); });
        take_finished();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    // The account is drawn up next: what it calls written has to be on the device by then.
    attempt([&] { sink_.finish_data(); });
    pass_on(0);
    account();
    finished_.store(true, std::memory_order_release);
}

}  // namespace weir::stages
