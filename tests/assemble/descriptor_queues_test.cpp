// Descriptors wait in memory that was taken at construction, however slowly and unevenly they are taken out.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "assemble/descriptor_queues.hpp"

namespace weir::assemble {
namespace {

TEST(DescriptorQueues, KeepTheirMemoryWhenTheBuilderIsSlow) {
    constexpr std::uint32_t capacity = 8;
    DescriptorQueues queues(ShardOf{}, capacity);
    std::uint64_t next = 0;
    std::uint64_t expected = 0;
    const auto push = [&] { queues.push({.number = next++}); };
    push();
    const auto begin = reinterpret_cast<std::uintptr_t>(queues.of(0).data());
    for (std::uint32_t turn = 0; turn < 100; ++turn) {
        while (next - expected < capacity) {
            ASSERT_TRUE(queues.has_room(next, 0));
            push();
        }
        EXPECT_FALSE(queues.has_room(next, 0));
        std::uint32_t left = 1 + turn % capacity;
        while (left > 0) {
            const std::span<const Descriptor> pending = queues.of(0);
            ASSERT_FALSE(pending.empty());
            const auto at = reinterpret_cast<std::uintptr_t>(pending.data());
            ASSERT_TRUE(at >= begin && at < begin + capacity * sizeof(Descriptor)) << "the queue has moved";
            ASSERT_EQ(pending.front().number, expected);
            queues.consume(0, 1);
            ++expected;
            --left;
        }
    }
    EXPECT_EQ(queues.empty(), next == expected);
}

}  // namespace
}  // namespace weir::assemble
