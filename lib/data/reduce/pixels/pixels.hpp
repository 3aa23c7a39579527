// JUNGFRAU pixels: raw words to energies, and what is done with energies next. Pure loops over arrays, in SIMD by
// Google Highway, chosen at run time; every instruction set gives the same bits.
//
// A raw pixel is 16 bits: 15..14 the gain (00 G0, 01 G1, 11 G2, 10 never), 13..0 the ADC value. Its energy is
// (ADC - pedestal[gain]) * factor[gain], computed in float in this order. Source: the detector's documentation as
// quoted in the PSI receivers slsDetectorPackage and jungfraujoch; checked against real frames in tests/reduce.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::reduce {

inline constexpr std::uint16_t raw_error = 0xffff;        ///< the receiver's padding, or a detector error
inline constexpr std::uint16_t raw_gain1_error = 0x4000;  ///< G1 with ADC 0: cannot be reached by charge
inline constexpr std::uint16_t raw_saturated = 0xc000;    ///< G2 with ADC 0: more charge than can be measured

/// Calibration of the pixels that a call converts, one float each, by gain. A pixel without a valid calibration in a
/// gain has NaN there, and becomes NaN when it is in that gain.
struct PixelCalibration {
    std::array<const float*, 3> pedestal{};  ///< ADU
    std::array<const float*, 3> factor{};    ///< keV (or photons) per ADU
};

/// What stands for a pixel that has no energy, in each type of output.
///                       bad or error     saturated   lowest and highest value
/// f32, f16              NaN              +infinity
/// i16                   -32768           32767       -32767, 32766
/// u16                   65535            65534       0, 65533
inline constexpr std::int16_t i16_bad = -32768;
inline constexpr std::int16_t i16_saturated = 32767;
inline constexpr std::uint16_t u16_bad = 65535;
inline constexpr std::uint16_t u16_saturated = 65534;

/// Pixels without a finite energy.
struct SpecialPixels {
    std::uint32_t bad = 0;        ///< NaN
    std::uint32_t saturated = 0;  ///< +infinity
};

/// raw.size() pixels to energies. `energy` is as long, as are the arrays of `calibration`. Returns how many became
/// special.
SpecialPixels convert(std::span<const std::uint16_t> raw, const PixelCalibration& calibration,
                      std::span<float> energy) noexcept;

/// Asks for what converting pixels [begin, end) in the first gain reads of `calibration`, into the second-level cache:
/// for the time in which something else is done that leaves memory alone.
inline void fetch_maps(const PixelCalibration& calibration, std::size_t begin, std::size_t end) noexcept {
    constexpr std::size_t line_pixels = 64 / sizeof(float);
    constexpr int second_level = 2;
    for (std::size_t at = begin; at < end; at += line_pixels) {
        __builtin_prefetch(calibration.pedestal[0] + at, 0, second_level);
        __builtin_prefetch(calibration.factor[0] + at, 0, second_level);
    }
}

/// Energies to IEEE 754 half precision (the bits), rounded to the nearest, ties to even; too large: infinity.
void to_f16(std::span<const float> energy, std::span<std::uint16_t> out) noexcept;
/// Energies rounded to whole numbers, ties to even, with the markers above.
void to_i16(std::span<const float> energy, std::span<std::int16_t> out) noexcept;
void to_u16(std::span<const float> energy, std::span<std::uint16_t> out) noexcept;

/// Pixels above `threshold`. Saturated ones are above any finite threshold, NaN above none.
[[nodiscard]] std::uint32_t count_above(std::span<const float> energy, float threshold) noexcept;

/// Sets bit i % 64 of marks[i / 64] where energy[i] is above the threshold or NaN (not at most the threshold, that is),
/// and clears it elsewhere; returns how many are set. `marks` has a word for each 64 pixels begun.
std::uint32_t mark_above(std::span<const float> energy, float threshold, std::span<std::uint64_t> marks) noexcept;
/// The same with a threshold for each pixel; one that is NaN marks its pixel.
std::uint32_t mark_above(std::span<const float> energy, std::span<const float> thresholds,
                         std::span<std::uint64_t> marks) noexcept;

}  // namespace weir::reduce
