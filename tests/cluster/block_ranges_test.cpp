// Ranges against a set of numbers.
#include "cluster/block_ranges.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace weir::cluster::test {
namespace {

TEST(BlockRanges, AreASetOfNumbers) {
    std::mt19937_64 random(7);
    for (int run = 0; run < 200; ++run) {
        BlockRanges ranges;
        std::set<Block> numbers;
        for (int step = 0; step < 40; ++step) {
            const Block from = random() % 100;
            const Block to = from + random() % 12;
            ranges.add(from, to);
            for (Block block = from; block < to; ++block) numbers.insert(block);
            if (random() % 8 == 0) {
                const Block before = random() % 30;
                ranges.forget_before(before);
                // A range that goes on after it stays whole.
                while (!numbers.empty() && *numbers.begin() < before && ranges.end_of(*numbers.begin()) <= before)
                    numbers.erase(numbers.begin());
            }
            const std::vector<Block> list = ranges.list();
            std::set<Block> listed;
            for (std::size_t i = 0; i < list.size(); i += 2) {
                ASSERT_LT(list[i], list[i + 1]);
                if (i > 0) ASSERT_LT(list[i - 1], list[i]);  // not adjacent
                for (Block block = list[i]; block < list[i + 1]; ++block) listed.insert(block);
            }
            ASSERT_EQ(listed, numbers);
            for (Block block = 0; block < 115; ++block) {
                Block end = block;
                while (numbers.contains(end)) ++end;
                ASSERT_EQ(ranges.end_of(block), end) << block;
                Block begin = block + 1;
                while (begin < 200 && (!numbers.contains(begin) || numbers.contains(begin - 1))) ++begin;
                ASSERT_EQ(ranges.begin_after(block), begin < 200 ? begin : ~Block{0}) << block;
            }
            EXPECT_EQ(ranges.is_empty(), numbers.empty());
        }
    }
}

TEST(BlockRanges, HoldAsManyAsThereAre) {
    BlockRanges ranges;
    ranges.add({1, ~Block{0}});
    EXPECT_EQ(ranges.end_of(1), ~Block{0});
    EXPECT_EQ(ranges.end_of(0), 0U);
    EXPECT_EQ(ranges.list(), (std::vector<Block>{1, ~Block{0}}));
}

}  // namespace
}  // namespace weir::cluster::test
