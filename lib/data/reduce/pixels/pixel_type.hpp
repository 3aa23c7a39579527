// In which type an energy is written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::reduce {

enum class PixelType : std::uint8_t { f32, f16, i16, u16 };
inline constexpr std::array<std::string_view, 4> pixel_type_names{"f32", "f16", "i16", "u16"};

constexpr std::size_t bytes_of(PixelType type) noexcept {
    return type == PixelType::f32 ? 4 : 2;
}

}  // namespace weir::reduce
