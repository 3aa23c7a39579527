#include "core/latency_histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace {

using weir::core::Latencies;
using weir::core::LatencyHistogram;

TEST(LatencyHistogram, EveryTimeIsInTheBucketThatEndsBehindIt) {
    for (std::uint64_t ns = 0; ns < 5000; ++ns) {
        const std::size_t bucket = LatencyHistogram::bucket_of(ns);
        EXPECT_GE(LatencyHistogram::end_of(bucket), ns);
        if (bucket > 0) {
            EXPECT_LT(LatencyHistogram::end_of(bucket - 1), ns);
        }
    }
    std::mt19937_64 random(1);
    for (int i = 0; i < 10000; ++i) {
        const std::uint64_t ns = random() >> (24 + random() % 40);
        const std::size_t bucket = LatencyHistogram::bucket_of(ns);
        ASSERT_LT(bucket, LatencyHistogram::buckets);
        EXPECT_GE(LatencyHistogram::end_of(bucket), ns);
        EXPECT_LE(LatencyHistogram::end_of(bucket), ns + ns / 16);
    }
    EXPECT_EQ(LatencyHistogram::bucket_of(~std::uint64_t{0}), LatencyHistogram::buckets - 1);
}

TEST(Latencies, QuantilesAreThoseOfTheSortedTimesToASixteenth) {
    std::mt19937_64 random(2);
    std::lognormal_distribution<double> times(9, 2);
    const auto histograms = std::make_unique<std::array<LatencyHistogram, 3>>();
    std::vector<std::uint64_t> all;
    for (int i = 0; i < 30000; ++i) {
        all.push_back(static_cast<std::uint64_t>(times(random)));
        (*histograms)[random() % 3].add(all.back());
    }
    std::ranges::sort(all);
    Latencies sum;
    EXPECT_EQ(sum.quantile_ns(0.5), 0U);
    for (const LatencyHistogram& histogram : *histograms) sum.add(histogram);
    EXPECT_EQ(sum.count(), all.size());
    EXPECT_EQ(sum.longest_ns(), all.back());
    for (const double fraction : {0.01, 0.5, 0.99, 0.999}) {
        const std::uint64_t exact = all[static_cast<std::size_t>(fraction * static_cast<double>(all.size()))];
        EXPECT_GE(sum.quantile_ns(fraction) + sum.quantile_ns(fraction) / 8, exact);
        EXPECT_LE(sum.quantile_ns(fraction), exact + exact / 8 + 1);
    }
    EXPECT_EQ(sum.quantile_ns(1), all.back());
}

}  // namespace
