#include "core/counters.hpp"

#include <gtest/gtest.h>

namespace {

using namespace weir::core;

enum class Fate : std::uint8_t { in_flight, placed, late, count_ };
enum class Other : std::uint8_t { one, two, count_ };

TEST(Tally, AddsAndReads) {
    Tally<Fate> tally;
    for (std::size_t i = 0; i < count_of<Fate>; ++i) EXPECT_EQ(tally.get(static_cast<Fate>(i)), 0u);
    tally.add(Fate::placed);
    tally.add(Fate::placed, 41);
    EXPECT_EQ(tally.get(Fate::placed), 42u);
    EXPECT_EQ(tally.get(Fate::late), 0u);
}

TEST(Tally, SettlesWhatWasInFlight) {
    Tally<Fate> tally;
    tally.add(Fate::in_flight, 10);
    tally.account(Fate::placed, 7);
    tally.account(Fate::late, 3);
    EXPECT_EQ(tally.get(Fate::in_flight), 0u);
    EXPECT_EQ(tally.get(Fate::placed), 7u);
    EXPECT_EQ(tally.get(Fate::late), 3u);
}

// A packet counted in flight on one lcore and settled on another: each value alone means nothing, their sum does.
TEST(Tally, WrapsSoThatOnlyTheSumOverLcoresMatters) {
    Tally<Fate> receiver;
    Tally<Fate> builder;
    receiver.add(Fate::in_flight, 5);
    builder.account(Fate::placed, 5);
    EXPECT_EQ(receiver.get(Fate::in_flight) + builder.get(Fate::in_flight), 0u);
    EXPECT_EQ(receiver.get(Fate::placed) + builder.get(Fate::placed), 5u);
}

TEST(Tally, OfTwoLcoresShareNoCacheLine) {
    static_assert(alignof(Tally<Fate>) >= 64 && sizeof(Tally<Fate>) % 64 == 0);
    static_assert(alignof(Tally<Other>) >= 64 && sizeof(Tally<Other>) % 64 == 0);
}

}  // namespace
