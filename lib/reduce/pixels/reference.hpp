// pixels.hpp in plain C++: what the SIMD functions must equal bit by bit, and what benchmarks compare them with.
#pragma once

#include "reduce/pixels/pixels.hpp"

namespace weir::reduce::reference {

void convert(std::span<const std::uint16_t> raw, const PixelCalibration& calibration, std::span<float> energy) noexcept;
void to_f16(std::span<const float> energy, std::span<std::uint16_t> out) noexcept;
void to_i16(std::span<const float> energy, std::span<std::int16_t> out) noexcept;
void to_u16(std::span<const float> energy, std::span<std::uint16_t> out) noexcept;
[[nodiscard]] std::uint32_t count_above(std::span<const float> energy, float threshold) noexcept;
std::size_t sparsify(std::span<const float> energy, float threshold, std::uint32_t first_place,
                     std::span<std::uint32_t> places, std::span<float> energies) noexcept;
std::size_t sparsify(std::span<const float> energy, std::span<const float> rms, float factor, std::uint32_t first_place,
                     std::span<std::uint32_t> places, std::span<float> energies) noexcept;

}  // namespace weir::reduce::reference
