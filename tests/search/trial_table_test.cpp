#include "search/trial_table.hpp"

#include <gtest/gtest.h>

#include "search/goal.hpp"

namespace {

using weir::search::Goal;
using weir::search::TrialTable;

const Goal table_goal{.name = "g", .final_trial_s = 1, .duration_sum_s = 1};

TEST(TrialTable, ALowerBoundAboveTheUpperOneDoesNotCount) {
    TrialTable table;
    EXPECT_FALSE(table.bounds(table_goal).lower || table.bounds(table_goal).upper);
    const auto add = [&table](int step, double loss) { table.add(step, {double(step), 1, 1, loss}); };
    add(9, 0);
    EXPECT_EQ(table.bounds(table_goal).lower, 9);
    add(5, 0.1);
    EXPECT_EQ(table.bounds(table_goal).upper, 5);
    EXPECT_FALSE(table.bounds(table_goal).lower);
    add(2, 0);
    add(3, 0);
    add(7, 0.2);
    EXPECT_EQ(table.bounds(table_goal).upper, 5);
    EXPECT_EQ(table.bounds(table_goal).lower, 3);
    ASSERT_NE(table.at(7), nullptr);
    EXPECT_EQ(table.at(7)->trials().size(), 1U);
    EXPECT_EQ(table.at(8), nullptr);
}

TEST(TrialTable, WhatIsUndecidedIsNoBound) {
    TrialTable table;
    table.add(4, {4, 0.5, 0.5, 0});  // too short
    EXPECT_FALSE(table.bounds(table_goal).lower || table.bounds(table_goal).upper);
}

}  // namespace
