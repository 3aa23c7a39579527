// Whether a second benchmark is better or worse than a first one, and whether that is more than noise.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/median_ratio.hpp"
#include "bench/point_group.hpp"
#include "bench/results.hpp"
#include "bench/spread.hpp"
#include "bench/table.hpp"

namespace weir::bench {

enum class Verdict : std::uint8_t {
    better,
    worse,
    same,           ///< no change beyond the noise
    unsure,         ///< too few repeats for any p below alpha
    only_before,    ///< measured in the first only
    only_after,     ///< measured in the second only
    not_available,  ///< could not be done in one of them, or in both
    no_result,      ///< no rate was found in one of them, or in both
};

[[nodiscard]] std::string_view verdict_text(Verdict verdict);

/// When a difference counts.
struct ComparisonRules {
    double alpha = 0.05;  ///< chance may explain less often than this what was seen
    double width = 0.02;  ///< as a fraction: a smaller change of the median is none
    Bootstrap bootstrap;
    bool allow_missing = false;  ///< what is missing after is not worse
};

/// One measurement before and after. Rates in Gb/s, each of one repeat.
struct ComparedPoint {
    PointKey key;
    std::vector<double> before;
    std::vector<double> after;
    std::optional<MedianRatio> change;  ///< after / before
    std::optional<double> p;            ///< of the rank test
    Verdict verdict = Verdict::unsure;
    std::string why;       ///< what else is to be said about the verdict; may be empty
    bool missing = false;  ///< it was there before, and after it is not, or cannot be done, or has no rate
};

struct Comparison {
    std::string before;  ///< titles
    std::string after;
    ComparisonRules rules;
    std::vector<ComparedPoint> points;
    std::vector<std::string> notes;  ///< that the machines differ, so that a change is not the software's alone
};

[[nodiscard]] Comparison compare(const Results& before, const Results& after, const ComparisonRules& rules = {});

/// For the exit status: whether a point is worse, or missing where the rules do not allow that.
[[nodiscard]] bool changed_for_the_worse(const Comparison& comparison);

/// With a line that counts the verdicts.
[[nodiscard]] std::string comparison_text(const Comparison& comparison, std::size_t width = terminal_width);
[[nodiscard]] nlohmann::json to_json(const Comparison& comparison);

}  // namespace weir::bench
