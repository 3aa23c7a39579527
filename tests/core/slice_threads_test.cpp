#include "core/slice_threads.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace weir::core {
namespace {

TEST(SliceThreads, DoEverySliceOnceInEveryRound) {
    for (const std::uint32_t count : {1U, 2U, 5U}) {
        SliceThreads threads(count);
        ASSERT_EQ(threads.count(), count);
        std::vector<std::uint64_t> of_slice(count);
        std::uint64_t rounds = 0;
        for (; rounds < 200; ++rounds) {
            // What the caller wrote before, each thread sees; what they wrote, the caller sees.
            const std::uint64_t expected = rounds;
            threads.run([&](std::uint32_t slice) { of_slice[slice] += of_slice[slice] == expected ? 1 : 1000; });
            ASSERT_EQ(std::accumulate(of_slice.begin(), of_slice.end(), std::uint64_t{0}), count * (rounds + 1));
        }
    }
}

TEST(SliceThreads, EndWithoutHavingDoneAnything) {
    const SliceThreads threads(4);
    EXPECT_EQ(threads.count(), 4U);
}

}  // namespace
}  // namespace weir::core
