// Whole numbers in as many bits as they need: frame of reference with a list of exceptions (the scheme is known as
// PFOR, M. Zukowski et al., ICDE 2006), block by block. Lossless whatever comes in. Little-endian:
//
//   piece      u8 element_bytes (1, 2, 4, 8), three zero bytes, u32 elements per block (a multiple of 8, at most
//   65536);
//              blocks, the last of which may be shorter; the bytes that do not fill an element, as they are
//   block      u8 width, a zero byte, u16 exceptions, reference (one element);
//              `width` rows of ceil(elements / 8) bytes: bit i % 8 of byte i / 8 of row k is bit k of element i less
//              the reference, modulo the element's range; the places of the exceptions in the block (u16 each, rising),
//              then their values (one element each)
//
// Exceptions are what would need a wider block than it is worth: markers of bad pixels, pixels in another gain, spikes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "reduce/pack/codec.hpp"

namespace weir::reduce::pack {

/// What packing works in; no more than one block at a time.
struct BitsScratch {
    alignas(64) std::array<std::byte, block_bytes> values{};
    alignas(64) std::array<std::byte, block_bytes> rows{};
};

/// Bytes that `raw_bytes` can need at most.
[[nodiscard]] std::size_t bits_bound(std::size_t raw_bytes, std::size_t element_bytes) noexcept;
/// Returns the bytes written; `out` has at least bits_bound(). With `is_signed` the smallest number is the smallest in
/// two's complement; it matters for the size only.
std::size_t pack_bits(std::span<const std::byte> raw, std::size_t element_bytes, bool is_signed, BitsScratch& scratch,
                      std::span<std::byte> out) noexcept;
/// Fills `out`. Empty if `in` was good, else what is wrong with it; made for arbitrary bytes.
[[nodiscard]] std::string_view unpack_bits(std::span<const std::byte> in, std::size_t element_bytes,
                                           std::span<std::byte> out);

}  // namespace weir::reduce::pack
