#include "search/load_grid.hpp"

#include <gtest/gtest.h>

#include <array>

#include "core/error.hpp"
#include "search/goal.hpp"

namespace {

using weir::search::Goal;
using weir::search::LoadGrid;

const std::array<Goal, 2> grid_goals{Goal{}, Goal{.name = "narrow", .width = 0.005}};

TEST(LoadGrid, BeginsAndEndsWithItsLimits) {
    const LoadGrid grid(10, 1e6, grid_goals);
    EXPECT_DOUBLE_EQ(grid.load(0), 10);
    EXPECT_DOUBLE_EQ(grid.load(grid.last()), 1e6);
    EXPECT_EQ(grid.step_below(1), 0);
    EXPECT_EQ(grid.step_below(2e6), grid.last());
}

TEST(LoadGrid, StepsAndLoadsAreEachOthersInverse) {
    const LoadGrid grid(123.4, 5.6e7, grid_goals);
    for (int step = 0; step <= grid.last(); ++step) {
        ASSERT_EQ(grid.step_below(grid.load(step)), step);
        if (step < grid.last()) {
            ASSERT_EQ(grid.step_below((grid.load(step) + grid.load(step + 1)) / 2), step);
        }
    }
}

TEST(LoadGrid, WidthsAreNeverLargerThanAsked) {
    const LoadGrid grid(1, 1000, grid_goals);
    for (const double width : {0.005, 0.01, 0.02, 0.3}) {
        const int steps = grid.steps_within(width);
        for (int step = steps; step <= grid.last(); step += 7) {
            EXPECT_LE(1 - grid.load(step - steps) / grid.load(step), width);
        }
        EXPECT_GT(1 - grid.load(grid.last() - steps) / grid.load(grid.last()), width * 0.85);
    }
    EXPECT_GE(grid.steps_within(0.005), 8);
}

TEST(LoadGrid, LimitsThatCannotBeAreRefused) {
    EXPECT_THROW(LoadGrid(0, 1, grid_goals), weir::core::UsageError);
    EXPECT_THROW(LoadGrid(2, 1, grid_goals), weir::core::UsageError);
}

}  // namespace
