#include "bench/spread.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace weir::bench {

double median_of(std::span<const double> values) {
    std::vector<double> sorted(values.begin(), values.end());
    std::ranges::sort(sorted);
    const std::size_t middle = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

std::optional<Spread> spread_of(std::span<const double> values) {
    std::vector<double> finite;
    std::ranges::copy_if(values, std::back_inserter(finite), [](double value) { return std::isfinite(value); });
    if (finite.empty()) return std::nullopt;
    const auto [min, max] = std::ranges::minmax(finite);
    return Spread{median_of(finite), min, max, finite.size()};
}

}  // namespace weir::bench
