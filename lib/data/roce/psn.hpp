// Packet sequence numbers (PSN): 24 bits on the wire, continued over every wrap here.
#pragma once

#include <cstdint>

namespace weir::roce {

/// An extended PSN: the 24 bits on the wire continued over every wrap.
using Psn = std::int64_t;
inline constexpr Psn no_psn = -1;
/// The bits on the wire; message sequence numbers (MSN) have as many.
inline constexpr std::uint32_t psn_mask = 0xffffff;

/// a - b for PSNs of 24 bits: more than 0 where a is newer, in the half range of 2^23.
[[nodiscard]] constexpr std::int32_t psn_distance(std::uint32_t a, std::uint32_t b) noexcept {
    return static_cast<std::int32_t>((a - b) << 8U) >> 8;
}

}  // namespace weir::roce
