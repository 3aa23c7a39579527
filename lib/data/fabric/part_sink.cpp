#include "fabric/part_sink.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "core/clock_ns.hpp"

namespace weir::fabric {

PartSink::PartSink(PartCutter::Config config, ClusterThread& cluster_thread)
    : cluster_thread_(cluster_thread), cutter_(std::move(config), cluster_thread.memory(), cluster_thread) {}

std::string PartSink::place() const {
    return "the builders of the cluster";
}

void PartSink::append(std::span<std::byte> blocks) {
    wait_for_room(blocks.size());
    cutter_.append(blocks, clock_.now());
    stats_.bytes += blocks.size();
    ++stats_.blocks;
    count();
}

/// For so many bytes more, as long as others can make it. Where nothing is held but open parts these are sent as they
/// are, if they could not even grow any more. Who was told to stop waits as long as others still take something.
void PartSink::wait_for_room(std::size_t bytes) {
    const core::TimeNs begin = core::monotonic_ns();
    PartMemory& memory = cluster_thread_.memory();
    bool waited = false;
    std::uint64_t least_used = memory.used();
    core::TimeNs moved = begin;
    // A part that grows takes twice its size for a moment, and up to twice what is in it.
    while (!memory.has_room(cutter_.open_bytes() + 2 * bytes) && !gives_up_.load(std::memory_order_relaxed)) {
        const bool nothing_held = memory.used() == cutter_.open_bytes();
        if (nothing_held && (memory.has_room(cutter_.open_bytes()) || !cutter_.send_oldest())) break;
        if (!std::exchange(waited, true)) cluster_thread_.waits();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        static_cast<void>(clock_.now());  // it is not to stand still meanwhile
        const core::TimeNs now = core::monotonic_ns();
        if (memory.used() < least_used || !stopping_.load(std::memory_order_relaxed)) moved = now;
        least_used = std::min(least_used, memory.used());
        if (now - moved >= cluster_thread_.config().leave_ns) gives_up_.store(true, std::memory_order_relaxed);
    }
    if (waited) cluster_thread_.waited(core::monotonic_ns() - begin);
}

void PartSink::sync_if_due() {
    cutter_.look(clock_.now(), true, cluster_thread_.wanted_before());
    count();
}

void PartSink::finish_data() {
    if (std::exchange(finished_, true)) return;
    cutter_.finish();
    cluster_thread_.close();
    while (!cluster_thread_.is_done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    cluster_thread_.join();
    count();
}

void PartSink::close(const nlohmann::json& /*manifest_extra*/) {
    finish_data();
}

void PartSink::stopping(bool at_once) noexcept {
    stopping_.store(true, std::memory_order_relaxed);
    if (at_once) gives_up_.store(true, std::memory_order_relaxed);
    cluster_thread_.stopping(at_once);
}

void PartSink::count() {
    const Account account = cluster_thread_.account();
    const PartCutter::Stats& cut = cutter_.stats();
    stats_.dropped = {cut.stragglers, cut.restarted, account.events_too_late, account.events_left};
    stats_.events = cut.events - account.events_too_late - account.events_left;
    stats_.synced_events = stats_.events;
    stats_.payload_bytes = cut.payload_bytes;
    stats_.synced_bytes = stats_.bytes;
}

}  // namespace weir::fabric
