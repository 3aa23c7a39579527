// The ends of `weir replay --from T --to T`: a moment, or a distance from the first record.
#pragma once

#include <string>

#include "core/units.hpp"

namespace weir::stages {

struct TimeBound {
    bool relative = false;  ///< ns counts from the capture's first record, not from 1970
    core::TimeNs ns = 0;
};

/// Reads "+1.5s", "+250ms", "+3us", "+20ns" (a number alone counts seconds), seconds since 1970 with a fraction, or
/// RFC 3339 ("2026-11-21T13:05:00.25Z", "2026-11-21T14:05:00+01:00"). Exact to the nanosecond. Throws core::UsageError
/// that names the option.
[[nodiscard]] TimeBound parse_time_bound(const std::string& option, const std::string& text);

}  // namespace weir::stages
