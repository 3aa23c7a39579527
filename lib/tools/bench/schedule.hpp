// When which packet of a load is to go out: open-loop, so that a sender that was held up catches up.
#pragma once

#include <cstdint>

#include "bench/packet_plan.hpp"
#include "core/units.hpp"

namespace weir::bench {

struct Load {
    double packets_per_s = 0;
    double seconds = 0;
    std::uint32_t burst = 1;  ///< so many packets at once, at full speed, then none until their time is over
    double ramp_s = 0;        ///< before: packets that are not counted, at a rate that rises evenly to the load's
    bool unpaced = false;     ///< as fast as the sender can, whatever packets_per_s says, which is an estimate then

    /// Packets of the load, in whole events; unpaced: more than the sender can send.
    [[nodiscard]] std::uint64_t packets(const PacketPlan& plan) const noexcept;
    /// Packets before them, in whole events.
    [[nodiscard]] std::uint64_t ramp_packets(const PacketPlan& plan) const noexcept;
};

/// The schedule of a load that is not unpaced, and what has been learnt of how well it was kept. Packets are numbered
/// from the first of the ramp on.
class Schedule {
public:
    /// `ramp`: Load::ramp_packets().
    Schedule(const Load& load, std::uint64_t ramp, core::TimeNs start) noexcept;

    /// Bursts are due as a whole.
    [[nodiscard]] core::TimeNs due(std::uint64_t packet) const noexcept;
    /// Packets whose turn has come.
    [[nodiscard]] std::uint64_t due_by(core::TimeNs now) const noexcept;

    /// A burst that begins with `packet` went out.
    void sent(std::uint64_t packet, core::TimeNs now) noexcept;
    [[nodiscard]] double lag_max_s() const noexcept { return static_cast<double>(lag_max_) * 1e-9; }
    [[nodiscard]] double jitter_s() const noexcept {
        return bursts_ == 0 ? 0 : lateness_ * 1e-9 / static_cast<double>(bursts_);
    }

private:
    double ns_per_packet_;
    std::uint32_t burst_;
    std::uint64_t ramp_;
    double ramp_ns_;
    core::TimeNs start_;
    core::TimeNs lag_max_ = 0;
    double lateness_ = 0;
    std::uint64_t bursts_ = 0;
};

}  // namespace weir::bench
