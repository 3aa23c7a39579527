// Builds a sparse piece (csr_piece.hpp) from energies as they are converted, chunk by chunk: no dense piece is made. On
// a worker lcore; all memory is taken at construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reduce/pixels/write_pixels.hpp"
#include "reduce/sparse/csr_piece.hpp"

namespace weir::reduce {

class SparsePiece {
public:
    /// For pieces of up to `rows_max` rows of `columns` pixels (1..65535), written as `type`.
    SparsePiece(PixelType type, std::uint32_t columns, std::uint32_t rows_max);

    /// Begins a new piece.
    void begin() noexcept;
    /// The next pixels; any number, no more than the piece has room for. Kept is what is above the threshold, before
    /// it is rounded to `type`; so saturated pixels (+inf) always are. NaN becomes part of a bad run.
    void append(std::span<const float> energy, float threshold) noexcept;
    /// The same with a threshold for each pixel (noise_thresholds.hpp).
    void append(std::span<const float> energy, std::span<const float> thresholds) noexcept;
    /// The next pixels have no energy: they were not received.
    void append_bad(std::size_t pixels) noexcept;

    [[nodiscard]] std::size_t pixels() const noexcept { return pixels_; }
    [[nodiscard]] std::size_t kept() const noexcept { return kept_; }
    /// Bytes of the piece as CSR and expanded. A piece may be written as CSR when it ends with a row.
    [[nodiscard]] std::size_t sparse_bytes() const noexcept;
    [[nodiscard]] std::size_t dense_bytes() const noexcept { return pixels_ * bytes_of(type_); }
    [[nodiscard]] bool ends_with_row() const noexcept { return pixels_ % columns_ == 0; }

    /// Writes sparse_bytes() to `out`, which is aligned to 4 bytes; the piece must end with a row (asserted).
    void write_sparse(std::byte* out) noexcept;
    /// Writes dense_bytes() to `out`: what the sparse piece expands to.
    void write_dense(std::byte* out) noexcept;

private:
    template <class ThresholdsAt>
    void append_with(std::span<const float> energy, ThresholdsAt thresholds_at) noexcept;
    void keep_marked(std::span<const float> energy, std::size_t column, std::size_t words) noexcept;
    void drop_bad(std::size_t first_kept, std::size_t row_start) noexcept;
    void add_bad_run(std::size_t first, std::size_t pixels) noexcept;
    void end_rows() noexcept;

    /// Pixels that are marked at a time: their energies and marks stay in the first-level cache.
    static constexpr std::size_t segment_pixels = 1024;

    PixelType type_;
    std::size_t columns_;
    std::size_t pixels_ = 0;
    std::size_t kept_ = 0;
    std::size_t runs_count_ = 0;
    std::size_t rows_ended_ = 0;
    std::vector<std::uint32_t> pointers_;
    std::unique_ptr<float[]> energies_;           ///< of what is kept
    std::unique_ptr<std::uint16_t[]> column_of_;  ///< of what is kept
    std::unique_ptr<BadRun[]> runs_;
    std::unique_ptr<float[]> scratch_;  ///< a row's energies on their way to dense pixels
    std::vector<std::uint64_t> marks_;
};

}  // namespace weir::reduce
