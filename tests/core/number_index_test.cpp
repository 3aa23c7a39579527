#include "core/number_index.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace weir::core {
namespace {

TEST(NumberIndex, FindsEveryNumberOfListsOfEveryLength) {
    for (const std::uint32_t count : {0U, 1U, 8U, 9U, 512U, 65'536U}) {
        std::vector<std::uint32_t> numbers(count);
        std::iota(numbers.begin(), numbers.end(), 0x0a000001U);
        const NumberIndex index(numbers);
        EXPECT_EQ(index.empty(), count == 0);
        for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(index.find(numbers[i]), i);
        EXPECT_EQ(index.find(0x0a000000U), NumberIndex::absent);
        EXPECT_EQ(index.find(0x0a000001U + count), NumberIndex::absent);
    }
}

TEST(NumberIndex, OfEqualNumbersTheFirstCounts) {
    std::vector<std::uint32_t> numbers{7, 5, 5, 7};
    EXPECT_EQ(NumberIndex(numbers).find(5), 1U);
    numbers.resize(20, 5);
    EXPECT_EQ(NumberIndex(numbers).find(5), 1U);
    EXPECT_EQ(NumberIndex(numbers).find(7), 0U);
}

TEST(NumberIndex, BothHalvesOfAKeyCount) {
    std::vector<NumberKey> keys;
    for (std::uint64_t i = 0; i < 100; ++i) keys.push_back({i % 10, i / 10});
    const NumberIndex index(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(index.find(keys[i]), i);
    EXPECT_EQ(index.find(NumberKey{3, 10}), NumberIndex::absent);
}

}  // namespace
}  // namespace weir::core
