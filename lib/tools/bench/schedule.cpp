#include "bench/schedule.hpp"

#include <algorithm>
#include <cmath>

namespace weir::bench {
namespace {

// Of an estimate that was too low, nobody may run out of packets.
constexpr double unpaced_margin = 2;

}  // namespace

std::uint64_t Load::packets(const PacketPlan& plan) const noexcept {
    const auto of_event = static_cast<double>(plan.event_packets());
    const double events = packets_per_s * seconds / of_event * (unpaced ? unpaced_margin : 1);
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(events))) * plan.event_packets();
}

std::uint64_t Load::ramp_packets(const PacketPlan& plan) const noexcept {
    if (unpaced) return 0;
    const auto of_event = static_cast<double>(plan.event_packets());
    return static_cast<std::uint64_t>(packets_per_s * ramp_s / 2 / of_event) * plan.event_packets();
}

Schedule::Schedule(const Load& load, std::uint64_t ramp, core::TimeNs start) noexcept
    : ns_per_packet_(1e9 / load.packets_per_s),
      burst_(load.burst),
      ramp_(ramp),
      ramp_ns_(2 * static_cast<double>(ramp) * ns_per_packet_),
      start_(start) {}

core::TimeNs Schedule::due(std::uint64_t packet) const noexcept {
    double after_ns = 0;
    if (packet < ramp_) {
        // A rate that rises evenly has sent the square of the part of the time.
        after_ns = ramp_ns_ * std::sqrt(static_cast<double>(packet) / static_cast<double>(ramp_));
    } else {
        const std::uint64_t counted = packet - ramp_;
        after_ns = ramp_ns_ + static_cast<double>(counted - counted % burst_) * ns_per_packet_;
    }
    return start_ + static_cast<core::TimeNs>(after_ns);
}

std::uint64_t Schedule::due_by(core::TimeNs now) const noexcept {
    const auto since = static_cast<double>(now - start_);
    if (since < ramp_ns_) {
        const double part = std::max(0.0, since) / ramp_ns_;
        return std::min(ramp_, static_cast<std::uint64_t>(part * part * static_cast<double>(ramp_)) + 1);
    }
    const auto turns = static_cast<std::uint64_t>((since - ramp_ns_) / ns_per_packet_);
    return ramp_ + (turns / burst_ + 1) * burst_;
}

void Schedule::sent(std::uint64_t packet, core::TimeNs now) noexcept {
    if (packet < ramp_) return;
    const core::TimeNs late = now - due(packet);
    lag_max_ = std::max(lag_max_, late);
    lateness_ += static_cast<double>(late);
    ++bursts_;
}

}  // namespace weir::bench
