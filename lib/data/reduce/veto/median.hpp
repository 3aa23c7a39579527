// The median of a few hundred floats, in SIMD by Google Highway, chosen at run time.
#pragma once

#include <cstddef>
#include <span>

namespace weir::reduce {

inline constexpr std::size_t median_values_max = 1024;

/// The middle value, or the mean of the two in the middle. `values` are 1 to median_values_max, none of them NaN.
[[nodiscard]] float median(std::span<const float> values) noexcept;

}  // namespace weir::reduce
