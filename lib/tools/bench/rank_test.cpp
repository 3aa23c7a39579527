#include "bench/rank_test.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace weir::bench {
namespace {

/// The ranks of all values, those of `a` first. Doubled, so that the ranks of ties are whole numbers too.
struct Ranks {
    std::vector<std::uint32_t> doubled;
    double ties = 0;  ///< sum of t^3 - t over groups of t equal values
};

Ranks ranks_of(std::span<const double> a, std::span<const double> b) {
    std::vector<double> values(a.begin(), a.end());
    values.insert(values.end(), b.begin(), b.end());
    std::vector<double> sorted = values;
    std::ranges::sort(sorted);
    Ranks ranks;
    for (const double value : values) {
        const auto [begin, end] = std::equal_range(sorted.begin(), sorted.end(), value);
        const auto first = static_cast<std::uint32_t>(begin - sorted.begin());
        const auto last = static_cast<std::uint32_t>(end - sorted.begin());
        ranks.doubled.push_back(first + 1 + last);
        const double count = last - first;
        ranks.ties += count * count - 1;  // each of t members adds this: t^3 - t in all
    }
    return ranks;
}

/// ways[s]: in how many ways `chosen` of the ranks have the sum s. Up to 40 ranks every count fits a double exactly.
std::vector<double> sums_of(const std::vector<std::uint32_t>& ranks, std::size_t chosen) {
    std::size_t whole = 0;
    for (const std::uint32_t rank : ranks) whole += rank;
    std::vector<std::vector<double>> ways(chosen + 1, std::vector<double>(whole + 1));
    ways[0][0] = 1;
    for (const std::uint32_t rank : ranks)
        for (std::size_t n = chosen; n > 0; --n)
            for (std::size_t sum = whole; sum >= rank; --sum) ways[n][sum] += ways[n - 1][sum - rank];
    return ways[chosen];
}

double exact_p(const std::vector<std::uint32_t>& ranks, std::size_t chosen, std::uint32_t observed) {
    const auto mean = static_cast<std::int64_t>(chosen * (ranks.size() + 1));
    const auto distance = [mean](std::size_t sum) { return std::abs(static_cast<std::int64_t>(sum) - mean); };
    const std::vector<double> ways = sums_of(ranks, chosen);
    double all = 0;
    double as_far = 0;
    for (std::size_t sum = 0; sum < ways.size(); ++sum) {
        all += ways[sum];
        if (distance(sum) >= distance(observed)) as_far += ways[sum];
    }
    return as_far / all;
}

double normal_p(double u, double a, double b, double ties) {
    const double n = a + b;
    const double variance = a * b / 12 * (n + 1 - ties / (n * (n - 1)));
    if (variance <= 0) return 1;  // all are equal
    const double distance = std::max(0.0, std::abs(u - a * b / 2) - 0.5);
    return std::erfc(distance / std::sqrt(2 * variance));
}

}  // namespace

RankTest rank_test(std::span<const double> a, std::span<const double> b) {
    if (a.empty() || b.empty()) return {};
    const Ranks ranks = ranks_of(a, b);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += ranks.doubled[i];
    const auto n = static_cast<double>(a.size());
    RankTest test{.u = sum / 2.0 - n * (n + 1) / 2, .p = 1, .exact = a.size() + b.size() <= exact_values_max};
    test.p = test.exact ? exact_p(ranks.doubled, a.size(), sum)
                        : normal_p(test.u, n, static_cast<double>(b.size()), ranks.ties);
    return test;
}

double smallest_p(std::size_t a, std::size_t b) {
    double ways = 1;  // to choose which values are those of a
    for (std::size_t i = 1; i <= a; ++i) ways *= static_cast<double>(b + i) / static_cast<double>(i);
    return std::min(1.0, 2 / ways);
}

std::size_t values_needed(double alpha) {
    std::size_t values = 1;
    while (smallest_p(values, values) >= alpha) ++values;
    return values;
}

}  // namespace weir::bench
