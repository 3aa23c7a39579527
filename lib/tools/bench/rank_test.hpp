// Whether two samples differ by more than chance would make them: the Mann-Whitney U test. It supposes nothing about
// how rates are distributed, and they are not normal: a machine that pauses makes them lower, never higher.
#pragma once

#include <cstddef>
#include <span>

namespace weir::bench {

struct RankTest {
    double u = 0;        ///< pairs in which the value of `a` is the larger one; equal ones count half
    double p = 1;        ///< two-sided: how often chance alone would give ranks at least as far from the mean
    bool exact = false;  ///< counted, not approximated
};

/// Up to so many values in both samples together p is counted over all ways to deal the ranks out, ties included;
/// above, it is the normal approximation with corrections for ties and continuity.
inline constexpr std::size_t exact_values_max = 40;

/// Without values on a side nothing can be said: p is 1.
[[nodiscard]] RankTest rank_test(std::span<const double> a, std::span<const double> b);

/// The smallest p that samples of these sizes can have.
[[nodiscard]] double smallest_p(std::size_t a, std::size_t b);

/// So many values each of two equally large samples needs for a p below `alpha`. `alpha` above 0.
[[nodiscard]] std::size_t values_needed(double alpha);

}  // namespace weir::bench
