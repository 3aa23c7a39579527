#include "bench/schedule.hpp"

#include <gtest/gtest.h>

namespace {

using weir::bench::Load;
using weir::bench::PacketPlan;
using weir::bench::Schedule;
using weir::core::TimeNs;

const PacketPlan scheduled_plan{.trial = 1, .bytes = 1000, .packets = 4};
constexpr TimeNs begin_ns = 5'000'000'000;

TEST(Schedule, WithoutARampPacketsAreEvenlyApart) {
    const Load load{.packets_per_s = 1000, .seconds = 1};
    EXPECT_EQ(load.ramp_packets(scheduled_plan), 0U);
    const Schedule schedule(load, 0, begin_ns);
    for (std::uint64_t packet : {0U, 1U, 500U}) {
        EXPECT_EQ(schedule.due(packet), begin_ns + static_cast<TimeNs>(packet) * 1'000'000);
        EXPECT_EQ(schedule.due_by(schedule.due(packet) + 1000), packet + 1);
    }
}

TEST(Schedule, ARampRisesEvenlyToTheRate) {
    const Load load{.packets_per_s = 100'000, .seconds = 1, .ramp_s = 0.05};
    const std::uint64_t ramp = load.ramp_packets(scheduled_plan);
    ASSERT_EQ(ramp, 2500U);  // half of what the rate would send
    const Schedule schedule(load, ramp, begin_ns);
    EXPECT_EQ(schedule.due(0), begin_ns);
    EXPECT_NEAR(static_cast<double>(schedule.due(ramp) - begin_ns), 50e6, 10);
    // A quarter of the packets in half of the time.
    EXPECT_NEAR(static_cast<double>(schedule.due(ramp / 4) - begin_ns), 25e6, 10);
    // At its end the distance is that of the load.
    EXPECT_NEAR(static_cast<double>(schedule.due(ramp) - schedule.due(ramp - 1)), 10e3, 100);
    EXPECT_EQ(schedule.due(ramp + 1) - schedule.due(ramp), 10'000);
}

TEST(Schedule, APacketIsDueWhenItsTimeHasCome) {
    for (const std::uint32_t burst : {1U, 7U}) {
        const Load load{.packets_per_s = 100'000, .seconds = 1, .burst = burst, .ramp_s = 0.01};
        const std::uint64_t ramp = load.ramp_packets(scheduled_plan);
        const Schedule schedule(load, ramp, begin_ns);
        for (std::uint64_t packet = 0; packet < 3 * ramp; ++packet) {
            EXPECT_GT(schedule.due_by(schedule.due(packet) + 10), packet);
            if (packet > 0 && schedule.due(packet) > schedule.due(packet - 1)) {
                EXPECT_LE(schedule.due_by(schedule.due(packet) - 10), packet) << packet;
            }
        }
        EXPECT_EQ(schedule.due_by(begin_ns), 1U);
        EXPECT_LE(schedule.due_by(schedule.due(ramp) - 10), ramp);  // a burst does not begin in the ramp
        EXPECT_EQ(schedule.due_by(schedule.due(ramp) + 10), ramp + burst);
    }
}

TEST(Schedule, WhatIsLateIsSaidOfPacketsThatCount) {
    const Load load{.packets_per_s = 1000, .seconds = 1, .ramp_s = 0.1};
    const std::uint64_t ramp = load.ramp_packets(scheduled_plan);
    Schedule schedule(load, ramp, begin_ns);
    schedule.sent(3, schedule.due(3) + 80'000'000);
    EXPECT_EQ(schedule.lag_max_s(), 0);
    schedule.sent(ramp, schedule.due(ramp) + 2'000'000);
    schedule.sent(ramp + 1, schedule.due(ramp + 1));
    EXPECT_DOUBLE_EQ(schedule.lag_max_s(), 2e-3);
    EXPECT_DOUBLE_EQ(schedule.jitter_s(), 1e-3);
}

}  // namespace
