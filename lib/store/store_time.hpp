// The two clocks of a run's files.
#pragma once

#include <time.h>

#include "core/units.hpp"

namespace weir::store {

inline core::TimeNs clock_ns(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return core::TimeNs{now.tv_sec} * core::ns_per_s + now.tv_nsec;
}
inline core::TimeNs unix_time_ns() {
    return clock_ns(CLOCK_REALTIME);
}
inline core::TimeNs steady_time_ns() {
    return clock_ns(CLOCK_MONOTONIC);
}

}  // namespace weir::store
