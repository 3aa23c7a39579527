// Which rows of many files make the rows of one table, as few selections: HDF5 keeps a mapping for each, and the cost
// of opening a virtual dataset grows with the square of the stretches in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::store::hdf5 {

/// A row of a file.
struct RowPlace {
    std::uint32_t file = 0;
    std::uint64_t row = 0;
};

/// Rows that follow each other both here, in the table, and there, in the file.
struct RowStretch {
    std::uint64_t here = 0;
    std::uint64_t there = 0;
    std::uint64_t rows = 0;
};

/// Rows of one file, ascending on both sides: HDF5 pairs the elements of two selections in that order.
struct RowMapping {
    std::uint32_t file = 0;
    std::vector<RowStretch> stretches;
};

/// Of a mapping: 100 open fastest (docs/reference/HDF5.md has the measurement).
inline constexpr std::size_t stretches_max_default = 100;

/// `places`: where each row of the table is.
[[nodiscard]] std::vector<RowMapping> map_rows(std::span<const RowPlace> places,
                                               std::size_t stretches_max = stretches_max_default);

}  // namespace weir::store::hdf5
