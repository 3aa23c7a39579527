// The example of RFC 9971, appendix C: four goals, one load, six points in time. For the goal "20%
// exceed" its tables call the load a lower bound at points 5 and 6, with 42.857 % and 27.273 % of the time in high-loss
// trials where 20 % are allowed; the code of appendix A, and these tests, call it an upper bound.
#include "search/load_stats.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "search/goal.hpp"

namespace {

using weir::search::Goal;
using weir::search::LoadClass;
using weir::search::LoadStats;

const std::array<Goal, 4> example_goals{
    Goal{"RFC2544", 0, 0, 0.01, 60, 60, 60},
    Goal{"TST009", 0, 0.5, 0.01, 60, 60, 120},
    Goal{"1s final", 0.005, 0.5, 0.01, 1, 1, 120},
    Goal{"20% exceed", 0.005, 0.2, 0.01, 60, 60, 60},
};

constexpr double example_load = 1e6;

class LoadStatsExample : public testing::Test {
protected:
    void add(int times, double seconds, double loss_ratio) {
        for (int i = 0; i < times; ++i) stats_.add({example_load, seconds, seconds, loss_ratio});
    }
    void add_up_to(int point) {
        if (point >= 1) add(59, 1, 0);
        if (point >= 2) add(1, 1, 0.01);
        if (point >= 3) add(59, 1, 0.01);
        if (point >= 4) add(1, 1, 0);
        if (point >= 5) add(1, 60, 0.001);
        if (point >= 6) add(1, 60, 0);
    }
    std::string classes() const {
        std::string text;
        for (const Goal& goal : example_goals) {
            switch (stats_.classify(goal)) {
                case LoadClass::lower_bound:
                    text += 'L';
                    break;
                case LoadClass::upper_bound:
                    text += 'U';
                    break;
                case LoadClass::undecided:
                    text += '-';
                    break;
            }
        }
        return text;
    }

    LoadStats stats_;
};

struct Point {
    int number;
    const char* classes;  // of the four example_goals: lower, upper, undecided
};

class LoadStatsPoint : public LoadStatsExample, public testing::WithParamInterface<Point> {};

TEST_P(LoadStatsPoint, IsClassifiedByTheCodeOfTheRfc) {
    add_up_to(GetParam().number);
    EXPECT_EQ(classes(), GetParam().classes);
}

INSTANTIATE_TEST_SUITE_P(Appendix, LoadStatsPoint,
                         testing::Values(Point{1, "----"}, Point{2, "U---"}, Point{3, "U--U"}, Point{4, "U-LU"},
                                         Point{5, "U-LU"}, Point{6, "ULLU"}),
                         [](const auto& info) { return "Point" + std::to_string(info.param.number); });

TEST_F(LoadStatsExample, ConditionalThroughputIsThatOfTheRfc) {
    add_up_to(6);
    EXPECT_DOUBLE_EQ(stats_.conditional_throughput(example_goals[1]), 1e6);
    EXPECT_DOUBLE_EQ(stats_.conditional_throughput(example_goals[2]), 1e6);
    EXPECT_DOUBLE_EQ(stats_.conditional_throughput(example_goals[3]), 999e3);
}

TEST_F(LoadStatsExample, WithoutTrialsNothingIsDecided) {
    EXPECT_EQ(classes(), "----");
}

TEST_F(LoadStatsExample, TooFewTrialsAreNothingToRelyOn) {
    add(30, 1, 0);
    EXPECT_EQ(stats_.conditional_throughput(example_goals[2]), 0);  // 60 s are needed
    EXPECT_EQ(LoadStats().conditional_throughput(example_goals[2]), 0);
}

TEST_F(LoadStatsExample, ThroughputCountsTheWorstOfTheGoodTrials) {
    add(50, 1, 0);
    add(30, 1, 0.004);
    EXPECT_DOUBLE_EQ(stats_.conditional_throughput(example_goals[2]), 1e6 * 0.996);
}

TEST_F(LoadStatsExample, LongTrialsCountByTheirSeconds) {
    add(1, 130, 0.001);
    EXPECT_EQ(classes(), "UULL");  // full-length for all; high loss for the first two
}

}  // namespace
