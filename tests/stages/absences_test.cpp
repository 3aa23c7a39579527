#include "stages/absences.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace {

using weir::stages::Absences;

std::vector<std::uint64_t> lowest(const Absences& absences, std::uint32_t source) {
    const auto numbers = absences.lowest(source);
    return {numbers.begin(), numbers.end()};
}

TEST(Absences, StartEmpty) {
    const Absences absences(2);
    EXPECT_EQ(absences.count(1), 0U);
    EXPECT_EQ(absences.highest(1), 0U);
    EXPECT_TRUE(absences.lowest(1).empty());
}

TEST(Absences, OfEachSource) {
    Absences absences(2);
    absences.add(1, 7);
    absences.add(1, 3);
    EXPECT_EQ(absences.count(0), 0U);
    EXPECT_EQ(absences.count(1), 2U);
    EXPECT_EQ(lowest(absences, 1), (std::vector<std::uint64_t>{3, 7}));
    EXPECT_EQ(absences.highest(1), 7U);
}

TEST(Absences, KeepTheLowestInWhateverOrderTheyCome) {
    std::vector<std::uint64_t> numbers(100);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 5 + 3 * i;
    const std::vector<std::uint64_t> expected(numbers.begin(), numbers.begin() + Absences::lowest_max);
    for (unsigned seed = 0; seed < 50; ++seed) {
        std::ranges::shuffle(numbers, std::mt19937(seed));
        Absences absences(1);
        for (const std::uint64_t number : numbers) absences.add(0, number);
        EXPECT_EQ(lowest(absences, 0), expected) << "seed " << seed;
        EXPECT_EQ(absences.highest(0), 302U);
        EXPECT_EQ(absences.count(0), 100U);
    }
}

}  // namespace
