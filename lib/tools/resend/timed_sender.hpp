// Sends frames when their time has come: never before, and none is left out because it is late. How late each was is
// what a receiver's measurements have to be held against.
#pragma once

#include <array>
#include <atomic>
#include <limits>
#include <optional>
#include <string>

#include "core/latency_histogram.hpp"
#include "resend/frame_ring.hpp"
#include "resend/packets_not_sent.hpp"
#include "resend/wire_target.hpp"

namespace weir::resend {

class TimedSender {
public:
    /// Time in which nothing went because of something else than the schedule.
    struct Wait {
        std::uint64_t times = 0;
        core::TimeNs ns = 0;
    };
    struct Result {
        core::LatencyHistogram late_ns;  ///< of each packet, if there is a pace; up to when it was taken
        std::uint64_t late_ns_min = 0;
        std::uint64_t late_over_1ms = 0;  ///< packets
        core::TimeNs last_late_ns = 0;    ///< of the last packet: what was never caught up
        core::TimeNs intended_ns = 0;     ///< from the first packet sent to the last one, by the capture and the pace
        core::TimeNs actual_ns = 0;       ///< likewise, by the clock
        Wait for_file;                    ///< nothing had been read that could be sent
        Wait for_target;                  ///< the target took nothing
        core::TimeNs settled_ns = 0;      ///< until the way was open: not counted as late
        bool interrupted = false;         ///< by `stop`
        std::string error;                ///< why the target ended it; empty: it did not
    };

    /// `speed`: 1 as captured, x times that, 0 as fast as the target takes packets. All must outlive this.
    TimedSender(FrameRing& ring, WireTarget& target, double speed, const std::atomic<bool>& stop)
        : ring_(ring), target_(target), speed_(speed), stop_(stop) {}

    /// Until the ring has ended, `stop` is set, or the target fails.
    void send();
    [[nodiscard]] const Result& result() const noexcept { return result_; }
    [[nodiscard]] const NotSentTally& not_sent() const noexcept { return not_sent_; }
    /// So far; for any thread.
    [[nodiscard]] std::uint64_t packets() const noexcept { return packets_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return packet_bytes_.load(std::memory_order_relaxed); }

private:
    struct Loaded {
        core::TimeNs due_ns = 0;  ///< by CLOCK_MONOTONIC
        std::uint32_t bytes = 0;
    };
    void loop();
    [[nodiscard]] bool load_next(core::TimeNs due_until);
    [[nodiscard]] core::TimeNs due_of(const FrameRing::Frame& frame) const noexcept;
    [[nodiscard]] core::TimeNs send_due(core::TimeNs now_ns);
    void count(std::uint32_t packets, core::TimeNs now_ns) noexcept;
    void wait_for_file(core::TimeNs now_ns) noexcept;
    void wait_until(core::TimeNs due_ns) noexcept;
    void wait_after_first();
    [[nodiscard]] bool is_over() const noexcept;

    FrameRing& ring_;
    WireTarget& target_;
    double speed_;
    const std::atomic<bool>& stop_;
    std::array<Loaded, WireTarget::slots> loaded_{};
    std::uint32_t sent_ = 0;                     ///< slots before this have been sent
    std::uint32_t filled_ = 0;                   ///< and those before this are loaded
    std::optional<core::TimeNs> first_time_ns_;  ///< of the capture
    core::TimeNs start_ns_ = 0;                  ///< when that is due
    std::optional<core::TimeNs> first_sent_ns_;
    core::TimeNs first_due_ns_ = 0;
    core::TimeNs stalled_since_ns_ = 0;  ///< the target has taken nothing since; 0: it does
    bool settled_ = false;
    bool failed_ = false;
    Result result_;
    NotSentTally not_sent_;
    std::atomic<std::uint64_t> packets_{0};
    std::atomic<std::uint64_t> packet_bytes_{0};
};

}  // namespace weir::resend
