#include "bench/packet_buffers.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

namespace {

using weir::bench::PacketBuffers;

void give_back(std::byte* buffer) {
    void* one = buffer;
    PacketBuffers::release(&one, 1);
}

TEST(PacketBuffers, WithOneAddressTheSameBufferIsUsedAgain) {
    PacketBuffers buffers(1000, 4, 1);
    std::byte* const first = buffers.take();
    give_back(first);
    EXPECT_EQ(buffers.take(), first);
}

TEST(PacketBuffers, WithMoreAllAreUsedInTurn) {
    PacketBuffers buffers(1000, 4, 100);
    std::set<std::byte*> places;
    for (int i = 0; i < 100; ++i) {
        std::byte* const buffer = buffers.take();
        places.insert(buffer);
        give_back(buffer);
    }
    EXPECT_EQ(places.size(), 100U);
    EXPECT_TRUE(places.contains(buffers.take()));
}

TEST(PacketBuffers, NoneIsHandedOutTwice) {
    for (const std::uint32_t addresses : {1U, 8U}) {
        PacketBuffers buffers(100, 8, addresses);
        std::set<std::byte*> held;
        for (int i = 0; i < 8; ++i) {
            std::byte* const buffer = buffers.take();
            ASSERT_NE(buffer, nullptr);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer) % 64, 0U);
            std::memset(buffer, 0xff, 100);
            EXPECT_TRUE(held.insert(buffer).second);
        }
        EXPECT_EQ(buffers.take(), nullptr);
        for (std::byte* buffer : held) {  // all of it is in the memory that a device is told of
            EXPECT_GE(buffer, buffers.memory().data());
            EXPECT_LE(buffer + 100, buffers.memory().data() + buffers.memory().size());
        }
        for (std::byte* buffer : held) give_back(buffer);
        EXPECT_EQ(buffers.available(), 8U);
    }
}

}  // namespace
