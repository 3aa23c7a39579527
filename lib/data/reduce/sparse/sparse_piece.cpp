#include "reduce/sparse/sparse_piece.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace weir::reduce {

SparsePiece::SparsePiece(PixelType type, std::uint32_t columns, std::uint32_t rows_max)
    : type_(type),
      columns_(columns),
      pointers_(std::size_t{rows_max} + 1),
      // 64 more: what is marked is listed without asking whether there is a pixel.
      energies_(std::make_unique<float[]>(std::size_t{columns} * rows_max + 64)),
      column_of_(std::make_unique<std::uint16_t[]>(std::size_t{columns} * rows_max + 64)),
      // Runs do not touch.
      runs_(std::make_unique<BadRun[]>(std::size_t{columns} * rows_max / 2 + 1)),
      scratch_(std::make_unique<float[]>(columns)),
      marks_(segment_pixels / 64) {
    assert(columns >= 1 && columns <= 65535 && rows_max >= 1);
    begin();
}

void SparsePiece::begin() noexcept {
    pixels_ = kept_ = runs_count_ = rows_ended_ = 0;
    pointers_[0] = 0;
}

/// Row pointers of the rows that have ended.
void SparsePiece::end_rows() noexcept {
    const std::size_t ended = pixels_ / columns_;
    while (rows_ended_ < ended) pointers_[++rows_ended_] = static_cast<std::uint32_t>(kept_);
}

void SparsePiece::add_bad_run(std::size_t first, std::size_t pixels) noexcept {
    if (runs_count_ > 0) {
        BadRun& last = runs_[runs_count_ - 1];
        if (std::size_t{last.first} + last.pixels == first) {
            last.pixels += static_cast<std::uint32_t>(pixels);
            return;
        }
    }
    runs_[runs_count_++] = {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(pixels)};
}

void SparsePiece::append_bad(std::size_t pixels) noexcept {
    if (pixels == 0) return;
    add_bad_run(pixels_, pixels);
    pixels_ += pixels;
    end_rows();
}

/// Lists the marked pixels of a part of a row that starts at `column`.
void SparsePiece::keep_marked(std::span<const float> energy, std::size_t column, std::size_t words) noexcept {
    const std::size_t first = kept_;
    std::uint16_t* columns = column_of_.get() + first;
    for (std::size_t w = 0; w < words; ++w) {
        std::uint64_t mark = marks_[w];
        const std::size_t base = column + w * 64;
        const auto count = static_cast<std::size_t>(std::popcount(mark));
        // Four at a time, whether there are as many or not: with few pixels above, guessing how many would be wrong
        // half of the time.
        for (std::size_t k = 0; k < count; k += 4) {
            for (std::size_t j = 0; j < 4; ++j) {
                columns[k + j] = static_cast<std::uint16_t>(base + static_cast<std::size_t>(std::countr_zero(mark)));
                mark &= mark - 1;
            }
        }
        columns += count;
    }
    kept_ = static_cast<std::size_t>(columns - column_of_.get());
    const float* const row = energy.data() - column;
    bool bad = false;
    for (std::size_t k = first; k < kept_; ++k) {
        const float value = row[column_of_[k]];
        energies_[k] = value;
        bad = bad || std::isnan(value);
    }
    if (bad) drop_bad(first, pixels_ - column);
}

/// Takes bad pixels out of what was kept from `first_kept` on, and into runs.
void SparsePiece::drop_bad(std::size_t first_kept, std::size_t row_start) noexcept {
    std::size_t out = first_kept;
    for (std::size_t k = first_kept; k < kept_; ++k) {
        if (std::isnan(energies_[k])) {
            add_bad_run(row_start + column_of_[k], 1);
        } else {
            energies_[out] = energies_[k];
            column_of_[out++] = column_of_[k];
        }
    }
    kept_ = out;
}

template <class ThresholdsAt>
void SparsePiece::append_with(std::span<const float> energy, ThresholdsAt thresholds_at) noexcept {
    assert(pixels_ + energy.size() <= columns_ * (pointers_.size() - 1));
    for (std::size_t at = 0; at < energy.size();) {
        const std::size_t column = pixels_ % columns_;
        const std::size_t count = std::min({columns_ - column, energy.size() - at, segment_pixels});
        const auto part = energy.subspan(at, count);
        const std::size_t words = (count + 63) / 64;
        if (mark_above(part, thresholds_at(at, count), std::span(marks_).first(words)) > 0)
            keep_marked(part, column, words);
        pixels_ += count;
        at += count;
        end_rows();
    }
}

void SparsePiece::append(std::span<const float> energy, float threshold) noexcept {
    append_with(energy, [threshold](std::size_t, std::size_t) { return threshold; });
}

void SparsePiece::append(std::span<const float> energy, std::span<const float> thresholds) noexcept {
    append_with(energy, [thresholds](std::size_t at, std::size_t count) { return thresholds.subspan(at, count); });
}

std::size_t SparsePiece::sparse_bytes() const noexcept {
    return csr_bytes(type_, rows_ended_, kept_, runs_count_);
}

void SparsePiece::write_sparse(std::byte* out) noexcept {
    assert(ends_with_row());
    CsrHeader header;
    header.type = type_;
    header.columns = static_cast<std::uint16_t>(columns_);
    header.rows = static_cast<std::uint32_t>(rows_ended_);
    header.count = static_cast<std::uint32_t>(kept_);
    header.bad_runs = static_cast<std::uint32_t>(runs_count_);
    const auto put = [&out](const void* from, std::size_t bytes) {
        std::memcpy(out, from, bytes);
        out += bytes;
    };
    put(&header, sizeof header);
    put(pointers_.data(), 4 * (rows_ended_ + 1));
    put(runs_.get(), sizeof(BadRun) * runs_count_);
    write_pixels(type_, {energies_.get(), kept_}, out);
    out += kept_ * bytes_of(type_);
    put(column_of_.get(), 2 * kept_);
}

void SparsePiece::write_dense(std::byte* out) noexcept {
    std::size_t k = 0;
    std::size_t run = 0;
    const std::size_t size = bytes_of(type_);
    for (std::size_t start = 0; start < pixels_; start += columns_) {
        const std::size_t length = std::min(columns_, pixels_ - start);
        const std::size_t row = start / columns_;
        const std::size_t end = row < rows_ended_ ? pointers_[row + 1] : kept_;
        std::fill_n(scratch_.get(), length, 0.F);
        for (; k < end; ++k) scratch_[column_of_[k]] = energies_[k];
        for (; run < runs_count_ && runs_[run].first < start + length; ++run) {
            const std::size_t first = std::max<std::size_t>(runs_[run].first, start) - start;
            const std::size_t run_end = std::size_t{runs_[run].first} + runs_[run].pixels;
            std::fill(scratch_.get() + first, scratch_.get() + std::min(run_end - start, length),
                      std::numeric_limits<float>::quiet_NaN());
            if (run_end > start + length) break;  // it goes on in the next row
        }
        write_pixels(type_, {scratch_.get(), length}, out + start * size);
    }
}

}  // namespace weir::reduce
