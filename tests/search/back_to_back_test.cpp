#include "search/back_to_back.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace {

using weir::search::BackToBack;

TEST(BackToBack, FindsTheBufferOfAReceiver) {
    for (const std::uint64_t buffer : {0U, 1U, 7U, 1000U, 65536U}) {
        BackToBack search(100000, 4, 3);
        int bursts = 0;
        while (const auto burst = search.next()) {
            ASSERT_LT(++bursts, 100);
            search.add(*burst <= buffer);
        }
        ASSERT_EQ(search.bursts().size(), 3U);
        for (const std::uint64_t found : search.bursts()) {
            EXPECT_LE(found, buffer);
            EXPECT_GT(found + 4, buffer);
        }
        EXPECT_FALSE(search.reached_most());
    }
}

TEST(BackToBack, SaysThatTheBufferIsLargerThanAnyBurst) {
    BackToBack search(100, 1, 2);
    while (search.next()) search.add(true);
    EXPECT_EQ(search.mean(), 100);
    EXPECT_TRUE(search.reached_most());
}

TEST(BackToBack, MeanIsThatOfTheRepeats) {
    BackToBack search(100, 1, 2);
    EXPECT_EQ(search.mean(), 0);
    while (const auto burst = search.next()) search.add(*burst <= (search.bursts().empty() ? 10U : 20U));
    EXPECT_DOUBLE_EQ(search.mean(), 15);
}

TEST(BackToBack, WhatCannotBeIsRefused) {
    EXPECT_THROW(BackToBack(10, 0, 1), weir::core::UsageError);
    EXPECT_THROW(BackToBack(10, 11, 1), weir::core::UsageError);
    EXPECT_THROW(BackToBack(10, 1, 0), weir::core::UsageError);
}

// A burst of 8000 frames at 14.88 Mpps, of which the receiver takes 0.75 while they come.
TEST(BackToBack, BufferTimeIsCorrectedByWhatIsTakenOutMeanwhile) {
    const auto time = weir::search::buffer_time(8000, 14880952, 11160714);
    EXPECT_NEAR(time.implied_s, 537.6e-6, 1e-9);
    EXPECT_NEAR(time.corrected_s, 134.4e-6, 1e-9);
    EXPECT_EQ(weir::search::buffer_time(100, 0, 0).implied_s, 0);
    EXPECT_EQ(weir::search::buffer_time(100, 10, 20).corrected_s, 0);
}

}  // namespace
