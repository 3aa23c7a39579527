#include "pipeline/settled_numbers.hpp"

#include <gtest/gtest.h>

namespace weir::pipeline {
namespace {

using Point = SettledNumbers::Point;
constexpr core::TimeNs wait_ns = 1000 * core::ns_per_ms;

TEST(SettledNumbers, ANumberSettlesWhenItsBuilderHasGoneOnForLongEnough) {
    SettledNumbers settled(1, wait_ns);
    settled.look(0);
    EXPECT_FALSE(settled.up_to());
    settled.moved(0, {0, 10}, 0);
    settled.look(0);
    settled.moved(0, {0, 20}, wait_ns - 1);
    settled.look(wait_ns - 1);
    EXPECT_FALSE(settled.up_to());
    settled.look(3 * wait_ns);
    EXPECT_FALSE(settled.up_to()) << "it may stand still, with an event in its hands";
    settled.moved(0, {0, 30}, 3 * wait_ns);
    settled.look(3 * wait_ns);
    EXPECT_EQ(settled.up_to(), (Point{0, 20}));
}

TEST(SettledNumbers, TheSlowestBuilderIsWaitedFor) {
    SettledNumbers settled(3, wait_ns);  // the third has no share in the numbers
    for (core::TimeNs now = 0; now < 5 * wait_ns; now += wait_ns / 10) {
        const auto step = static_cast<std::uint64_t>(now / (wait_ns / 10));
        settled.moved(0, {0, 100 + step}, now);
        settled.moved(1, {0, step}, now);
        settled.look(now);
    }
    ASSERT_TRUE(settled.up_to());
    EXPECT_EQ(*settled.up_to(), (Point{0, 39}));
    // From here on only one goes on.
    for (core::TimeNs now = 5 * wait_ns; now < 50 * wait_ns; now += wait_ns / 10) {
        settled.moved(0, {0, 1'000'000}, now);
        settled.look(now);
    }
    EXPECT_EQ(*settled.up_to(), (Point{0, 39}));
}

TEST(SettledNumbers, ANewEpochIsAfterAllNumbersOfTheOneBefore) {
    SettledNumbers settled(1, wait_ns);
    settled.moved(0, {0, 1'000'000}, 0);
    settled.look(0);
    settled.moved(0, {1, 5}, wait_ns);
    settled.look(wait_ns);
    EXPECT_EQ(settled.up_to(), (Point{0, 1'000'000}));
    settled.moved(0, {1, 6}, 2 * wait_ns);
    settled.look(2 * wait_ns);
    EXPECT_EQ(settled.up_to(), (Point{1, 5}));
}

}  // namespace
}  // namespace weir::pipeline
