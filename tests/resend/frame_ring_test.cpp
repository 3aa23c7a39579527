// Frames come out of the ring as they went in, over its end many times, and it never holds more than it has room for.
#include "resend/frame_ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace weir::resend {
namespace {

bool put(FrameRing& ring, core::TimeNs time_ns, std::uint32_t bytes) {
    std::byte* const place = ring.reserve({time_ns, bytes, 7});
    if (place == nullptr) return false;
    std::fill_n(place, bytes, static_cast<std::byte>(time_ns));
    ring.commit();
    return true;
}

TEST(FrameRing, WhatIsReservedIsNotThereYet) {
    FrameRing ring(1024);
    EXPECT_EQ(ring.front(), nullptr);
    ASSERT_NE(ring.reserve({5, 100, 9}), nullptr);
    EXPECT_EQ(ring.front(), nullptr);
    ring.commit();
    ASSERT_NE(ring.front(), nullptr);
    EXPECT_EQ(ring.front()->time_ns, 5);
    EXPECT_EQ(ring.front()->port, 9);
    EXPECT_EQ(ring.front_bytes().size(), 100U);
}

TEST(FrameRing, FullIsFullUntilSomethingIsTaken) {
    FrameRing ring(1024);
    EXPECT_FALSE(ring.is_full_or_ended());
    int frames = 0;
    while (put(ring, frames, 112)) ++frames;  // 128 with its head
    EXPECT_EQ(frames, 8);
    EXPECT_TRUE(ring.is_full_or_ended());
    ASSERT_NE(ring.front(), nullptr);
    ring.pop();
    EXPECT_TRUE(put(ring, 8, 112));
    EXPECT_FALSE(put(ring, 9, 1));
}

TEST(FrameRing, ItHasEndedWhenAllIsTaken) {
    FrameRing ring(1024);
    put(ring, 1, 0);
    ring.end();
    EXPECT_FALSE(ring.ended());
    EXPECT_TRUE(ring.front_bytes().empty());
    ring.pop();
    EXPECT_TRUE(ring.ended());
}

TEST(FrameRing, TwoThreadsSeeTheSameFrames) {
    constexpr int frames = 20'000;
    FrameRing ring(std::size_t{1} << 14);
    std::thread writer([&ring] {
        std::mt19937 random(3);
        for (int i = 0; i < frames; ++i) {
            const auto bytes = static_cast<std::uint32_t>(random() % 3000);
            while (!put(ring, i, bytes)) std::this_thread::yield();
        }
        ring.end();
    });
    std::mt19937 random(3);
    int seen = 0;
    bool good = true;
    while (!ring.ended()) {
        const FrameRing::Frame* const frame = ring.front();
        if (frame == nullptr) {
            std::this_thread::yield();
            continue;
        }
        const std::span<const std::byte> bytes = ring.front_bytes();
        good = good && frame->time_ns == seen && bytes.size() == random() % 3000 &&
               std::ranges::all_of(bytes, [&](std::byte byte) { return byte == static_cast<std::byte>(seen); });
        ++seen;
        ring.pop();
    }
    writer.join();
    EXPECT_EQ(seen, frames);
    EXPECT_TRUE(good);
}

}  // namespace
}  // namespace weir::resend
