// Says when a frame may go, and how well the sender kept to that. Knows no clock: the time is handed in.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/units.hpp"

namespace weir::simulate {

/// A schedule from a rate of events or of bits. After a pause of the machine a sender catches up for at most 10 ms;
/// beyond that the schedule itself moves, because a burst at full speed would be another test than the one asked for.
class Pacer {
public:
    struct Config {
        double events_per_s = 0;  ///< 0: not by events
        double gbps = 0;          ///< 0: not by bits; of the wire, with FCS, preamble and gap
    };
    static constexpr core::TimeNs lag_allowed_ns = 10 * core::ns_per_ms;
    /// What Ethernet adds to a frame: FCS 4, preamble 8, gap 12; and the least that a frame occupies without them.
    static constexpr std::uint32_t wire_extra_bytes = 24;
    static constexpr std::uint32_t wire_frame_bytes_min = 60;

    explicit Pacer(const Config& config) : config_(config) {}

    [[nodiscard]] bool paced() const noexcept { return config_.events_per_s > 0 || config_.gbps > 0; }

    /// When a frame is due, ns after the start; 0 without a rate. To be asked once for every frame, in order.
    core::TimeNs due_ns(double due_events, std::uint32_t frame_bytes) noexcept {
        if (config_.events_per_s > 0) {
            return static_cast<core::TimeNs>(due_events / config_.events_per_s * 1e9);
        }
        const double due = config_.gbps > 0 ? wire_bits_ / config_.gbps : 0;
        wire_bits_ += 8.0 * (std::max(frame_bytes, wire_frame_bytes_min) + wire_extra_bytes);
        return static_cast<core::TimeNs>(due);
    }

    /// How long to wait until a frame that is due at `due` may go; 0 or less: now. `now` is ns after the start.
    core::TimeNs wait_ns(core::TimeNs due, core::TimeNs now) noexcept {
        const core::TimeNs wait = due + slipped_ns_ - now;
        if (paced() && -wait > lag_ns_max_) {
            lag_ns_max_ = -wait;
        }
        if (paced() && -wait > lag_allowed_ns) {
            slipped_ns_ += -wait - lag_allowed_ns;
        }
        return wait;
    }

    /// The longest that a frame went out after its time.
    [[nodiscard]] core::TimeNs lag_ns_max() const noexcept { return lag_ns_max_; }
    /// By how much the schedule has moved in all: time that was not caught up.
    [[nodiscard]] core::TimeNs slipped_ns() const noexcept { return slipped_ns_; }

private:
    Config config_;
    double wire_bits_ = 0;
    core::TimeNs lag_ns_max_ = 0;
    core::TimeNs slipped_ns_ = 0;
};

}  // namespace weir::simulate
