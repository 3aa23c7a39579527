// Bits of numbers, sorted by their worth: all lowest bits first, then all second lowest, and so on. Numbers that vary
// in their low bits only leave long runs of zeros for a compressor. In SIMD by Google Highway, chosen at run time.
//
// `count` elements become 8 * element_bytes rows of count / 8 bytes. Row r has bit r % 8 of byte r / 8 of each element;
// element i is bit i % 8 of byte i / 8 of the row. This is the bit transposition of bitshuffle (K. Masui et al.,
// Astronomy and Computing 12 (2015) 181, arXiv:1503.00638), without its splitting into blocks.
#pragma once

#include <cstddef>
#include <span>

namespace weir::reduce::pack {

/// The sizes of elements that can be transposed: 1, 2, 4 and 8 bytes.
[[nodiscard]] constexpr bool is_element(std::size_t bytes) noexcept {
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

/// `in` holds a multiple of eight elements; `out` is as long and elsewhere. Neither needs to be aligned.
void transpose_bits(std::span<const std::byte> in, std::size_t element_bytes, std::span<std::byte> out) noexcept;
/// The way back.
void untranspose_bits(std::span<const std::byte> in, std::size_t element_bytes, std::span<std::byte> out) noexcept;

/// The same, bit by bit: what the SIMD is tested against, and what does the last elements that fill no vector.
namespace reference {
/// Elements `first` (a multiple of eight) to the last.
void transpose_bits(std::span<const std::byte> in, std::size_t element_bytes, std::span<std::byte> out,
                    std::size_t first = 0) noexcept;
void untranspose_bits(std::span<const std::byte> in, std::size_t element_bytes, std::span<std::byte> out,
                      std::size_t first = 0) noexcept;
}  // namespace reference

}  // namespace weir::reduce::pack
