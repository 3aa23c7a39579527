// Energies in the type in which they are written, chosen at run time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reduce/pixels/pixel_type.hpp"
#include "reduce/pixels/pixels.hpp"

namespace weir::reduce {

/// The bits of a bad or missing pixel: the lowest bytes_of(type) bytes, little-endian. NaN is the one that convert()
/// gives.
[[nodiscard]] constexpr std::uint32_t bad_pixel_bits(PixelType type) noexcept {
    constexpr std::array<std::uint32_t, 4> bits{0x7fc00000, 0x7e00, static_cast<std::uint16_t>(i16_bad), u16_bad};
    return bits[static_cast<std::size_t>(type)];
}

/// The same of a saturated one, for types of two bytes.
[[nodiscard]] constexpr std::uint16_t saturated_pixel_bits(PixelType type) noexcept {
    constexpr std::array<std::uint16_t, 4> bits{0, 0x7c00, static_cast<std::uint16_t>(i16_saturated), u16_saturated};
    return bits[static_cast<std::size_t>(type)];
}

/// Energies as `type`, to any address; `out` has energy.size() * bytes_of(type) bytes.
void write_pixels(PixelType type, std::span<const float> energy, std::byte* out) noexcept;

}  // namespace weir::reduce
