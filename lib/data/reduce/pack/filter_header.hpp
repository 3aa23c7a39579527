// The headers of chunks of HDF5 filters. All their numbers are big-endian.
#pragma once

#include <cstddef>

namespace weir::reduce::pack {

/// Of filter 32008: u64 decoded bytes, u32 bytes of a block. Each block follows as u32 length and data.
inline constexpr std::size_t bitshuffle_header_bytes = 12;
/// Of filter 32004: the same, and the length of the first block.
inline constexpr std::size_t lz4_header_bytes = 16;

}  // namespace weir::reduce::pack
