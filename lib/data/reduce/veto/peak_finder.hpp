// Bragg peaks in energies: local maxima that stand out of a robust local background, as docs/reference/reduce/veto.md
// describes. Rows are taken as they are converted, so nothing but the last 31 is kept; on a worker lcore, with all
// memory taken at construction.
//
// The method is of the family of Cheetah's peak finders (A. Barty et al., J. Appl. Cryst. 47 (2014) 1118: threshold,
// signal to noise over a local background, number of pixels), with median and median absolute deviation for the
// background, as robust statistics have it (M. Hadian-Jazi et al., J. Appl. Cryst. 50 (2017) 1705).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::reduce {

/// Distances are in pixels and in the maximum norm: a distance of 2 reaches a square of 5 x 5.
struct PeakOptions {
    static constexpr std::uint32_t reach_max = 15;
    static constexpr std::uint32_t radius_max = 3;

    double threshold = 0;                 ///< of the highest pixel, in the unit of the energies
    double snr = 6;                       ///< pixels of a peak: above the background by more than snr * noise
    std::uint32_t radius = 2;             ///< 1..3: a peak's pixels are no further from its highest one
    std::uint32_t background_radius = 5;  ///< radius + 1..15: the background is the square of this without the peak
    std::uint32_t separation = 3;         ///< 1..15: a peak is the highest pixel as far as this
    std::uint32_t pixels_min = 2;         ///< connected ones, the highest included

    bool operator==(const PeakOptions&) const = default;
};

struct Peak {
    std::uint32_t row = 0;
    std::uint32_t column = 0;
    std::uint32_t pixels = 0;
    float energy = 0;      ///< of the highest pixel
    float background = 0;  ///< median around it
    bool operator==(const Peak&) const = default;
};

/// Noise of the background: this times the median absolute deviation, which is the standard deviation of a normal
/// distribution.
inline constexpr float mad_to_sigma = 1.4826F;
/// The background needs this part of the pixels that it has inside of a module, or there is no peak: 1 / 4, which is a
/// little less than there are in a corner.
inline constexpr std::uint32_t background_part = 4;
/// Of an event's local maxima so many are looked at; the others are no peaks. Bounds the work that a flooded frame is.
inline constexpr std::uint32_t maxima_max = 16384;

class PeakFinder {
public:
    PeakFinder(const PeakOptions& options, std::uint32_t columns);

    void begin_event() noexcept;
    /// Every module is begun and ended: peaks do not reach over its edges.
    void begin_module() noexcept;
    /// The next pixels of the module, row by row; any number.
    void add(std::span<const float> energy) noexcept;
    void end_module() noexcept;

    /// Of the event.
    [[nodiscard]] std::uint32_t found() const noexcept { return found_; }
    /// The event has more local maxima than are looked at, so found() is a lower bound.
    [[nodiscard]] bool crowded() const noexcept { return maxima_ > maxima_max; }
    /// The first few peaks of the module, with their places in it.
    [[nodiscard]] std::span<const Peak> peaks() const noexcept { return std::span(peaks_).first(listed_); }

private:
    static constexpr std::size_t rows_kept = 32;  ///< a power of two, more than 2 * reach_max
    static constexpr std::size_t margin = 16;     ///< of NaN beside each row, so that no edge is asked for
    static constexpr std::size_t listed_max = 1024;

    [[nodiscard]] const float* row(std::size_t index) const noexcept {
        return rows_.data() + (index % rows_kept) * stride_ + margin;
    }
    void end_row() noexcept;
    void look_at(std::size_t index) noexcept;
    [[nodiscard]] bool is_local_maximum(std::size_t at_row, std::size_t column) const noexcept;
    void judge(std::size_t at_row, std::size_t column) noexcept;
    [[nodiscard]] std::size_t gather_background(std::size_t at_row, std::size_t column) noexcept;
    [[nodiscard]] std::uint32_t connected_pixels(std::size_t at_row, std::size_t column, float background,
                                                 float above) const noexcept;

    PeakOptions options_;
    float threshold_;
    float snr_;
    std::size_t columns_;
    std::size_t stride_;
    std::size_t reach_;
    std::size_t words_;                 ///< of marks, for a row
    std::size_t background_needed_;     ///< pixels
    std::vector<float> rows_;           ///< the last rows of the module, with margins
    std::vector<std::uint64_t> marks_;  ///< of the same rows
    std::vector<std::uint32_t> marked_;
    std::vector<float> background_;
    std::vector<Peak> peaks_;
    std::size_t row_ = 0;     ///< rows that are whole, with reach_max of NaN before the first
    std::size_t column_ = 0;  ///< pixels of the row that is not
    std::size_t listed_ = 0;
    std::uint32_t found_ = 0;
    std::uint32_t maxima_ = 0;
};

}  // namespace weir::reduce
