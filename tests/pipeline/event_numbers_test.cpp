// What the numbers of events say while a run goes on: the builders' logs in, the account of what is settled out.
#include "pipeline/event_numbers.hpp"

#include <gtest/gtest.h>

namespace weir::pipeline {
namespace {

/// Two builders that share the events by their numbers; every poll each takes one.
class TwoBuilders {
public:
    void poll(std::uint64_t number, std::uint32_t epoch = 0) {
        assemble::NumberLog* log = numbers.log(number % 2);
        log->add(epoch, number);
        log->publish();
        numbers.look(now += 10 * core::ns_per_ms);
    }
    EventNumbers numbers{2, core::ns_per_s};
    core::TimeNs now = 0;
};

TEST(EventNumbers, AGapShowsOnceItIsSettledAndNotBefore) {
    TwoBuilders run;
    EXPECT_FALSE(run.numbers.settled({}, 0));
    for (std::uint64_t n = 0; n < 1000; ++n)
        if (n < 300 || n >= 310) run.poll(n);
    const auto settled = run.numbers.settled({}, 0);
    ASSERT_TRUE(settled);
    EXPECT_EQ(settled->missing(), 10U);
    EXPECT_EQ(settled->unlogged, 0U);
    EXPECT_LT(settled->epochs.back().last, 999U);
    EXPECT_GT(settled->epochs.back().last, 850U);
    for (std::uint64_t n = 1100; n < 1150; ++n) run.poll(n);
    EXPECT_EQ(run.numbers.settled({}, 0)->missing(), 10U) << "the hundred may be on their way";
    for (std::uint64_t n = 1150; n < 1400; ++n) run.poll(n);
    EXPECT_EQ(run.numbers.settled({}, 0)->missing(), 110U);
    EXPECT_EQ(run.numbers.summary({}, 1, 0).missing(), 110U);
}

TEST(EventNumbers, WhatABuilderHoldsIsNotMissing) {
    TwoBuilders run;
    for (std::uint64_t n = 0; n < 1000; ++n) run.poll(n);
    for (std::uint64_t n = 1000; n < 3000; n += 2) run.poll(n);  // the other one waits for a full ring
    ASSERT_TRUE(run.numbers.settled({}, 0));
    EXPECT_EQ(run.numbers.settled({}, 0)->missing(), 0U);
    for (std::uint64_t n = 1001; n < 3000; n += 2) run.poll(n);
    for (std::uint64_t n = 3000; n < 3300; ++n) run.poll(n);
    EXPECT_EQ(run.numbers.settled({}, 0)->missing(), 0U);
    EXPECT_GT(run.numbers.settled({}, 0)->epochs.back().last, 3000U);
}

TEST(EventNumbers, TheEpochBeforeIsCountedWhole) {
    TwoBuilders run;
    for (std::uint64_t n = 0; n < 300; ++n)
        if (n != 100) run.poll(n);
    for (std::uint64_t n = 0; n < 300; ++n)
        if (n % 100 != 50) run.poll(n, 1);
    const auto settled = run.numbers.settled(1, 0);
    ASSERT_TRUE(settled);
    ASSERT_EQ(settled->epochs.size(), 2U);
    EXPECT_EQ(settled->epochs[0].missing, 1U);
    EXPECT_EQ(settled->epochs[1].missing, 2U);
}

}  // namespace
}  // namespace weir::pipeline
