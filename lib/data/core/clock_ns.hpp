// The system's clocks.
#pragma once

#include <time.h>

#include "core/units.hpp"

namespace weir::core {

/// What `clock` (CLOCK_REALTIME, CLOCK_MONOTONIC and the like) says, in ns.
[[nodiscard]] inline TimeNs clock_ns(clockid_t clock) noexcept {
    timespec now{};
    ::clock_gettime(clock, &now);
    return TimeNs{now.tv_sec} * ns_per_s + now.tv_nsec;
}

/// For what is measured between two moments, in any process of this machine.
[[nodiscard]] inline TimeNs monotonic_ns() noexcept {
    return clock_ns(CLOCK_MONOTONIC);
}

}  // namespace weir::core
