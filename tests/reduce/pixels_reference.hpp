// pixels.hpp in plain C++: what the SIMD functions must equal bit by bit, and what benchmarks compare them with.
#pragma once

#include "reduce/pixels/pixels.hpp"

namespace weir::reduce::reference {

void convert(std::span<const std::uint16_t> raw, const PixelCalibration& calibration, std::span<float> energy) noexcept;
void to_f16(std::span<const float> energy, std::span<std::uint16_t> out) noexcept;
void to_i16(std::span<const float> energy, std::span<std::int16_t> out) noexcept;
void to_u16(std::span<const float> energy, std::span<std::uint16_t> out) noexcept;
[[nodiscard]] std::uint32_t count_above(std::span<const float> energy, float threshold) noexcept;
std::uint32_t mark_above(std::span<const float> energy, float threshold, std::span<std::uint64_t> marks) noexcept;
std::uint32_t mark_above(std::span<const float> energy, std::span<const float> thresholds,
                         std::span<std::uint64_t> marks) noexcept;

}  // namespace weir::reduce::reference
