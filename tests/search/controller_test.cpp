// The search against simulated receivers.
#include "search/controller.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "effort.hpp"

namespace {

using weir::search::Ask;
using weir::search::Controller;
using weir::search::Goal;
using weir::search::goal_named;
using weir::search::Limits;
using weir::search::Result;

/// Takes `capacity`, loses the rest; and pauses, with a probability per second, during which it loses everything.
struct Receiver {
    double capacity = 1;
    double pauses_per_s = 0;
    double pause_s = 0.001;
    std::mt19937_64 random{1};

    double loss_ratio(const Ask& ask) {
        const double lost = std::max(0.0, 1 - capacity / ask.load);
        std::poisson_distribution<int> pauses(pauses_per_s * ask.seconds);
        const int number = pauses_per_s > 0 ? pauses(random) : 0;
        return std::min(1.0, lost + number * pause_s / ask.seconds);
    }
};

struct Cost {
    int trials = 0;
    double seconds = 0;
};

Cost search(Controller& controller, Receiver& receiver, int most = 100000) {
    Cost cost;
    while (const auto ask = controller.next()) {
        if (++cost.trials > most) ADD_FAILURE() << "does not end";
        if (cost.trials > most) break;
        cost.seconds += ask->seconds;
        controller.add(receiver.loss_ratio(*ask), ask->seconds);
    }
    return cost;
}

TEST(Controller, FindsTheCapacityOfAReceiverThatNeverPauses) {
    for (const char* name : {"quick", "ndr", "rfc2544"}) {
        for (const double capacity : {1.5, 7.0, 512.0, 9.99e5}) {
            Controller controller({goal_named(name)}, {.smallest = 1, .largest = 1e6});
            Receiver receiver{.capacity = capacity};
            search(controller, receiver);
            const Result result = controller.results().front();
            ASSERT_TRUE(result.regular) << name << " " << capacity << " " << result.why;
            EXPECT_LE(*result.lower, capacity);
            EXPECT_GE(*result.upper, capacity);
            EXPECT_LE(1 - *result.lower / *result.upper, result.goal.width);
            EXPECT_DOUBLE_EQ(*result.conditional, *result.lower);
            EXPECT_EQ(controller.progress(), 1);
            EXPECT_FALSE(controller.ceiling());
        }
    }
}

TEST(Controller, GoalsShareTheirTrials) {
    const std::vector<Goal> both{goal_named("ndr"), goal_named("pdr")};
    double apart = 0;
    for (const Goal& goal : both) {
        Controller controller({goal}, {.smallest = 10, .largest = 1e6});
        Receiver receiver{.capacity = 3e5};
        apart += search(controller, receiver).seconds;
    }
    Controller controller(both, {.smallest = 10, .largest = 1e6});
    Receiver receiver{.capacity = 3e5};
    const double together = search(controller, receiver).seconds;
    EXPECT_LT(together, apart);
    const auto results = controller.results();
    ASSERT_TRUE(results[0].regular && results[1].regular);
    EXPECT_LE(*results[0].lower, 3e5);
    EXPECT_GT(*results[1].upper, 3e5 / 0.995);
    EXPECT_LE(*results[1].lower, 3e5 / 0.995);
    EXPECT_LE(*results[1].conditional, *results[1].lower);
}

TEST(Controller, WhatNeverLosesHasNoUpperBound) {
    Controller controller({goal_named("quick")}, {.smallest = 1, .largest = 100});
    Receiver receiver{.capacity = 1000};
    EXPECT_LE(search(controller, receiver).trials, 6);
    const Result result = controller.results().front();
    EXPECT_FALSE(result.regular);
    EXPECT_EQ(*result.lower, 100);
    EXPECT_FALSE(result.upper);
    EXPECT_EQ(result.why, "there is no loss at the largest load");
}

TEST(Controller, WhatAlwaysLosesHasNoLowerBound) {
    Controller controller({goal_named("quick")}, {.smallest = 1, .largest = 100});
    Receiver receiver{.capacity = 0.5};
    EXPECT_LE(search(controller, receiver).trials, 40);
    const Result result = controller.results().front();
    EXPECT_FALSE(result.regular);
    EXPECT_FALSE(result.lower);
    EXPECT_EQ(*result.upper, 1);
    EXPECT_EQ(result.why, "there is loss at the smallest load");
}

TEST(Controller, ATrialThatIsNotDoneIsAskedForAgain) {
    Controller controller({goal_named("quick")}, {.smallest = 1, .largest = 100});
    const auto first = controller.next();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->load, 100);
    EXPECT_EQ(controller.next()->load, 100);
    controller.add_invalid(0.5);
    EXPECT_EQ(controller.next()->load, 100);
    EXPECT_TRUE(controller.table().loads().empty());
    EXPECT_EQ(controller.seconds(), 0.5);
}

TEST(Controller, WhatCannotBeOfferedIsNoResult) {
    Controller controller({goal_named("quick")}, {.smallest = 1, .largest = 1000});
    Receiver receiver{.capacity = 5000};
    while (const auto ask = controller.next()) {
        if (ask->load > 600)
            controller.add_invalid(ask->seconds);
        else
            controller.add(receiver.loss_ratio(*ask), ask->seconds);
    }
    const Result result = controller.results().front();
    EXPECT_FALSE(result.regular);
    EXPECT_FALSE(result.upper);
    EXPECT_LE(*result.lower, 600);
    EXPECT_GT(*result.lower, 500);
    EXPECT_EQ(result.why, "no more could be offered");
    EXPECT_EQ(controller.ceiling(), result.lower);
}

TEST(Controller, ASenderThatCanDoNothingEndsTheSearch) {
    Controller controller({goal_named("quick")}, {.smallest = 1, .largest = 1000});
    int trials = 0;
    while (const auto ask = controller.next()) {
        ASSERT_LT(++trials, 10000);
        controller.add_invalid(ask->seconds);
    }
    const Result result = controller.results().front();
    EXPECT_FALSE(result.lower || result.upper || result.regular);
    EXPECT_EQ(result.why, "even the smallest load could not be offered");
    EXPECT_EQ(controller.ceiling(), 0);
}

TEST(Controller, EndsWhenItsTimeIsOver) {
    Controller controller({goal_named("rfc2544")}, {.smallest = 1, .largest = 1e6, .search_s = 20});
    Receiver receiver{.capacity = 3e5};
    search(controller, receiver);
    EXPECT_LT(controller.seconds(), 81);
    const Result result = controller.results().front();
    EXPECT_FALSE(result.regular);
    EXPECT_EQ(result.why, "the search ended after 20 s");
}

TEST(Controller, WhatCannotBeIsRefused) {
    EXPECT_THROW(Controller({}, {.smallest = 1, .largest = 2}), weir::core::UsageError);
    EXPECT_THROW(Controller({goal_named("quick")}, {.smallest = 2, .largest = 1}), weir::core::UsageError);
    Goal goal = goal_named("quick");
    goal.width = 2;
    EXPECT_THROW(Controller({goal}, {.smallest = 1, .largest = 2}), weir::core::UsageError);
}

struct Quality {
    double lowest = 1;  // conditional throughput over capacity
    double median = 1;
    double trials = 0;  // mean
    int without_lower = 0;
};

Quality quality_of(const std::vector<Goal>& goals, double pauses_per_s, int searches, double pause_s = 0.001) {
    std::vector<double> found;
    Quality quality;
    std::mt19937_64 random(static_cast<std::uint64_t>(pauses_per_s * 100) + 7);
    std::uniform_real_distribution<double> exponent(0.5, 5.5);
    for (int i = 0; i < searches; ++i) {
        Receiver receiver{.capacity = std::pow(10, exponent(random)),
                          .pauses_per_s = pauses_per_s,
                          .pause_s = pause_s,
                          .random = std::mt19937_64(random())};
        Controller controller(goals, {.smallest = 1, .largest = 1e6, .search_s = 1e9});
        quality.trials += search(controller, receiver).trials;
        const Result result = controller.results().front();
        // Whatever pauses do, the bounds are as far apart as they may be, and no upper bound lies below the lower.
        if (result.lower && result.upper) {
            EXPECT_LT(*result.lower, *result.upper);
            EXPECT_LE(1 - *result.lower / *result.upper, result.goal.width);
            EXPECT_LE(*result.lower, receiver.capacity * (1 + 1e-9)) << "loses more than it may";
        }
        if (!result.lower) ++quality.without_lower;
        found.push_back(result.lower ? *result.conditional / receiver.capacity : 0);
    }
    std::ranges::sort(found);
    quality.lowest = found[found.size() / 100];
    quality.median = found[found.size() / 2];
    quality.trials /= searches;
    return quality;
}

// 10^4 searches in all. The figures are what this search does; the topic's prototype found 0.997 of the capacity with
// 36 trials for ndr and pdr, and 0.978 to 0.998 for short goals with 0.3 pauses per second.
TEST(Controller, PausesCostTrialsAndLittleElse) {
    const int searches = weir::test::repeated(2000);
    const Quality calm = quality_of({goal_named("quick")}, 0, searches);
    EXPECT_GT(calm.lowest, 0.98);
    EXPECT_LT(calm.trials, 25);
    const Quality restless = quality_of({goal_named("quick")}, 0.3, searches);
    EXPECT_GT(restless.lowest, 0.90);
    EXPECT_GT(restless.median, 0.975);
    EXPECT_LT(restless.trials, 45);
    const Quality both = quality_of({goal_named("ndr"), goal_named("pdr")}, 0, searches);
    EXPECT_GT(both.lowest, 0.99);
    const Quality paused = quality_of({goal_named("ndr"), goal_named("pdr")}, 0.3, searches);
    EXPECT_GT(paused.median, 0.99);
    RecordProperty("trials_quick", std::to_string(calm.trials) + " to " + std::to_string(restless.trials));
    RecordProperty("trials_ndr_pdr", std::to_string(both.trials) + " to " + std::to_string(paused.trials));
    // A receiver that stops for 50 ms once a minute: the result moves by less than the goal's width.
    const Quality rarely = quality_of({goal_named("quick")}, 1.0 / 60, searches, 0.05);
    EXPECT_GT(rarely.median, 0.98);
    EXPECT_NEAR(rarely.median, calm.median, 0.02);
    // A pause in each minute-long trial leaves nothing that RFC 2544 accepts.
    const Quality strict = quality_of({goal_named("rfc2544")}, 0.3, searches);
    EXPECT_GT(strict.without_lower, searches * 9 / 10);
}

}  // namespace
