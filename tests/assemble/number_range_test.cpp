#include "assemble/number_range.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace weir::assemble {
namespace {

std::uint64_t span_of(const std::vector<std::uint64_t>& numbers, std::uint64_t passes = 3) {
    NumberRange range;
    for (const std::uint64_t number : numbers) range.add(number);
    return range.span(passes);
}

TEST(NumberRange, ReachesFromTheLowestToTheHighest) {
    EXPECT_EQ(span_of({}), 1U);
    EXPECT_EQ(span_of({7}), 1U);
    EXPECT_EQ(span_of({7, 7, 7}), 1U);
    EXPECT_EQ(span_of({7, 9}), 3U);
    EXPECT_EQ(span_of({1000000, 1}), 1000000U) << "two alone are as they are";
    EXPECT_EQ(span_of({20, 3, 11, 19, 4}), 18U);
    EXPECT_EQ(span_of({5, 1000005, 2000005, 3000005}), 3000001U) << "wide gaps that are even";
}

TEST(NumberRange, CountsThroughTheEndOf64Bits) {
    const std::uint64_t end = ~std::uint64_t{0};
    EXPECT_EQ(span_of({end - 1, end, 0, 1, 2}), 5U);
    EXPECT_EQ(span_of({1, 0, end, 2, 3}), 5U);
}

TEST(NumberRange, LeavesWildNumbersOut) {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t n = 1; n <= 50; ++n) numbers.push_back(n);
    for (unsigned bit = 0; bit < 64; ++bit) {
        std::vector<std::uint64_t> flipped = numbers;
        flipped.insert(flipped.begin() + bit % 50, 20 ^ std::uint64_t{1} << bit);
        EXPECT_GE(span_of(flipped), 50U) << bit;
        EXPECT_LE(span_of(flipped), 50U * NumberRange::reach) << bit;
        // Three good ones are enough, also if the wild one comes first.
        EXPECT_LE(span_of({4, 5, 6, 5 ^ std::uint64_t{1} << bit}), 70U + 3) << bit;
        EXPECT_LE(span_of({5 ^ std::uint64_t{1} << bit, 4, 5, 6}), 70U + 3) << bit;
    }
}

TEST(NumberRange, NeverComesNearTheEndOf64Bits) {
    const std::uint64_t far = std::uint64_t{1} << 63U;
    for (const std::uint64_t passes : {2ULL, 1000ULL, 1000000ULL}) {
        const std::uint64_t span = span_of({0, far, far / 2}, passes);
        EXPECT_LE(span, (std::uint64_t{1} << 63U) / passes);
        EXPECT_GE(span, 1U);
    }
}

TEST(NumberRange, IsExactForMoreNumbersThanItKeeps) {
    std::mt19937_64 random(11);
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t n = 0; n < 100000; ++n) numbers.push_back(500 + 3 * n);
    // Disorder, as between sources.
    for (std::size_t i = 0; i + 40 < numbers.size(); ++i) std::swap(numbers[i], numbers[i + random() % 40]);
    EXPECT_EQ(span_of(numbers), 3 * 99999 + 1U);
    for (unsigned n = 0; n < 50; ++n) numbers[random() % 90000 + 100] = random();
    EXPECT_EQ(span_of(numbers), 3 * 99999 + 1U) << "fifty wild ones are known for what they are";
    std::vector<std::uint64_t> half(numbers.begin(), numbers.begin() + 50000);
    NumberRange one;
    NumberRange other;
    for (const std::uint64_t number : half) one.add(number);
    for (std::size_t i = 50000; i < numbers.size(); ++i) other.add(numbers[i]);
    NumberRange both;
    both.merge(other);
    both.merge(one);
    EXPECT_EQ(both.span(2), 3 * 99999 + 1U);
}

}  // namespace
}  // namespace weir::assemble
