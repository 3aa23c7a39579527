// By what factor the median of one sample differs from that of another, and how sure that is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weir::bench {

struct MedianRatio {
    double ratio = 1;  ///< median of `after` / median of `before`
    double low = 1;    ///< the interval of the ratio
    double high = 1;
};

struct Bootstrap {
    double confidence = 0.95;    ///< that the interval is to have
    std::size_t samples = 4000;  ///< drawn, with replacement
    std::uint64_t seed = 1;      ///< the same one gives the same interval on every machine
};

/// None without values, or where a value of `before` is not above 0. An interval of few values is too narrow: the
/// bootstrap knows only of what it has seen. With one value on each side it has no width at all.
[[nodiscard]] std::optional<MedianRatio> median_ratio(std::span<const double> before, std::span<const double> after,
                                                      const Bootstrap& bootstrap = {});

}  // namespace weir::bench
