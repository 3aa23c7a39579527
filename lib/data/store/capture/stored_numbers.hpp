// What the numbers in a capture mean, whoever wrote it.
#pragma once

#include <cstdint>

#include "core/units.hpp"

namespace weir::store {

/// libpcap's largest packet on Ethernet (MAXIMUM_SNAPLEN). A larger length in a file is damage.
inline constexpr std::uint32_t capture_bytes_max = 262144;

/// What a snapshot length of a file means: 0 and what no int holds stand for no limit.
[[nodiscard]] std::uint32_t snapshot_of(std::uint32_t stored) noexcept;

/// Seconds and nanoseconds of any size as a time: clamped to what TimeNs holds, never negative.
[[nodiscard]] core::TimeNs capture_time(std::int64_t seconds, std::int64_t fraction_ns) noexcept;

}  // namespace weir::store
