// Lengths in chunks of HDF5 filters are big-endian.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::reduce::pack {

/// Of filter 32008: u64 decoded bytes, u32 bytes of a block. Each block follows as u32 length and data.
inline constexpr std::size_t bitshuffle_header_bytes = 12;
/// Of filter 32004: the same, and the length of the first block.
inline constexpr std::size_t lz4_header_bytes = 16;

inline void put_be32(std::byte* out, std::uint32_t value) noexcept {
    for (std::size_t i = 0; i < 4; ++i) out[i] = static_cast<std::byte>(value >> (24 - 8 * i));
}

inline void put_be64(std::byte* out, std::uint64_t value) noexcept {
    put_be32(out, static_cast<std::uint32_t>(value >> 32U));
    put_be32(out + 4, static_cast<std::uint32_t>(value));
}

[[nodiscard]] inline std::uint32_t get_be32(const std::byte* in) noexcept {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8U | std::to_integer<std::uint32_t>(in[i]);
    return value;
}

[[nodiscard]] inline std::uint64_t get_be64(const std::byte* in) noexcept {
    return std::uint64_t{get_be32(in)} << 32U | get_be32(in + 4);
}

}  // namespace weir::reduce::pack
