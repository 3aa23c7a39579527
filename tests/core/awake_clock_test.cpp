#include "core/awake_clock.hpp"

#include <gtest/gtest.h>

namespace weir::core {
namespace {

TEST(AwakeClock, LeavesOutGapsInWhichNobodyLooked) {
    AwakeClock clock;
    const TimeNs begin = 7 * ns_per_s;
    EXPECT_EQ(clock.at(begin), begin);
    EXPECT_EQ(clock.at(begin + ns_per_ms), begin + ns_per_ms);
    EXPECT_EQ(clock.at(begin + ns_per_ms + AwakeClock::gap_max_ns), begin + ns_per_ms + AwakeClock::gap_max_ns);
    const TimeNs before = clock.at(begin + ns_per_s / 5);
    EXPECT_EQ(clock.at(begin + 4 * ns_per_s), before + AwakeClock::gap_max_ns) << "it stood still for 3.8 s";
    EXPECT_EQ(clock.at(begin + 4 * ns_per_s + 5), before + AwakeClock::gap_max_ns + 5);
}

TEST(AwakeClock, RisesWithTheSystemsClock) {
    AwakeClock clock;
    TimeNs last = clock.now();
    for (int i = 0; i < 1000; ++i) {
        const TimeNs now = clock.now();
        EXPECT_GE(now, last);
        last = now;
    }
}

}  // namespace
}  // namespace weir::core
