#include "bench/sender.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>

#include "bench/interface_counters.hpp"
#include "core/clock_ns.hpp"

namespace weir::bench {
namespace {

// The scheduler wakes a sleeper late by less than this, most of the time. A shorter wait is spun.
constexpr core::TimeNs spin_ns = 100'000;
constexpr double overtime = 0.1;
constexpr double overtime_s = 0.02;

void wait_until(core::TimeNs due, const StopSigns& stop) noexcept {
    while (!stop) {
        const core::TimeNs left = due - core::monotonic_ns();
        if (left <= 0) return;
        if (left <= spin_ns) continue;
        const core::TimeNs nap = std::min<core::TimeNs>(left - spin_ns, 100 * core::ns_per_ms);
        const timespec time{nap / core::ns_per_s, nap % core::ns_per_s};
        ::nanosleep(&time, nullptr);
    }
}

/// When which packet is due, and what has been learnt of how well that was kept.
class Schedule {
public:
    Schedule(const Load& load, core::TimeNs start) noexcept
        : load_(load), ns_per_packet_(1e9 / load.packets_per_s), start_(start) {}

    /// Bursts are due as a whole.
    [[nodiscard]] core::TimeNs due(std::uint64_t packet) const noexcept {
        return start_ + static_cast<core::TimeNs>(static_cast<double>(packet - packet % load_.burst) * ns_per_packet_);
    }
    /// Packets whose turn has come.
    [[nodiscard]] std::uint64_t due_by(core::TimeNs now) const noexcept {
        const auto turns = static_cast<std::uint64_t>(static_cast<double>(now - start_) / ns_per_packet_);
        return (turns / load_.burst + 1) * load_.burst;
    }
    void sent(std::uint64_t packet, core::TimeNs now) noexcept {
        const core::TimeNs late = now - due(packet);
        lag_max_ = std::max(lag_max_, late);
        lateness_ += static_cast<double>(late);
        ++bursts_;
    }
    [[nodiscard]] double lag_max_s() const noexcept { return static_cast<double>(lag_max_) * 1e-9; }
    [[nodiscard]] double jitter_s() const noexcept {
        return bursts_ == 0 ? 0 : lateness_ * 1e-9 / static_cast<double>(bursts_);
    }

private:
    Load load_;
    double ns_per_packet_;
    core::TimeNs start_;
    core::TimeNs lag_max_ = 0;
    double lateness_ = 0;
    std::uint64_t bursts_ = 0;
};

struct Wire {
    std::optional<std::uint64_t> device;
    std::optional<std::uint64_t> interface;
    Wire(Sender& sender, const std::string& name) : device(sender.on_wire()) {
        if (sender.joins_packets()) return;
        if (const auto counters = interface_counters(name)) interface = counters->sent;
    }
    [[nodiscard]] std::optional<std::uint64_t> since(const Wire& before) const {
        if (device && before.device) return *device - *before.device;
        if (interface && before.interface) return *interface - *before.interface;
        return std::nullopt;
    }
};

}  // namespace

std::uint64_t Load::packets(const PacketPlan& plan) const noexcept {
    const double messages = packets_per_s * seconds / plan.packets;
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(messages))) * plan.packets;
}

SenderCounts send_load(Sender& sender, const PacketPlan& plan, const Load& load, const std::string& interface,
                       const StopSigns& stop) {
    sender.prepare(plan);
    SenderCounts counts;
    counts.intended = load.packets(plan);
    counts.planned_s = static_cast<double>(counts.intended) / load.packets_per_s;
    const Wire before(sender, interface);
    const core::TimeNs cpu_before = core::clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const core::TimeNs start = core::monotonic_ns() + core::ns_per_ms;
    const auto end = start + static_cast<core::TimeNs>((counts.planned_s * (1 + overtime) + overtime_s) * 1e9);
    Schedule schedule(load, start);
    std::uint64_t next = 0;
    core::TimeNs now = start;
    while (next < counts.intended && now < end && !stop) {
        wait_until(schedule.due(next), stop);
        now = core::monotonic_ns();
        const std::uint64_t due = std::min(counts.intended, schedule.due_by(now));
        const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(due - next, sender.burst()));
        const std::uint32_t taken = sender.send(next, count);
        if (taken > 0) schedule.sent(next, now);
        next += taken;
    }
    now = core::monotonic_ns();
    counts.handed_over = next;
    counts.offered = std::max(
        next, std::min(counts.intended,
                       schedule.due_by(std::min(now, start + static_cast<core::TimeNs>(counts.planned_s * 1e9)))));
    counts.took_s = static_cast<double>(now - start) * 1e-9;
    counts.lag_max_s = schedule.lag_max_s();
    counts.jitter_s = schedule.jitter_s();
    counts.cpu_s = static_cast<double>(core::clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_before) * 1e-9;
    counts.on_wire = Wire(sender, interface).since(before);
    if (stop) counts.stopped = "the trial was stopped";
    return counts;
}

double sender_ceiling(Sender& sender, const PacketPlan& plan, double seconds, const StopSigns& stop) {
    sender.prepare(plan);
    std::uint64_t next = 0;
    const core::TimeNs start = core::monotonic_ns();
    const auto end = start + static_cast<core::TimeNs>(seconds * 1e9);
    core::TimeNs now = start;
    while (now < end && !stop) {
        next += sender.send(next, sender.burst());
        now = core::monotonic_ns();
    }
    return static_cast<double>(next) / (static_cast<double>(now - start) * 1e-9);
}

}  // namespace weir::bench
