#include "wire/image_shape.hpp"

#include <cstring>

#include "wire/bytes.hpp"

namespace weir::wire {
namespace {

std::uint32_t number(std::byte byte) noexcept {
    return std::to_integer<std::uint32_t>(byte);
}

/// Two pixels in a byte: the lower half first.
void unpack_4(const std::byte* packed, std::byte* out, std::size_t pixels) noexcept {
    for (std::size_t i = 0; i < pixels / 2; ++i) {
        out[2 * i] = packed[i] & std::byte{0xf};
        out[2 * i + 1] = packed[i] >> 4U;
    }
    if (pixels % 2 != 0) out[pixels - 1] = packed[pixels / 2] & std::byte{0xf};
}

/// Two pixels in three bytes: the lower half of the second is the upper bits of the first pixel.
void unpack_12(const std::byte* packed, std::byte* out, std::size_t pixels) noexcept {
    for (std::size_t i = 0; i < pixels; ++i) {
        const std::byte* at = packed + i / 2 * 3;
        const std::uint32_t value =
            i % 2 == 0 ? number(at[0]) | (number(at[1]) & 0xfU) << 8U : number(at[1]) >> 4U | number(at[2]) << 4U;
        store_le(out + 2 * i, static_cast<std::uint16_t>(value));
    }
}

}  // namespace

void unpack_pixels(std::uint32_t bits, std::span<const std::byte> packed, std::span<std::byte> out) noexcept {
    if (out.empty()) return;
    if (bits == 4)
        unpack_4(packed.data(), out.data(), out.size());
    else if (bits == 12)
        unpack_12(packed.data(), out.data(), out.size() / 2);
    else
        std::memcpy(out.data(), packed.data(), out.size());
}

}  // namespace weir::wire
