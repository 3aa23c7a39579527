// Messages that learn their event number when they end, as over RDMA, meet those that know it from the start.
#include <gtest/gtest.h>

#include "harness.hpp"

namespace {

using namespace weir::assemble;
using namespace weir::assemble::test;
using weir::wire::PacketCounter;
using Missing = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// A whole message of `count` packets of 10 bytes, all at one time.
void bind_whole(Harness& harness, std::uint32_t source, std::uint64_t number, std::uint32_t count, TimeNs now) {
    std::vector<Harness::Part> parts;
    for (std::uint32_t i = 0; i < count; ++i) parts.push_back({10 * i, 10, now});
    harness.bind(source, number, 10 * count, parts, now);
}

TEST(LateBinding, MeetsInAnEvent) {
    Harness harness({.sources = 2});
    harness.add(piece(0, 7, 0, 1, 5));
    bind_whole(harness, 1, 7, 3, 6);
    ASSERT_EQ(harness.count(EventCounter::complete), 1u);
    EXPECT_EQ(harness.events[0].messages.at(1).packets.size(), 3u);
    bind_whole(harness, 1, 8, 3, 7);  // and opens one
    harness.add(piece(0, 8, 0, 1, 8));
    EXPECT_EQ(harness.count(EventCounter::complete), 2u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(LateBinding, DeliversGaps) {
    Harness harness({.sources = 1});
    harness.bind(0, 7, 100, std::vector<Harness::Part>{{10, 10, 1}, {50, 20, 2}}, 3);
    harness.advance(5000);
    ASSERT_EQ(harness.events.size(), 1u);
    EXPECT_EQ(harness.events[0].messages.at(0).missing, (Missing{{0, 10}, {20, 50}, {70, 100}}));
    harness.bind(0, 7, 100, std::vector<Harness::Part>{{20, 30, 5001}}, 5001);
    EXPECT_EQ(harness.count(PacketCounter::in_flight), 1u);
    harness.advance(9000);
    EXPECT_EQ(harness.count(PacketCounter::late), 1u);  // it had something to bring, but too late
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(LateBinding, MovesTheDeadlineBackToItsFirstPacket) {
    Harness harness({.sources = 3});
    harness.add(piece(0, 7, 0, 2, 500));
    harness.bind(1, 7, 20, std::vector<Harness::Part>{{0, 10, 100}, {10, 10, 700}}, 800);
    harness.add(piece(0, 7, 1, 2, 1099));
    EXPECT_TRUE(harness.events.empty());
    harness.advance(1100);
    ASSERT_EQ(harness.events.size(), 1u);
    EXPECT_EQ(harness.events[0].first_ns, 100);
    EXPECT_EQ(harness.events[0].cause, EventCause::timeout);
    EXPECT_TRUE(harness.events[0].messages.at(0).complete);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(LateBinding, OfAnOverdueMessageEndsTheEventWhereItShouldHaveEnded) {
    Harness harness({.sources = 2});
    harness.add(piece(0, 7, 0, 1, 900));
    // Its first packet came at 100, so the event should have ended at 1100.
    harness.bind(1, 7, 30, std::vector<Harness::Part>{{0, 10, 100}, {10, 10, 1000}, {20, 10, 1100}}, 1500);
    ASSERT_EQ(harness.events.size(), 1u);
    const EventResult& event = harness.events[0];
    EXPECT_EQ(event.cause, EventCause::timeout);
    EXPECT_EQ(event.messages.at(0).packets.size(), 1u);
    EXPECT_EQ(event.messages.at(1).missing, (Missing{{20, 30}}));
    EXPECT_EQ(event.last_ns, 1000);
    // One that nobody else has opened, long overdue; the timers of others must not mind.
    harness.add(piece(0, 8, 0, 1, 1600));
    harness.bind(1, 9, 10, std::vector<Harness::Part>{{0, 10, -50'000}}, 1700);
    EXPECT_EQ(harness.events.size(), 2u);
    EXPECT_EQ(harness.events[1].number, 9u);
    EXPECT_EQ(harness.events[1].cause, EventCause::timeout);
    harness.advance(2599);
    EXPECT_EQ(harness.events.size(), 2u);
    harness.advance(2600);
    EXPECT_EQ(harness.events.size(), 3u);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::late), 1u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(LateBinding, ToAnOpenNumberOfTheSameSourceIsAConflict) {
    Harness harness({.sources = 1});
    harness.add(piece(0, 7, 0, 2, 1));
    bind_whole(harness, 0, 7, 3, 2);
    EXPECT_EQ(harness.count(PacketCounter::conflict), 3u);
    EXPECT_EQ(harness.count(MessageCounter::refused_conflict), 1u);
    harness.add(piece(0, 7, 1, 2, 3));
    EXPECT_EQ(harness.count(EventCounter::complete), 1u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(LateBinding, OfANumberThatHasLeftIsADuplicateOrLate) {
    Harness harness({.sources = 2});
    bind_whole(harness, 0, 7, 3, 1);
    bind_whole(harness, 0, 7, 3, 2);
    bind_whole(harness, 0, 7, 3, 2);  // while the other is on probation
    harness.advance(2000);
    bind_whole(harness, 1, 7, 3, 2000);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 6u);
    EXPECT_EQ(harness.count(PacketCounter::late), 3u);
    EXPECT_EQ(harness.count(PacketCounter::placed), 3u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(LateBinding, NoticesARestart) {
    Harness harness({.sources = 1});
    for (std::uint64_t number = 0; number < 30; ++number) bind_whole(harness, 0, number, 4, 1);
    for (std::uint64_t number = 0; number < 10; ++number) bind_whole(harness, 0, number, 4, 2);
    EXPECT_EQ(harness.count(EventCounter::complete), 40u);
    for (std::uint64_t number = 0; number < 10; ++number) EXPECT_NE(harness.find(number, 1), nullptr) << number;
    // Those before a new number were none.
    bind_whole(harness, 0, 3, 4, 3);
    bind_whole(harness, 0, 4, 4, 3);
    bind_whole(harness, 0, 10, 4, 3);
    bind_whole(harness, 0, 5, 4, 3);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 12u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(LateBinding, MayComeToNothing) {
    Harness harness({.sources = 1});
    Message* message = harness.table().open_unbound(0, 1);
    ASSERT_NE(message, nullptr);
    harness.table().abandon(*message, PacketCounter::unbound);
    EXPECT_EQ(harness.count(MessageCounter::refused_unbound), 1u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(LateBinding, FindsNoSlotWhenThereIsNone) {
    Limits limits{.sources = 1};
    limits.messages_max = 1;
    Harness harness(limits);
    Message* message = harness.table().open_unbound(0, 1);
    EXPECT_EQ(harness.table().open_unbound(0, 1), nullptr);
    harness.table().abandon(*message, PacketCounter::unbound);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

}  // namespace
