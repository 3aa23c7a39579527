#include "bench/rank_test.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using weir::bench::rank_test;
using weir::bench::RankTest;
using Values = std::vector<double>;

double u_of(const Values& a, const Values& b) {
    double u = 0;
    for (const double x : a)
        for (const double y : b) u += x > y ? 1 : (x == y ? 0.5 : 0);
    return u;
}

/// By trying every way to split all values.
double p_by_hand(const Values& a, const Values& b) {
    Values all = a;
    all.insert(all.end(), b.begin(), b.end());
    const double mean = static_cast<double>(a.size() * b.size()) / 2;
    const double observed = std::abs(u_of(a, b) - mean);
    std::vector<int> in_b(all.size());
    std::fill(in_b.begin() + static_cast<std::ptrdiff_t>(a.size()), in_b.end(), 1);
    double ways = 0;
    double as_far = 0;
    do {
        Values left;
        Values right;
        for (std::size_t i = 0; i < all.size(); ++i) (in_b[i] != 0 ? right : left).push_back(all[i]);
        ++ways;
        if (std::abs(u_of(left, right) - mean) >= observed) ++as_far;
    } while (std::next_permutation(in_b.begin(), in_b.end()));
    return as_far / ways;
}

TEST(RankTest, KnownValues) {
    EXPECT_NEAR(rank_test(Values{1, 2, 3}, Values{4, 5, 6}).p, 0.1, 1e-12);
    EXPECT_NEAR(rank_test(Values{1, 2, 3, 4}, Values{5, 6, 7, 8}).p, 2.0 / 70, 1e-12);
    EXPECT_NEAR(rank_test(Values{5, 6, 7, 8, 9}, Values{0, 1, 2, 3, 4}).p, 2.0 / 252, 1e-12);
    // Aesop's tortoises and hares: T H H H H H T T T T T H, by the places they came in.
    const RankTest race = rank_test(Values{1, 7, 8, 9, 10, 11}, Values{2, 3, 4, 5, 6, 12});
    EXPECT_EQ(race.u, 25);
    EXPECT_NEAR(race.p, 0.3095, 5e-5);
    EXPECT_TRUE(race.exact);
}

TEST(RankTest, ExactIsWhatTryingEveryWayGivesWithAndWithoutTies) {
    std::mt19937 random(7);
    for (int round = 0; round < 60; ++round) {
        Values a(1 + random() % 5);
        Values b(1 + random() % 5);
        const std::uint32_t different = round % 2 == 0 ? 4 : 1000;
        for (double& x : a) x = static_cast<double>(random() % different);
        for (double& x : b) x = static_cast<double>(random() % different);
        const RankTest test = rank_test(a, b);
        EXPECT_EQ(test.u, u_of(a, b)) << round;
        EXPECT_NEAR(test.p, p_by_hand(a, b), 1e-12) << round;
    }
}

TEST(RankTest, SidesAndScaleDoNotMatter) {
    const Values a{3.1, 4.1, 5.9, 2.6, 5.3};
    const Values b{5.8, 9.7, 9.3, 2.3};
    Values scaled_a = a;
    Values scaled_b = b;
    for (double& x : scaled_a) x = std::log(x);
    for (double& x : scaled_b) x = std::log(x);
    EXPECT_NEAR(rank_test(a, b).p, rank_test(b, a).p, 1e-12);
    EXPECT_NEAR(rank_test(a, b).p, rank_test(scaled_a, scaled_b).p, 1e-12);
    EXPECT_EQ(rank_test(a, b).u + rank_test(b, a).u, 20);
}

TEST(RankTest, TheApproximationIsNearTheCount) {
    Values a;
    Values b;
    for (int i = 0; i < 20; ++i) a.push_back(i % 13), b.push_back((i + 4) % 17);
    const RankTest exact = rank_test(a, b);
    ASSERT_TRUE(exact.exact);
    a.push_back(6);
    b.push_back(7);
    const RankTest normal = rank_test(a, b);
    EXPECT_FALSE(normal.exact);
    EXPECT_NEAR(normal.p, exact.p, 0.03);
}

TEST(RankTest, WhatIsAllTheSameDoesNotDiffer) {
    EXPECT_EQ(rank_test(Values(5, 1.0), Values(5, 1.0)).p, 1);
    EXPECT_EQ(rank_test(Values(50, 1.0), Values(50, 1.0)).p, 1);
    EXPECT_EQ(rank_test(Values{}, Values{1, 2}).p, 1);
}

TEST(RankTest, FourAndFourIsTheLeastFor5Percent) {
    EXPECT_EQ(weir::bench::values_needed(0.05), 4U);
    EXPECT_EQ(weir::bench::values_needed(0.01), 5U);
    EXPECT_NEAR(weir::bench::smallest_p(3, 5), 2.0 / 56, 1e-12);
    EXPECT_EQ(weir::bench::smallest_p(0, 5), 1);
}

}  // namespace
