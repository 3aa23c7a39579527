#include "search/goal.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.hpp"

namespace {

using weir::core::UsageError;
using weir::search::Goal;

TEST(Goal, NamedOnesAreSoundAndExplained) {
    ASSERT_EQ(weir::search::named_goals().size(), 4U);
    EXPECT_EQ(weir::search::named_goals().front().name, "quick");
    for (const Goal& goal : weir::search::named_goals()) {
        EXPECT_NO_THROW(weir::search::check(goal));
        EXPECT_NE(weir::search::goal_text(goal.name), "");
        EXPECT_EQ(weir::search::goal_named(goal.name), goal);
    }
}

TEST(Goal, AnUnknownNameListsThoseThereAre) {
    try {
        (void)weir::search::goal_named("fast");
        FAIL();
    } catch (const UsageError& error) {
        EXPECT_STREQ(error.what(), "there is no goal \"fast\": quick, ndr, pdr, rfc2544");
    }
}

TEST(Goal, WhatCannotBeIsRefused) {
    const std::function<void(Goal&)> mistakes[] = {
        [](Goal& goal) { goal.loss_ratio = 1; },      [](Goal& goal) { goal.loss_ratio = -0.1; },
        [](Goal& goal) { goal.exceed_ratio = 1; },    [](Goal& goal) { goal.width = 0; },
        [](Goal& goal) { goal.loss_ratio = 0.03; },   [](Goal& goal) { goal.final_trial_s = 0; },
        [](Goal& goal) { goal.initial_trial_s = 2; }, [](Goal& goal) { goal.duration_sum_s = 0.5; },
    };
    EXPECT_NO_THROW(weir::search::check(Goal{}));
    for (const auto& mistake : mistakes) {
        Goal goal;
        mistake(goal);
        EXPECT_THROW(weir::search::check(goal), UsageError);
    }
}

}  // namespace
