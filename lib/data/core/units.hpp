// Time and the sizes that more than one layer needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace weir::core {

/// Nanoseconds since the UNIX epoch (live) or as the capture's time stamps say (replay). Handed to stages, never read
/// by them.
using TimeNs = std::int64_t;

/// Later than everything.
inline constexpr TimeNs never = std::numeric_limits<TimeNs>::max();
inline constexpr TimeNs ns_per_ms = 1'000'000;
inline constexpr TimeNs ns_per_s = 1'000'000'000;

inline constexpr std::size_t cache_line_bytes = 64;

}  // namespace weir::core
