// Pedestals that follow the detector: mean and RMS of each pixel in one gain, from dark frames. Frames are collected in
// sums (collect.hpp), and sums are folded in from time to time. What workers read is in generations.hpp.
//
// The method: while fewer than `frames` frames have been taken of a pixel, all count alike; from then on what is known
// counts as `frames` less those that are new, so what is old fades as in an exponential window of `frames` frames.
// Means and spreads are put together by the formula of Chan, Golub and LeVeque (1979, "Updating formulae and a pairwise
// algorithm for computing sample variances"). Sums are whole numbers, the mean is a double: nothing is lost however
// long a run is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reduce/pedestal/collect.hpp"

namespace weir::reduce {

/// What is known of every pixel; all three are equally long. This is also what is saved and started from.
struct PedestalState {
    PedestalState() = default;
    static constexpr std::size_t pixel_bytes = sizeof(double) + 2 * sizeof(float);
    explicit PedestalState(std::size_t pixels) : mean(pixels), variance(pixels), weight(pixels) {}

    std::vector<double> mean;     ///< ADU; NaN: the pixel is bad, and stays so
    std::vector<float> variance;  ///< ADU squared, of the frames in the window, by their number (not one less)
    std::vector<float> weight;    ///< frames that it stands for; 0: nothing is known but perhaps the mean

    bool operator==(const PedestalState&) const = default;
};

/// Memory for PedestalSums.
class SumArrays {
public:
    static constexpr std::size_t pixel_bytes = sizeof(std::uint32_t) + sizeof(std::uint64_t) + sizeof(std::uint16_t);
    explicit SumArrays(std::size_t pixels) : sum_(pixels), squares_(pixels), count_(pixels) {}

    [[nodiscard]] PedestalSums of(std::size_t first, std::size_t pixels) noexcept {
        return {std::span(sum_).subspan(first, pixels), std::span(squares_).subspan(first, pixels),
                std::span(count_).subspan(first, pixels)};
    }
    [[nodiscard]] PedestalSums all() noexcept { return of(0, sum_.size()); }

private:
    std::vector<std::uint32_t> sum_;
    std::vector<std::uint64_t> squares_;
    std::vector<std::uint16_t> count_;
};

class PedestalTracker {
public:
    struct Config {
        std::uint32_t frames = 1000;       ///< the window
        std::uint32_t outlier_after = 50;  ///< frames of a pixel from which on its RMS is believed
        float rms_max = 0;                 ///< ADU; a pixel with more, or with 0, becomes bad. 0: not asked
    };

    PedestalTracker(const Config& config, PedestalState start) : config_(config), state_(std::move(start)) {
        if (config.rms_max > 0) out_.resize(state_.mean.size());
    }

    /// Takes sums of the pixels from `first` on in, and leaves zeros in their place. Threads may do so for different
    /// pixels at the same time, and the same goes for publish().
    void fold(std::size_t first, PedestalSums sums) noexcept;
    /// What pixels are converted and judged by: the mean, NaN where bad; and the RMS (n - 1), NaN where fewer frames
    /// than `outlier_after` are after it. There the mean stays what it was in `before`, the mean of the generation
    /// before (empty: there is none). Makes pixels bad, if that is asked. Of the pixels from `first` on.
    void publish(std::size_t first, std::span<float> mean, std::span<float> rms,
                 std::span<const float> before) noexcept;

    [[nodiscard]] const PedestalState& state() const noexcept { return state_; }
    /// Pixels that their RMS has made bad. A pixel stays so until the next run.
    [[nodiscard]] std::uint64_t masked() const noexcept { return masked_.load(std::memory_order_relaxed); }

private:
    Config config_;
    PedestalState state_;
    std::vector<std::uint8_t> out_;  ///< 1: made bad by the RMS; empty where that is not asked
    std::atomic<std::uint64_t> masked_ = 0;
};

/// What sums say by themselves: folds one pixel's into what is known of it.
void fold_pixel(std::uint32_t frames, std::uint32_t sum, std::uint64_t squares, std::uint16_t count, double& mean,
                float& variance, float& weight) noexcept;

}  // namespace weir::reduce
