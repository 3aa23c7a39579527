// A counter (the TSC, a network card's clock) read as UNIX time: a line through readings of both clocks, corrected a
// little at every reading so that it follows CLOCK_REALTIME and never jumps. One thread reads the clocks and corrects,
// any thread converts. Says how far off it has been.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/units.hpp"

namespace weir::core {

/// Counter and clocks at one moment, as far as they can be read together.
struct ClockReading {
    std::uint64_t ticks = 0;  ///< of the counter
    TimeNs real_ns = 0;       ///< CLOCK_REALTIME
    TimeNs raw_ns = 0;        ///< CLOCK_MONOTONIC_RAW: nobody sets or slews it
    TimeNs uncertain_ns = 0;  ///< how far apart the moments may be at most
};

class DisciplinedClock {
public:
    /// How far apart the first two readings are at least, and how often it is read from then on.
    static constexpr TimeNs learn_ns = 20 * ns_per_ms;
    static constexpr TimeNs read_every_ns = 100 * ns_per_ms;
    /// Corrections are made within this time, and by no more than this part: events that are timed meanwhile see
    /// time run by at most 0.05 % too fast or too slowly.
    static constexpr TimeNs correct_within_ns = ns_per_s;
    static constexpr double slew_max = 500e-6;
    /// A clock that is off by more than this part of the time between readings (beyond 100 us) did not drift: NTP slews
    /// by 500 ppm at most, and quartz is good to 100.
    static constexpr double step_part = 1500e-6;

    /// The line at one moment, by value: for many conversions.
    struct Line {
        std::uint64_t ticks = 0;
        TimeNs ns = 0;
        double ns_per_tick = 0;
        double slew_per_tick = 0;  ///< on top, for the first slew_ticks
        double slew_ticks = 0;
        [[nodiscard]] TimeNs at(std::uint64_t when) const noexcept {
            const auto passed = static_cast<double>(static_cast<std::int64_t>(when - ticks));
            const double slewed = passed < 0 ? 0 : passed < slew_ticks ? passed : slew_ticks;
            return ns + static_cast<TimeNs>(passed * ns_per_tick + slewed * slew_per_tick);
        }
    };

    /// What can be said about it.
    struct Accuracy {
        TimeNs error_ns = 0;       ///< the largest difference to CLOCK_REALTIME that a reading has found
        TimeNs last_error_ns = 0;  ///< the last one
        double ticks_per_s = 0;
        std::uint32_t steps = 0;  ///< how often CLOCK_REALTIME was set
        std::uint32_t jumps = 0;  ///< how often the counter jumped (a virtual machine that was moved, a card reset)
    };

    /// Two readings, learn_ns apart or more, give the rate.
    DisciplinedClock(const ClockReading& first, const ClockReading& second) noexcept;

    /// A correction; for one thread. Readings less than 1 ms after the last one are not taken.
    void correct(const ClockReading& reading) noexcept;

    /// For any thread, at any time.
    [[nodiscard]] Line line() const noexcept;
    [[nodiscard]] TimeNs at(std::uint64_t ticks) const noexcept { return line().at(ticks); }
    /// For the thread that corrects.
    [[nodiscard]] const Accuracy& accuracy() const noexcept { return accuracy_; }

private:
    void publish(const Line& line) noexcept;

    // Two places that take turns: readers take the one that is not being written, so that they never wait for a writer
    // that was sent to sleep, and try again in the rare case that it has come round meanwhile.
    struct Slot {
        std::atomic<std::uint64_t> ticks{0};
        std::atomic<TimeNs> ns{0};
        std::atomic<double> ns_per_tick{0};
        std::atomic<double> slew_per_tick{0};
        std::atomic<double> slew_ticks{0};
    };
    std::atomic<std::uint32_t> sequence_{0};
    Slot slots_[2];

    ClockReading last_;
    double rate_ = 0;      ///< ns of CLOCK_REALTIME per tick
    double trend_ = 0;     ///< rate of CLOCK_REALTIME against the raw one, less 1, at the last reading
    bool jumped_ = false;  ///< at the last reading
    Accuracy accuracy_;
};

}  // namespace weir::core
