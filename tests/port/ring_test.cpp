// A ring against a queue that cannot go wrong: whatever is pushed comes out in order, across the end of its memory too.
#include "port/ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <vector>

namespace weir::port {
namespace {

/// Of an odd number of four-byte words, as elements may be.
struct Element {
    std::array<std::uint32_t, 7> words{};
};

TEST(Rings, GiveBackWhatWasPutIn) {
    constexpr std::uint32_t capacity = 100;  // not a power of two: the memory is larger than the ring
    Ring<Element> ring("model", capacity);
    std::deque<std::uint32_t> model;
    std::mt19937 random(3);
    std::vector<Element> items(150);
    std::uint32_t next = 0;
    std::uint32_t highest = 0;
    std::uint64_t times_full = 0;
    for (int step = 0; step < 20'000; ++step) {
        const std::size_t wanted = random() % items.size();
        const auto some = std::span(items).first(wanted);
        if (random() % 2 == 0) {
            for (std::size_t i = 0; i < wanted; ++i) some[i].words.fill(next + static_cast<std::uint32_t>(i));
            const std::uint32_t pushed = ring.push(some);
            ASSERT_EQ(pushed, std::min<std::size_t>(wanted, capacity - model.size()));
            for (std::uint32_t i = 0; i < pushed; ++i) model.push_back(next++);
            times_full += pushed < wanted ? 1 : 0;
            highest = std::max(highest, static_cast<std::uint32_t>(model.size()));
        } else {
            const std::uint32_t popped = ring.pop(some);
            ASSERT_EQ(popped, std::min(wanted, model.size()));
            for (std::uint32_t i = 0; i < popped; ++i) {
                for (const std::uint32_t word : some[i].words) ASSERT_EQ(word, model.front());
                model.pop_front();
            }
        }
        ASSERT_EQ(ring.count(), model.size());
        ASSERT_EQ(ring.empty(), model.empty());
    }
    EXPECT_EQ(ring.highest(), highest);
    EXPECT_EQ(ring.times_full(), times_full);
    EXPECT_GT(times_full, 100U);
}

}  // namespace
}  // namespace weir::port
