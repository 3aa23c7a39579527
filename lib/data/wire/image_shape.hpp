// How the images of a format lie in its messages: row by row without gaps, each pixel a number of 4 to 32 bits, the
// lowest bits first (of 8, 16 and 32 bits: little-endian).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::wire {

struct ImageShape {
    std::uint32_t rows = 0;     ///< of a message
    std::uint32_t columns = 0;  ///< 0: the messages are no images
    std::uint32_t bits = 16;    ///< of a pixel: 4, 8, 12, 16 or 32

    bool operator==(const ImageShape&) const = default;
    /// Of a row in the message.
    [[nodiscard]] std::uint64_t row_bytes() const noexcept { return std::uint64_t{columns} * bits / 8; }
};

/// Pixels have 4, 8, 12, 16 or 32 bits.
[[nodiscard]] constexpr bool is_pixel_bits(std::uint64_t bits) noexcept {
    return bits == 4 || bits == 8 || bits == 12 || bits == 16 || bits == 32;
}

/// Of the number that a pixel becomes by itself.
[[nodiscard]] constexpr std::uint32_t unpacked_bytes(std::uint32_t bits) noexcept {
    return bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
}

/// Several pixels share a byte.
[[nodiscard]] constexpr bool is_packed(std::uint32_t bits) noexcept {
    return bits % 8 != 0;
}

/// Whole pixels of `bits` bits, from the first bit of `packed` on, as numbers of unpacked_bytes(bits). `out` says how
/// many; `packed` has them. Pixels that share no byte are copied.
void unpack_pixels(std::uint32_t bits, std::span<const std::byte> packed, std::span<std::byte> out) noexcept;

/// The pixels that have something of the bytes from `begin` to `end`.
struct PixelRange {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};
[[nodiscard]] constexpr PixelRange pixels_of_bytes(std::uint32_t bits, std::uint64_t begin,
                                                   std::uint64_t end) noexcept {
    return {begin * 8 / bits, (end * 8 + bits - 1) / bits};
}

}  // namespace weir::wire
