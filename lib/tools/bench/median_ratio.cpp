#include "bench/median_ratio.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "bench/spread.hpp"

namespace weir::bench {
namespace {

using Random = std::mt19937_64;

/// The standard's own distributions give other numbers with another library; this gives the same ones everywhere.
double resampled_median(std::span<const double> values, Random& random) {
    std::vector<double> drawn;
    drawn.reserve(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) drawn.push_back(values[random() % values.size()]);
    return median_of(drawn);
}

double quantile(const std::vector<double>& sorted, double fraction) {
    const auto last = static_cast<double>(sorted.size() - 1);
    return sorted[static_cast<std::size_t>(std::lround(std::clamp(fraction, 0.0, 1.0) * last))];
}

}  // namespace

std::optional<MedianRatio> median_ratio(std::span<const double> before, std::span<const double> after,
                                        const Bootstrap& bootstrap) {
    if (before.empty() || after.empty() || std::ranges::min(before) <= 0) return std::nullopt;
    MedianRatio result;
    result.ratio = median_of(after) / median_of(before);
    Random random(bootstrap.seed);
    std::vector<double> ratios;
    ratios.reserve(bootstrap.samples);
    for (std::size_t i = 0; i < bootstrap.samples; ++i) {
        const double below = resampled_median(before, random);
        ratios.push_back(resampled_median(after, random) / below);
    }
    std::ranges::sort(ratios);
    const double outside = (1 - bootstrap.confidence) / 2;
    result.low = ratios.empty() ? result.ratio : quantile(ratios, outside);
    result.high = ratios.empty() ? result.ratio : quantile(ratios, 1 - outside);
    return result;
}

}  // namespace weir::bench
