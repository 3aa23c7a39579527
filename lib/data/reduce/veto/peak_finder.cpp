#include "reduce/veto/peak_finder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "reduce/pixels/pixels.hpp"
#include "reduce/veto/median.hpp"

namespace weir::reduce {

namespace {

constexpr float no_pixel = std::numeric_limits<float>::quiet_NaN();

constexpr std::size_t square(std::size_t radius) {
    return (2 * radius + 1) * (2 * radius + 1);
}

}  // namespace

PeakFinder::PeakFinder(const PeakOptions& options, std::uint32_t columns)
    : options_(options),
      threshold_(static_cast<float>(options.threshold)),
      snr_(static_cast<float>(options.snr)),
      columns_(columns),
      stride_(columns + 2 * margin),
      reach_(std::max({options.separation, options.background_radius, options.radius})),
      words_((columns + 63) / 64),
      background_needed_((square(options.background_radius) - square(options.radius)) / background_part),
      rows_(rows_kept * stride_, no_pixel),
      marks_(rows_kept * words_),
      marked_(rows_kept),
      background_(square(options.background_radius)),
      peaks_(listed_max) {}

void PeakFinder::begin_event() noexcept {
    found_ = maxima_ = 0;
}

void PeakFinder::begin_module() noexcept {
    std::ranges::fill(rows_, no_pixel);
    std::ranges::fill(marked_, 0U);
    row_ = PeakOptions::reach_max;  // as if there were rows of NaN above
    column_ = 0;
    listed_ = 0;
}

void PeakFinder::add(std::span<const float> energy) noexcept {
    while (!energy.empty()) {
        const std::size_t count = std::min(columns_ - column_, energy.size());
        float* const to = rows_.data() + (row_ % rows_kept) * stride_ + margin + column_;
        std::memcpy(to, energy.data(), count * sizeof(float));
        energy = energy.subspan(count);
        column_ += count;
        if (column_ < columns_) return;
        const std::size_t slot = row_ % rows_kept;
        marked_[slot] =
            mark_above(std::span(row(row_), columns_), threshold_, std::span(marks_).subspan(slot * words_, words_));
        end_row();
    }
}

/// A row is whole, so the one above it by as far as a peak reaches can be looked at.
void PeakFinder::end_row() noexcept {
    ++row_;
    column_ = 0;
    if (row_ > reach_ + PeakOptions::reach_max) look_at(row_ - 1 - reach_);
}

void PeakFinder::end_module() noexcept {
    for (std::size_t i = 0; i < reach_; ++i) {
        const std::size_t slot = row_ % rows_kept;
        std::fill_n(rows_.data() + slot * stride_ + margin, columns_, no_pixel);
        marked_[slot] = 0;
        end_row();
    }
}

void PeakFinder::look_at(std::size_t index) noexcept {
    const std::size_t slot = index % rows_kept;
    if (marked_[slot] == 0) return;
    for (std::size_t w = 0; w < words_; ++w) {
        for (std::uint64_t mark = marks_[slot * words_ + w]; mark != 0; mark &= mark - 1) {
            const std::size_t column = w * 64 + static_cast<std::size_t>(std::countr_zero(mark));
            if (std::isnan(row(index)[column]) || !is_local_maximum(index, column)) continue;
            if (++maxima_ > maxima_max) {
                maxima_ = maxima_max + 1;
                return;
            }
            judge(index, column);
        }
    }
}

/// No pixel of the square is higher; of equal ones the first counts. NaN compares as lower.
bool PeakFinder::is_local_maximum(std::size_t at_row, std::size_t column) const noexcept {
    const float value = row(at_row)[column];
    const float* const here = row(at_row) + column;
    if (here[-1] >= value || here[1] > value) return false;
    const auto reach = static_cast<std::ptrdiff_t>(options_.separation);
    for (std::ptrdiff_t dr = 1; dr <= reach; ++dr) {  // the nearest first: most are ruled out by a neighbour
        const float* const above = row(at_row - static_cast<std::size_t>(dr)) + column;
        const float* const below = row(at_row + static_cast<std::size_t>(dr)) + column;
        for (std::ptrdiff_t dc = -reach; dc <= reach; ++dc)
            if (above[dc] >= value || below[dc] > value) return false;
    }
    for (std::ptrdiff_t dc = 2; dc <= reach; ++dc)
        if (here[-dc] >= value || here[dc] > value) return false;
    return true;
}

/// Energies around the square of the peak: all that are numbers.
std::size_t PeakFinder::gather_background(std::size_t at_row, std::size_t column) noexcept {
    const auto outer = static_cast<std::ptrdiff_t>(options_.background_radius);
    const auto inner = static_cast<std::ptrdiff_t>(options_.radius);
    std::size_t count = 0;
    for (std::ptrdiff_t dr = -outer; dr <= outer; ++dr) {
        const float* const from = row(at_row + static_cast<std::size_t>(dr)) + column;
        const bool beside = std::abs(dr) <= inner;
        for (std::ptrdiff_t dc = -outer; dc <= outer; ++dc) {
            if (beside && dc == -inner) dc = inner + 1;
            background_[count] = from[dc];
            count += std::isfinite(from[dc]) ? 1 : 0;
        }
    }
    return count;
}

/// Pixels of the peak that are connected with its highest one, over edges or corners.
std::uint32_t PeakFinder::connected_pixels(std::size_t at_row, std::size_t column, float background,
                                           float above) const noexcept {
    // A bit for each pixel of the square, 8 bits to a row. The highest bit of a row is never set, so that neighbours
    // are found by shifting.
    constexpr std::ptrdiff_t centre = PeakOptions::radius_max;
    const auto radius = static_cast<std::ptrdiff_t>(options_.radius);
    std::uint64_t high = 0;
    for (std::ptrdiff_t dr = -radius; dr <= radius; ++dr) {
        const float* const from = row(at_row + static_cast<std::size_t>(dr)) + column;
        for (std::ptrdiff_t dc = -radius; dc <= radius; ++dc)
            if (from[dc] - background > above) high |= std::uint64_t{1} << ((dr + centre) * 8 + dc + centre);
    }
    std::uint64_t peak = std::uint64_t{1} << (centre * 8 + centre);
    for (;;) {
        const std::uint64_t wide = peak | peak << 1U | peak >> 1U;
        const std::uint64_t grown = (wide | wide << 8U | wide >> 8U) & high;
        if (grown == peak) return static_cast<std::uint32_t>(std::popcount(peak));
        peak = grown;
    }
}

void PeakFinder::judge(std::size_t at_row, std::size_t column) noexcept {
    const std::size_t count = gather_background(at_row, column);
    if (count < background_needed_) return;
    const std::span<float> around = std::span(background_).first(count);
    const float background = median(around);
    for (float& value : around) value = std::abs(value - background);
    const float above = snr_ * (mad_to_sigma * median(around));
    const float energy = row(at_row)[column];
    if (!(energy - background > above)) return;
    const std::uint32_t pixels = connected_pixels(at_row, column, background, above);
    if (pixels < options_.pixels_min) return;
    ++found_;
    if (listed_ == peaks_.size()) return;
    peaks_[listed_++] = {static_cast<std::uint32_t>(at_row - PeakOptions::reach_max),
                         static_cast<std::uint32_t>(column), pixels, energy, background};
}

}  // namespace weir::reduce
