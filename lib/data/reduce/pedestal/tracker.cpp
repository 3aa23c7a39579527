#include "reduce/pedestal/tracker.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::reduce {

void fold_pixel(std::uint32_t frames, std::uint32_t sum, std::uint64_t squares, std::uint16_t count, double& mean,
                float& variance, float& weight) noexcept {
    const double n = count;
    const double mean_new = sum / n;
    // Exact: 16 bits times 44, and 30 bits squared.
    const double variance_new = static_cast<double>(count * squares - std::uint64_t{sum} * sum) / (n * n);
    const double old = std::clamp(static_cast<double>(weight), 0.0, std::max(frames - n, 0.0));
    const double all = old + n;
    const double step = mean_new - mean;
    if (old > 0) {
        mean += step * (n / all);
        variance = static_cast<float>((old * static_cast<double>(variance) + n * variance_new) / all +
                                      step * step * (old / all) * (n / all));
    } else {
        mean = mean_new;
        variance = static_cast<float>(variance_new);
    }
    weight = static_cast<float>(std::min<double>(all, frames));
}

void PedestalTracker::fold(std::size_t first, PedestalSums sums) noexcept {
    for (std::size_t i = 0; i < sums.count.size(); ++i) {
        if (sums.count[i] == 0) continue;
        const std::size_t pixel = first + i;
        if (!std::isnan(state_.mean[pixel]))
            fold_pixel(config_.frames, sums.sum[i], sums.squares[i], sums.count[i], state_.mean[pixel],
                       state_.variance[pixel], state_.weight[pixel]);
        sums.sum[i] = 0;
        sums.squares[i] = 0;
        sums.count[i] = 0;
    }
}

void PedestalTracker::publish(std::size_t first, std::span<float> mean, std::span<float> rms,
                              std::span<const float> before) noexcept {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const auto believed = static_cast<float>(std::max(config_.outlier_after, 2U));
    std::uint64_t masked = 0;
    for (std::size_t i = 0; i < mean.size(); ++i) {
        const std::size_t pixel = first + i;
        const float weight = state_.weight[pixel];
        float value = nan;
        mean[i] = static_cast<float>(state_.mean[pixel]);
        if (weight >= believed)
            value = std::sqrt(state_.variance[pixel] * (weight / (weight - 1)));
        else if (!before.empty())
            mean[i] = before[i];
        rms[i] = value;
        if (config_.rms_max <= 0) continue;
        if (out_[pixel] == 0 && !std::isnan(mean[i]) && (value == 0 || value > config_.rms_max)) {
            out_[pixel] = 1;
            ++masked;
        }
        if (out_[pixel] != 0) mean[i] = nan;
    }
    if (masked > 0) masked_.fetch_add(masked, std::memory_order_relaxed);
}

}  // namespace weir::reduce
