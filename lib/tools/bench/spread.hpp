// What repeated measurements have in common: the middle, the lowest and the highest.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace weir::bench {

/// In the unit of the values.
struct Spread {
    double median = 0;
    double min = 0;
    double max = 0;
    std::size_t count = 0;  ///< values, at least 1
};

/// Of at least one value: the mean of the two in the middle, if there are two.
[[nodiscard]] double median_of(std::span<const double> values);

/// Of the finite ones among the values; none if there are none.
[[nodiscard]] std::optional<Spread> spread_of(std::span<const double> values);

}  // namespace weir::bench
