#include "bench/plot_axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weir::bench {
namespace {

constexpr int ticks_max = 8;

std::vector<double> usable(std::span<const double> values, bool logarithmic) {
    std::vector<double> kept;
    for (const double value : values)
        if (std::isfinite(value) && (!logarithmic || value > 0)) kept.push_back(value);
    return kept;
}

/// 1, 2 or 5 times a power of ten, so that a few of them reach `high`.
double round_step(double high) {
    const double power = std::pow(10, std::floor(std::log10(high / 4)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (high / (factor * power) <= 5) return factor * power;
    return 10 * power;
}

std::string power_label(int exponent) {
    return exponent >= 0 && exponent <= 3 ? fmt::format("{:.0f}", std::pow(10, exponent))
                                          : fmt::format("1e{}", exponent);
}

}  // namespace

Axis Axis::from_zero(std::span<const double> values) {
    const std::vector<double> kept = usable(values, false);
    const double highest = kept.empty() ? 0 : std::ranges::max(kept);
    const double high = highest > 0 ? highest : 1;
    const double step = round_step(high);
    const int steps = static_cast<int>(std::ceil(high / step - 1e-9));
    Axis axis(0, steps * step, false);
    for (int i = 0; i <= steps; ++i) axis.ticks_.push_back({i * step, fmt::format("{:.6g}", i * step)});
    return axis;
}

Axis Axis::decades(std::span<const double> values) {
    const std::vector<double> kept = usable(values, true);
    const int from = kept.empty() ? 0 : static_cast<int>(std::floor(std::log10(std::ranges::min(kept)) + 1e-9));
    const int high = kept.empty() ? 1 : static_cast<int>(std::ceil(std::log10(std::ranges::max(kept)) - 1e-9));
    const int low = std::min(from, high - 1);  // downwards, so that ratios end at 1
    Axis axis(low, high, true);
    const int stride = (high - low + ticks_max - 1) / ticks_max;
    for (int exponent = high; exponent >= low; exponent -= stride)
        axis.ticks_.push_back({std::pow(10, exponent), power_label(exponent)});
    return axis;
}

Axis Axis::of_sizes(std::span<const double> values) {
    std::vector<double> kept = usable(values, true);
    if (kept.empty()) return decades({});
    std::ranges::sort(kept);
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    const double room = std::max(0.06 * (std::log10(kept.back()) - std::log10(kept.front())), 0.05);
    Axis axis(std::log10(kept.front()) - room, std::log10(kept.back()) + room, true);
    for (const double value : kept) axis.ticks_.push_back({value, fmt::format("{:.6g}", value)});
    return axis;
}

double Axis::place(double value) const {
    if (std::isnan(value) || (logarithmic_ && value <= 0)) return 0;
    return std::clamp(((logarithmic_ ? std::log10(value) : value) - low_) / (high_ - low_), 0.0, 1.0);
}

}  // namespace weir::bench
