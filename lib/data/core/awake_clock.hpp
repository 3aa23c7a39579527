// A clock for what is waited for: time in which nobody could look does not count.
#pragma once

#include "core/clock_ns.hpp"
#include "core/units.hpp"

namespace weir::core {

/// For loops that ask for the time every few milliseconds. Where a longer gap lies between two readings, the process
/// stood still (it was stopped, its machine had no processor for it, or slept), and what it waits for has had no chance
/// to be seen: of the gap `gap_max_ns` count.
class AwakeClock {
public:
    /// ns; rises, from any point on.
    [[nodiscard]] TimeNs now() noexcept { return at(monotonic_ns()); }
    /// The same, where the time by CLOCK_MONOTONIC is known already.
    [[nodiscard]] TimeNs at(TimeNs monotonic) noexcept {
        const TimeNs gap = monotonic - read_ns_;
        if (read_ns_ != 0 && gap > gap_max_ns) still_ns_ += gap - gap_max_ns;
        read_ns_ = monotonic;
        return monotonic - still_ns_;
    }

    static constexpr TimeNs gap_max_ns = 100 * ns_per_ms;

private:
    TimeNs read_ns_ = 0;
    TimeNs still_ns_ = 0;
};

}  // namespace weir::core
