#include "pixels_reference.hpp"
#include "floats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace weir::reduce::reference {

namespace {

float energy_of(std::uint16_t raw, const PixelCalibration& calibration, std::size_t pixel) noexcept {
    if (raw == raw_saturated) return infinity;
    if (raw == raw_error || raw == raw_gain1_error) return nan;
    const unsigned gain = raw >> 14U;
    if (gain == 2) return nan;
    const std::size_t map = gain == 3 ? 2 : gain;
    const float above = static_cast<float>(raw & 0x3fffU) - calibration.pedestal[map][pixel];
    const float energy = above * calibration.factor[map][pixel];
    return std::isnan(energy) ? nan : energy;
}

/// Round to nearest, ties to even, by integer arithmetic on the bits.
std::uint16_t half_of(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(bits >> 16U & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return sign | 0x7e00U;   // NaN
    if (magnitude >= 0x477ff000U) return sign | 0x7c00U;  // rounds to 65536 or more
    if (magnitude < 0x33000001U) return sign;             // half of the smallest subnormal, or less
    const std::uint32_t exponent = magnitude >> 23U;
    std::uint32_t mantissa = (magnitude & 0x7fffffU) | 0x800000U;
    std::uint32_t drop = 13;
    std::uint32_t base = 0;
    if (exponent < 113) {
        drop = 13 + (113 - exponent);  // a subnormal half
    } else {
        base = (exponent - 112) << 10U;
        mantissa &= 0x7fffffU;
    }
    const std::uint32_t kept = mantissa >> drop;
    const std::uint32_t rest = mantissa & ((1U << drop) - 1);
    const std::uint32_t tie = 1U << (drop - 1);
    const std::uint32_t up = rest > tie || (rest == tie && (kept & 1U) != 0) ? 1 : 0;
    return static_cast<std::uint16_t>(sign | (base + kept + up));
}

template <class Out>
Out rounded(float energy, float lowest, float highest, Out bad, Out saturated) noexcept {
    if (std::isnan(energy)) return bad;
    if (energy == infinity) return saturated;
    const float clamped = energy < lowest ? lowest : energy > highest ? highest : energy;
    return static_cast<Out>(std::nearbyintf(clamped));
}

template <class ThresholdOf>
std::uint32_t mark_where(std::span<const float> energy, std::span<std::uint64_t> marks,
                         ThresholdOf threshold_of) noexcept {
    std::uint32_t count = 0;
    std::fill(marks.begin(), marks.end(), 0);
    for (std::size_t i = 0; i < energy.size(); ++i) {
        if (energy[i] <= threshold_of(i)) continue;
        marks[i / 64] |= std::uint64_t{1} << (i % 64);
        ++count;
    }
    return count;
}

}  // namespace

void convert(std::span<const std::uint16_t> raw, const PixelCalibration& calibration,
             std::span<float> energy) noexcept {
    for (std::size_t i = 0; i < raw.size(); ++i) energy[i] = energy_of(raw[i], calibration, i);
}

void to_f16(std::span<const float> energy, std::span<std::uint16_t> out) noexcept {
    for (std::size_t i = 0; i < energy.size(); ++i) out[i] = half_of(energy[i]);
}

void to_i16(std::span<const float> energy, std::span<std::int16_t> out) noexcept {
    for (std::size_t i = 0; i < energy.size(); ++i)
        out[i] = rounded<std::int16_t>(energy[i], -32767, 32766, i16_bad, i16_saturated);
}

void to_u16(std::span<const float> energy, std::span<std::uint16_t> out) noexcept {
    for (std::size_t i = 0; i < energy.size(); ++i)
        out[i] = rounded<std::uint16_t>(energy[i], 0, 65533, u16_bad, u16_saturated);
}

std::uint32_t count_above(std::span<const float> energy, float threshold) noexcept {
    std::uint32_t count = 0;
    for (const float value : energy) count += value > threshold ? 1 : 0;
    return count;
}

std::uint32_t mark_above(std::span<const float> energy, float threshold, std::span<std::uint64_t> marks) noexcept {
    return mark_where(energy, marks, [threshold](std::size_t) { return threshold; });
}

std::uint32_t mark_above(std::span<const float> energy, std::span<const float> thresholds,
                         std::span<std::uint64_t> marks) noexcept {
    return mark_where(energy, marks, [thresholds](std::size_t i) { return thresholds[i]; });
}

}  // namespace weir::reduce::reference
