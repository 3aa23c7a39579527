#include "bench/sender.hpp"

#include <time.h>

#include <algorithm>

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

/// Packets that have gone out, as far as somebody counts them.
std::optional<std::uint64_t> sent_by_device(Sender& sender, const std::string& interface) {
    if (const auto own = sender.on_wire()) return *own + sender.kept_back();
    if (sender.joins_packets()) return std::nullopt;
    const auto counters = interface_counters(interface);
    return counters ? std::optional(counters->sent + sender.kept_back()) : std::nullopt;
}

/// What began with the first packet that counts.
class Measured {
public:
    Measured(Sender& sender, const std::string& interface)
        : sent_(sent_by_device(sender, interface)), cpu_(core::clock_ns(CLOCK_THREAD_CPUTIME_ID)) {}
    void finish(Sender& sender, const std::string& interface, SenderCounts& counts) const {
        counts.cpu_s = static_cast<double>(core::clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_) * 1e-9;
        const auto now = sent_by_device(sender, interface);
        if (now && sent_) counts.on_wire = *now - *sent_;
    }

private:
    std::optional<std::uint64_t> sent_;
    core::TimeNs cpu_;
};

core::TimeNs seconds_ns(double seconds) noexcept {
    return static_cast<core::TimeNs>(seconds * 1e9);
}

/// What was sent was the load: nobody asked for another one.
SenderCounts send_unpaced(Sender& sender, const PacketPlan& plan, const Load& load, const std::string& interface,
                          const StopSigns& stop) {
    sender.prepare(plan);
    SenderCounts counts;
    const Measured measured(sender, interface);
    const std::uint64_t most = load.packets(plan);
    std::uint64_t next = 0;
    const core::TimeNs start = core::monotonic_ns();
    const core::TimeNs end = start + seconds_ns(load.seconds);
    core::TimeNs now = start;
    // The last event is sent to its end.
    while (next < most && (now < end || next % plan.event_packets() != 0) && !stop) {
        const std::uint64_t left = now < end ? most - next : plan.event_packets() - next % plan.event_packets();
        next += sender.send(next, static_cast<std::uint32_t>(std::min<std::uint64_t>(left, sender.burst())));
        now = core::monotonic_ns();
    }
    sender.finish();
    counts.intended = counts.offered = counts.handed_over = next;
    counts.planned_s = counts.took_s = static_cast<double>(core::monotonic_ns() - start) * 1e-9;
    measured.finish(sender, interface, counts);
    if (stop) counts.stopped = "the trial was stopped";
    return counts;
}

}  // namespace

SenderCounts send_load(Sender& sender, const PacketPlan& plan, const Load& load, const std::string& interface,
                       const StopSigns& stop) {
    if (load.unpaced) return send_unpaced(sender, plan, load, interface, stop);
    sender.prepare(plan);
    SenderCounts counts;
    counts.intended = load.packets(plan);
    counts.planned_s = static_cast<double>(counts.intended) / load.packets_per_s;
    const std::uint64_t ramp = load.ramp_packets(plan);
    Schedule schedule(load, ramp, core::monotonic_ns() + core::ns_per_ms);
    const core::TimeNs start = schedule.due(ramp);
    const core::TimeNs planned_end = start + seconds_ns(counts.planned_s);
    const core::TimeNs end = planned_end + seconds_ns(counts.planned_s * overtime + overtime_s);
    const std::uint64_t all = ramp + counts.intended;
    Measured measured(sender, interface);
    bool in_ramp = ramp > 0;
    std::uint64_t next = 0;
    core::TimeNs now = 0;
    while (next < all && now < end && !stop) {
        if (in_ramp && next >= ramp) {
            in_ramp = false;
            measured = Measured(sender, interface);
        }
        wait_until(schedule.due(next), stop);
        now = core::monotonic_ns();
        const std::uint64_t due = std::min(in_ramp ? ramp : all, schedule.due_by(now));
        const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(due - next, sender.burst()));
        const std::uint32_t taken = sender.send(next, count);
        if (taken > 0) schedule.sent(next, now);
        next += taken;
    }
    sender.finish();
    now = core::monotonic_ns();
    counts.ramp = std::min(next, ramp);
    counts.handed_over = next - counts.ramp;
    counts.offered =
        std::max(counts.handed_over,
                 std::min(counts.intended, schedule.due_by(std::max(start, std::min(now, planned_end))) - ramp));
    counts.took_s = std::max(0.0, static_cast<double>(now - start) * 1e-9);
    counts.lag_max_s = schedule.lag_max_s();
    counts.jitter_s = schedule.jitter_s();
    measured.finish(sender, interface, counts);
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
