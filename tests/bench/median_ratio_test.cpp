#include "bench/median_ratio.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "bench/spread.hpp"

namespace {

using weir::bench::median_ratio;
using Values = std::vector<double>;

TEST(Spread, MedianAndEnds) {
    const auto spread = weir::bench::spread_of(Values{4, 1, 3, 2});
    ASSERT_TRUE(spread);
    EXPECT_EQ(spread->median, 2.5);
    EXPECT_EQ(spread->min, 1);
    EXPECT_EQ(spread->max, 4);
    EXPECT_FALSE(weir::bench::spread_of(Values{}));
}

TEST(MedianRatio, LiesInItsIntervalWhichLiesBetweenTheExtremes) {
    const Values before{9.8, 10.1, 10, 9.9, 10.2};
    const Values after{11, 10.9, 11.2, 11.1, 10.8};
    const auto ratio = median_ratio(before, after);
    ASSERT_TRUE(ratio);
    EXPECT_DOUBLE_EQ(ratio->ratio, 1.1);
    EXPECT_LT(ratio->low, ratio->ratio);
    EXPECT_GT(ratio->high, ratio->ratio);
    EXPECT_GE(ratio->low, 10.8 / 10.2);
    EXPECT_LE(ratio->high, 11.2 / 9.8);
}

TEST(MedianRatio, TheSameSeedGivesTheSameIntervalAndMoreConfidenceAWiderOne) {
    const Values before{1, 2, 3, 4, 5, 6};
    const Values after{2, 3, 4, 5, 6, 7};
    const auto once = median_ratio(before, after);
    const auto again = median_ratio(before, after);
    const auto sure = median_ratio(before, after, {.confidence = 0.999});
    ASSERT_TRUE(once && again && sure);
    EXPECT_EQ(once->low, again->low);
    EXPECT_EQ(once->high, again->high);
    EXPECT_LT(sure->low, once->low);
    EXPECT_GT(sure->high, once->high);
}

TEST(MedianRatio, OneValueEachHasNoWidthAndNothingHasNoRatio) {
    const auto one = median_ratio(Values{2}, Values{3});
    ASSERT_TRUE(one);
    EXPECT_EQ(one->low, 1.5);
    EXPECT_EQ(one->high, 1.5);
    EXPECT_FALSE(median_ratio(Values{}, Values{3}));
    EXPECT_FALSE(median_ratio(Values{2}, Values{}));
    EXPECT_FALSE(median_ratio(Values{0, 1}, Values{3}));
}

}  // namespace
