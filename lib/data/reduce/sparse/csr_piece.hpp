// A sparse piece of pixels: compressed sparse rows (CSR), as docs/reference/reduce/sparse.md specifies them. Arrays
// follow each other without gaps, little-endian, each aligned for its type when the piece starts at a multiple of 4:
//
//   CsrHeader                          32 bytes
//   row pointers   u32[rows + 1]       pixel k of row r is at row pointer[r] <= k < row pointer[r + 1]
//   bad runs       {u32, u32}[bad_runs]  first pixel (row * columns + column) and how many: no energy, or not received
//   values         type[count]         in order of rows, then columns
//   columns        u16[count]
//
// A pixel that is neither listed nor in a bad run is 0; one in a bad run has the type's marker (pixel_type.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "reduce/pixels/write_pixels.hpp"

namespace weir::reduce {

inline constexpr std::uint32_t csr_magic = 0x31525343;  ///< the bytes "CSR1"

struct CsrHeader {
    std::uint32_t magic = csr_magic;
    PixelType type = PixelType::f32;
    std::uint8_t reserved = 0;
    std::uint16_t columns = 0;   ///< of a row, at least 1
    std::uint32_t rows = 0;      ///< of the piece, which begins at column 0
    std::uint32_t count = 0;     ///< pixels kept
    std::uint32_t bad_runs = 0;  ///< runs of pixels without an energy
    std::uint32_t reserved_too[3]{};
};
static_assert(sizeof(CsrHeader) == 32);

struct BadRun {
    std::uint32_t first = 0;
    std::uint32_t pixels = 0;
};
static_assert(sizeof(BadRun) == 8);

/// The length of a piece.
[[nodiscard]] constexpr std::uint64_t csr_bytes(PixelType type, std::uint64_t rows, std::uint64_t count,
                                                std::uint64_t bad_runs) noexcept {
    return sizeof(CsrHeader) + 4 * (rows + 1) + sizeof(BadRun) * bad_runs + count * (bytes_of(type) + 2);
}

/// The dense pixels of `piece` to `dense`, which is exactly as long as they are. Any bytes may be given, at any
/// address: returns what is wrong with them, or nothing. Only one piece describes given pixels and kept places, and
/// others (columns out of order, runs that touch, bytes left over) are refused. Does not allocate.
[[nodiscard]] std::string_view expand_csr(std::span<const std::byte> piece, std::span<std::byte> dense) noexcept;

}  // namespace weir::reduce
