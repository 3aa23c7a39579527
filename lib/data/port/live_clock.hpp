// The clock of live input: the time stamp counter as UNIX time, because asking the kernel for every burst costs more,
// and its time may be set while a run goes on. On machines whose counter does not run evenly it is the kernel's time.
#pragma once

#include <memory>
#include <string>

#include "core/disciplined_clock.hpp"

namespace weir::port {

class LiveClock {
public:
    /// Begins to learn how fast the counter runs.
    LiveClock();

    /// For the thread that controls the run, many times a second: corrects now and then.
    void look() noexcept;

    /// For any thread. An lcore keeps the largest value that it has seen.
    [[nodiscard]] core::TimeNs now() const noexcept;

    struct Facts {
        std::string source;         ///< "TSC", or "CLOCK_REALTIME"
        core::TimeNs error_ns = 0;  ///< largest difference to CLOCK_REALTIME that was found
        double ticks_per_s = 0;     ///< of the counter, measured; 0: not used
        std::uint32_t steps = 0;    ///< how often the system time was set meanwhile
        std::uint32_t jumps = 0;    ///< how often the counter jumped
    };
    /// For the thread that calls look().
    [[nodiscard]] Facts facts() const;

    /// Both clocks, read together as closely as possible.
    [[nodiscard]] static core::ClockReading read() noexcept;
    /// The counter runs at one rate, whatever the processor does.
    [[nodiscard]] static bool counter_is_even() noexcept;

private:
    std::unique_ptr<core::DisciplinedClock> clock_;
    core::TimeNs looked_ns_ = 0;  ///< CLOCK_MONOTONIC_RAW
};

}  // namespace weir::port
