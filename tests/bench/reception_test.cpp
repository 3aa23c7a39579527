#include "bench/reception.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "made_packet.hpp"

namespace {

using weir::bench::PacketPlan;
using weir::bench::Reception;
using weir::test::made_packet;

const PacketPlan received_plan{.trial = 3, .bytes = 200, .packets = 2};

TEST(Reception, EachPacketEndsInOneCount) {
    Reception reception(received_plan, 100);
    EXPECT_TRUE(reception.add(made_packet(received_plan, 0), 2000));
    EXPECT_TRUE(reception.add(made_packet(received_plan, 99), 2000));
    EXPECT_FALSE(reception.add(made_packet(received_plan, 0), 2000));    // a copy
    EXPECT_FALSE(reception.add(made_packet(received_plan, 100), 2000));  // was never sent
    std::vector<std::byte> damaged = made_packet(received_plan, 5);
    damaged.back() ^= std::byte{1};
    EXPECT_FALSE(reception.add(damaged, 2000));
    EXPECT_FALSE(reception.add(std::vector<std::byte>(200), 2000));
    const auto counts = reception.counts();
    EXPECT_EQ(counts.received, 2U);
    EXPECT_EQ(counts.duplicates, 1U);
    EXPECT_EQ(counts.damaged, 2U);
    EXPECT_EQ(counts.others, 1U);
    EXPECT_EQ(counts.taken, counts.received + counts.duplicates + counts.damaged);
    EXPECT_EQ(reception.seen(), counts.taken + counts.others);
}

TEST(Reception, TheRampIsNoneOfThem) {
    Reception reception(received_plan, 100, 10);
    EXPECT_FALSE(reception.add(made_packet(received_plan, 9), 2000));
    EXPECT_FALSE(reception.counts_now());
    EXPECT_TRUE(reception.add(made_packet(received_plan, 10), 2000));
    EXPECT_TRUE(reception.counts_now());
    EXPECT_EQ(reception.counts().ramp, 1U);
    EXPECT_EQ(reception.counts().taken, 1U);
    EXPECT_EQ(reception.counts().received, 1U);
    EXPECT_EQ(reception.seen(), 2U);
}

TEST(Reception, WhatTheReceiverForgetsWasTakenAndNotReceived) {
    Reception reception(received_plan, 100);
    reception.forget();
    EXPECT_EQ(reception.counts().taken, 1U);
    EXPECT_EQ(reception.counts().received, 0U);
    EXPECT_EQ(reception.seen(), 1U);
}

TEST(Reception, LatencyIsFromTheStampToTheProgram) {
    Reception reception(received_plan, 1000);
    for (std::uint64_t i = 0; i < 1000; ++i)
        reception.add(made_packet(received_plan, i, 0), i < 990 ? 10'000 : 1'000'000);
    const auto latency = reception.latency();
    EXPECT_NEAR(latency.p50, 10e-6, 1e-6);
    EXPECT_NEAR(latency.p999, 1e-3, 1e-4);
    EXPECT_DOUBLE_EQ(latency.longest, 1e-3);
    // Two clocks that do not agree give nothing below zero.
    Reception early(received_plan, 1);
    early.add(made_packet(received_plan, 0, 5000), 0);
    EXPECT_EQ(early.latency().longest, 0);
}

}  // namespace
