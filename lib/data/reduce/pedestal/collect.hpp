// Pixels of dark frames, added up: what a pedestal is made of. Pure loops over arrays, in SIMD by Google Highway,
// chosen at run time. Sums are whole numbers, so they are exact, and the order in which frames come does not matter.
#pragma once

#include <cstdint>
#include <span>

namespace weir::reduce {

/// Sums over dark frames, for each pixel. All spans are equally long. They overflow only after 65535 frames.
struct PedestalSums {
    static constexpr std::uint32_t frames_max = 65535;

    std::span<std::uint32_t> sum;      ///< of ADC values
    std::span<std::uint64_t> squares;  ///< of their squares
    std::span<std::uint16_t> count;    ///< frames that are in them
};

/// What the pixels of a dark frame are judged by. A pixel whose `mean` is NaN is bad: it is never taken. One whose
/// `rms` is NaN is not known well enough to call anything an outlier.
struct PedestalJudge {
    std::span<const float> mean;  ///< ADU
    std::span<const float> rms;   ///< ADU
    float outlier = 0;            ///< |ADC - mean| > outlier * rms is one (compared in float, in this order)
    std::uint16_t gain_bits = 0;  ///< bits 15..14 that a raw word must have: 0, 0x4000 or 0xc000
};

/// Where pixels of dark frames went; bad ones are nowhere in it.
struct PedestalCounts {
    std::uint64_t taken = 0;
    std::uint64_t outliers = 0;
    std::uint64_t other_gain = 0;  ///< in another gain, or a word that is no value (0x4000, 0xc000)
    std::uint64_t missing = 0;     ///< 0xffff: never came, or the detector's error

    PedestalCounts& operator+=(const PedestalCounts& other) noexcept {
        taken += other.taken;
        outliers += other.outliers;
        other_gain += other.other_gain;
        missing += other.missing;
        return *this;
    }
    bool operator==(const PedestalCounts&) const = default;
};

/// Adds the same pixels of several frames to the sums. Each of `frames` has sums.sum.size() pixels; all together are
/// fewer than 2^32.
PedestalCounts collect(std::span<const std::uint16_t* const> frames, const PedestalJudge& judge,
                       PedestalSums sums) noexcept;
/// The same for one frame.
inline PedestalCounts collect(std::span<const std::uint16_t> raw, const PedestalJudge& judge,
                              PedestalSums sums) noexcept {
    const std::uint16_t* const frame = raw.data();
    return collect(std::span(&frame, 1), judge, sums);
}

}  // namespace weir::reduce
