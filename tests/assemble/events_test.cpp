// Messages become events: an event leaves exactly once, with its cause; late, horizon, eviction, no room, frozen sinks.
#include <gtest/gtest.h>

#include <array>

#include "effort.hpp"
#include "harness.hpp"

namespace {

using namespace weir::assemble;
using namespace weir::assemble::test;
using weir::wire::PacketCounter;
using Missing = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// A whole message of one piece.
Packet whole(std::uint32_t source, std::uint64_t number, TimeNs time_ns) {
    return piece(source, number, 0, 1, time_ns);
}

TEST(Events, TimeOutCountedFromTheFirstPacketOfAnySource) {
    Harness harness({.sources = 3});
    harness.add(piece(0, 1, 0, 3, 100));
    harness.add(piece(1, 1, 1, 3, 900));
    harness.add(piece(0, 1, 2, 3, 1099));
    EXPECT_TRUE(harness.events.empty());
    harness.add(piece(1, 1, 0, 3, 1100));  // at the deadline is too late
    ASSERT_EQ(harness.events.size(), 1u);
    const EventResult& event = harness.events[0];
    EXPECT_EQ(event.cause, EventCause::timeout);
    EXPECT_EQ(event.first_ns, 100);
    EXPECT_EQ(event.last_ns, 1099);
    ASSERT_EQ(event.messages.size(), 2u);
    EXPECT_EQ(event.messages.at(0).missing, (Missing{{100, 200}}));
    EXPECT_EQ(event.messages.at(1).missing, (Missing{{0, 100}, {200, 300}}));
    harness.add(piece(2, 1, 0, 3, 1100));
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::late), 2u);
    EXPECT_EQ(harness.count(EventCounter::incomplete_timeout), 1u);
    EXPECT_EQ(harness.events.size(), 1u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, TimeOutWithoutTraffic) {
    Harness harness({.sources = 2});
    harness.add(whole(0, 1, 100));
    harness.advance(1099);
    EXPECT_TRUE(harness.events.empty());
    harness.advance(1100);
    EXPECT_EQ(harness.events.size(), 1u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, ThatOnlyAPacketAfterTheirTimeMakesWholeTimeOutWithoutIt) {
    Harness harness({.sources = 2});
    harness.add(whole(0, 1, 0));
    // The message is ahead of the time that its rx lcore vouches for.
    const std::array<Harness::Part, 2> parts{{{0, 10, 100}, {10, 10, 1100}}};
    harness.bind(1, 1, 20, parts, 500);
    EXPECT_EQ(harness.find(1), nullptr);
    harness.advance(1000);
    ASSERT_NE(harness.find(1), nullptr);
    EXPECT_EQ(harness.find(1)->cause, EventCause::timeout);
    EXPECT_FALSE(harness.find(1)->messages.at(1).complete);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::late), 1u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, TimeOutInOrderOfTheirDeadlines) {
    for (const TimeNs timeout_ns : {TimeNs{1}, TimeNs{255}, TimeNs{256}, TimeNs{1000}, TimeNs{123'456'789}}) {
        Limits limits{.sources = 2};
        limits.timeout_ns = timeout_ns;
        Harness harness(limits);
        const TimeNs step = std::max<TimeNs>(1, timeout_ns / 50);
        for (std::uint64_t number = 0; number < 200; ++number)
            harness.add(whole(0, number, 1'700'000'000'000'000'000 + static_cast<TimeNs>(number) * step));
        harness.advance(1'700'000'000'000'000'000 + 200 * step + 3 * timeout_ns);
        ASSERT_EQ(harness.count(EventCounter::incomplete_timeout), 200u);
        for (std::uint64_t i = 0; i < 200; ++i) EXPECT_EQ(harness.events[i].number, i);
        harness.finish();
        EXPECT_EQ(harness.faults(), "");
    }
}

TEST(Events, TimeOutExactlyHoweverTimeAdvances) {
    for (TimeNs stride = 1; stride < 4000; stride = 2 * stride + 1) {
        Harness harness({.sources = 2});
        TimeNs last = 0;
        for (TimeNs now = 0; now < weir::test::repeated(20'000); now += stride) {
            harness.advance(now);
            for (const EventResult& event : harness.events) ASSERT_LE(event.first_ns + 1000, now);
            if (stride < 500) {
                EXPECT_LE(harness.builder().open_count(), 1000u / static_cast<std::uint64_t>(stride) + 1);
            }
            harness.add(whole(0, static_cast<std::uint64_t>(now), now));
            last = now;
        }
        harness.advance(last + 1000);
        EXPECT_EQ(harness.builder().open_count(), 0u);
        EXPECT_EQ(harness.count(EventCounter::incomplete_timeout), harness.count(EventCounter::opened));
        harness.finish();
        EXPECT_EQ(harness.faults(), "");
    }
}

TEST(Events, EndWithTheRun) {
    Harness harness({.sources = 2});
    harness.add(piece(0, 5, 1, 2, 1));
    harness.add(whole(1, 6, 1));
    harness.finish();
    ASSERT_EQ(harness.events.size(), 2u);
    EXPECT_EQ(harness.find(5)->cause, EventCause::end_of_run);
    EXPECT_EQ(harness.find(5)->messages.at(0).missing, (Missing{{0, 100}}));
    EXPECT_EQ(harness.find(6)->cause, EventCause::end_of_run);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, LeaveOnceAndWhatComesAfterwardsIsLateOrADuplicate) {
    Harness harness({.sources = 2});
    harness.add(whole(0, 1, 1));
    harness.add(piece(1, 1, 0, 2, 1));
    harness.advance(2000);
    ASSERT_EQ(harness.events.size(), 1u);
    harness.add(piece(1, 1, 1, 2, 2001));  // would have completed it
    harness.add(piece(1, 1, 1, 2, 2002));  // too late is too late, however often
    harness.add(whole(0, 1, 2003));        // was whole: nothing left to bring
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::late), 2u);
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 1u);
    EXPECT_EQ(harness.events.size(), 1u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, OfWhichASourceNeverCameTakeNothingOfItLater) {
    Harness harness({.sources = 2});
    harness.add(whole(0, 1, 1));
    harness.advance(2000);
    harness.add(piece(1, 1, 0, 2, 2001));
    harness.add(piece(1, 1, 1, 2, 2001));
    EXPECT_EQ(harness.events.size(), 1u);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::late), 2u);
    EXPECT_EQ(harness.events.size(), 1u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, AreRememberedForTheHorizonAndOlderOnesStayLate) {
    Limits limits{.sources = 1};
    limits.horizon = 16;
    Harness harness(limits);
    for (std::uint64_t number = 100; number < 200; ++number) harness.add(whole(0, number, 1));
    for (const std::uint64_t number : {199ULL, 184ULL, 150ULL, 100ULL, 3ULL}) {
        const std::size_t before = harness.events.size();
        harness.add(whole(0, number, 2));
        EXPECT_EQ(harness.events.size(), before) << number;
    }
    harness.add(whole(0, 200, 3));
    EXPECT_EQ(harness.events.size(), 101u);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 2u);  // within the horizon
    EXPECT_EQ(harness.count(PacketCounter::late), 3u);       // beyond it
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, OpenedFirstAreEvictedFirst) {
    Limits limits{.sources = 2};
    limits.open_max = 3;
    Harness harness(limits);
    for (const std::uint64_t number : {7ULL, 5ULL, 9ULL}) harness.add(piece(0, number, 0, 2, 1));
    harness.add(piece(0, 7, 1, 2, 2));  // newer packets do not make it younger
    harness.add(whole(1, 4, 3));
    ASSERT_EQ(harness.events.size(), 1u);
    EXPECT_EQ(harness.events[0].number, 7u);
    EXPECT_EQ(harness.events[0].cause, EventCause::evicted);
    EXPECT_EQ(harness.events[0].messages.at(0).packets.size(), 2u);
    harness.add(whole(1, 3, 4));
    ASSERT_EQ(harness.events.size(), 2u);
    EXPECT_EQ(harness.events[1].number, 5u);
    harness.add(whole(1, 7, 5));
    harness.finish();
    EXPECT_EQ(harness.count(EventCounter::incomplete_evicted), 2u);
    EXPECT_EQ(harness.count(PacketCounter::late), 1u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, NeedOnlyAsManySourcesAsConfigured) {
    Limits limits{.sources = 3};
    limits.sources_needed = 2;
    Harness harness(limits);
    harness.add(whole(0, 1, 1));
    harness.add(whole(1, 1, 2));
    ASSERT_EQ(harness.events.size(), 1u);
    EXPECT_EQ(harness.events[0].cause, EventCause::complete);
    EXPECT_EQ(harness.events[0].messages.size(), 2u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, AreCompleteOnlyWhenEveryMessageInThemIsWhole) {
    Limits limits{.sources = 3};
    limits.sources_needed = 1;
    Harness harness(limits);
    harness.add(piece(2, 1, 0, 2, 1));
    harness.add(whole(0, 1, 2));
    EXPECT_TRUE(harness.events.empty());  // source 2 has begun
    harness.add(whole(1, 1, 3));
    EXPECT_TRUE(harness.events.empty());
    harness.add(piece(2, 1, 1, 2, 4));
    ASSERT_EQ(harness.events.size(), 1u);
    EXPECT_EQ(harness.events[0].cause, EventCause::complete);
    EXPECT_EQ(harness.events[0].messages.size(), 3u);
    harness.add(piece(2, 2, 0, 2, 5));
    harness.add(whole(0, 2, 6));
    harness.advance(1005);
    ASSERT_EQ(harness.events.size(), 2u);
    EXPECT_EQ(harness.events[1].cause, EventCause::timeout);
    EXPECT_EQ(harness.events[1].messages.at(2).missing, (Missing{{100, 200}}));
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::late), 0u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, WithAMessageThatEndedWithGapsAreNotComplete) {
    Limits limits{.sources = 2};
    limits.sources_needed = 1;
    Harness harness(limits);
    const std::vector<Harness::Part> parts{{0, 100, 1}};
    harness.bind(1, 1, 200, parts, 2);  // an RDMA message that lost its end
    harness.add(whole(0, 1, 3));
    EXPECT_TRUE(harness.events.empty());
    harness.finish();
    ASSERT_EQ(harness.events.size(), 1u);
    EXPECT_EQ(harness.events[0].cause, EventCause::end_of_run);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, AreRefusedWholeWhileTheSinkIsFrozen) {
    Limits limits{.sources = 2};
    limits.open_max = 4;
    limits.queued_max = 8;
    Harness harness(limits);
    harness.freeze();
    TimeNs now = 0;
    for (std::uint64_t number = 0; number < 100; ++number)
        for (std::uint32_t source = 0; source < 2; ++source)
            for (std::uint32_t i = 0; i < 4; ++i) harness.add(piece(source, number, i, 4, ++now % 10));
    EXPECT_LE(harness.builder().in_use(), harness.builder().slots());
    EXPECT_EQ(harness.count(EventCounter::complete), 4u + 8u);
    EXPECT_GT(harness.count(PacketCounter::queue_full), 0u);
    EXPECT_EQ(harness.count(EventCounter::refused_queue_full), 88u);
    for (const EventResult& event : harness.events) EXPECT_EQ(event.cause, EventCause::complete) << event.number;
    EXPECT_EQ(harness.count(PacketCounter::queue_full), 88u * 8);  // whole events
    harness.thaw();
    harness.add(whole(0, 1000, now));
    harness.add(whole(1, 1000, now));
    EXPECT_NE(harness.find(1000), nullptr);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::placed) + harness.count(PacketCounter::queue_full), 802u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, ThatAreOpenAreNotEvictedWhereThatMakesNoRoom) {
    Limits limits{.sources = 2};
    limits.open_max = 2;
    limits.queued_max = 2;
    Harness harness(limits);
    harness.freeze();
    for (std::uint64_t number = 0; number < 2; ++number)
        for (std::uint32_t source = 0; source < 2; ++source) harness.add(whole(source, number, 1));
    for (std::uint64_t number = 2; number < 10; ++number) harness.add(whole(0, number, 2));
    EXPECT_EQ(harness.count(EventCounter::incomplete_evicted), 0u);
    EXPECT_EQ(harness.count(PacketCounter::queue_full), 6u);
    harness.add(whole(1, 2, 3));
    EXPECT_EQ(harness.count(EventCounter::complete), 3u);
    harness.thaw();
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, ThatAllTimeOutAtOnceRefuseNoNewOnes) {
    // Sixteen wait for their lcore's answer; the sink is idle, so there is room for as many again.
    weir::wire::PacketTally packets;
    weir::assemble::MessageTally messages;
    weir::assemble::EventTally events;
    EventBuilder::Config config;
    config.sources = config.sources_needed = 2;
    config.open_max = 16;
    config.queued_max = 1;
    config.timeout_ns = 1000;
    config.owner = {0, 0};
    config.messages_max = 100;
    EventBuilder builder(config, packets, messages, events);
    const auto announce = [&](std::uint32_t source, std::uint64_t number, TimeNs now) {
        return builder.offer(
            {.kind = Descriptor::Kind::announce, .source = source, .number = number, .first_ns = now, .time_ns = now});
    };
    for (std::uint64_t number = 0; number < 16; ++number) EXPECT_TRUE(announce(0, number, 0));
    builder.advance(1000);
    EXPECT_EQ(builder.commands(0).size(), 16u);
    EXPECT_EQ(builder.pop_closed(), nullptr);
    for (std::uint64_t number = 16; number < 32; ++number) EXPECT_TRUE(announce(0, number, 1001));
    EXPECT_EQ(events.get(EventCounter::opened), 32u);
    // Another source announces for one that is closing: it is told at once.
    builder.consume_commands(0, 16);
    EXPECT_TRUE(announce(1, 3, 1002));
    ASSERT_EQ(builder.commands(0).size(), 1u);
    EXPECT_EQ(builder.commands(0)[0].kind, Command::Kind::close);
    EXPECT_EQ(builder.commands(0)[0].source, 1u);
    EXPECT_EQ(builder.commands(0)[0].number, 3u);
    EXPECT_EQ(builder.commands(0)[0].fate, PacketCounter::late);
}

TEST(Events, WaitForASlowSinkWhereTheInputCanWait) {
    Limits limits{.sources = 1};
    limits.queued_max = 4;
    limits.wait = true;
    Harness harness(limits);
    harness.freeze();
    for (std::uint64_t number = 0; number < 20; ++number) harness.add(whole(0, number, 1));
    EXPECT_EQ(harness.events.size(), 4u);
    for (int i = 0; i < 8; ++i) {
        harness.thaw();
        harness.freeze();
        harness.advance(1);
    }
    harness.thaw();
    harness.finish();
    EXPECT_EQ(harness.count(EventCounter::complete), 20u);
    EXPECT_EQ(harness.count(PacketCounter::placed), 20u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, HaveNoHalfWhenBuffersRunOut) {
    Limits limits{.sources = 2};
    limits.buffers_max = 10;
    Harness harness(limits);
    for (std::uint32_t i = 0; i < 10; ++i) harness.add(piece(0, 1, i, 20, 1));
    EXPECT_EQ(harness.table().buffers_held(), 10u);
    harness.add(piece(0, 1, 10, 20, 2));
    EXPECT_EQ(harness.count(PacketCounter::no_room), 11u);
    EXPECT_EQ(harness.count(EventCounter::incomplete_no_room), 1u);
    EXPECT_EQ(harness.count(EventCounter::dropped_no_room), 1u);
    EXPECT_EQ(harness.table().buffers_held(), 0u);
    harness.add(piece(1, 1, 0, 20, 3));  // the other source of the same event
    harness.add(piece(0, 1, 11, 20, 4));
    EXPECT_EQ(harness.count(PacketCounter::no_room), 13u);
    EXPECT_TRUE(harness.events.empty());
    harness.add(whole(0, 2, 5));  // there is room again
    harness.add(whole(1, 2, 5));
    EXPECT_EQ(harness.count(EventCounter::complete), 1u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, HaveNoHalfWhenMessageSlotsRunOut) {
    Limits limits{.sources = 2};
    limits.messages_max = 8;
    Harness harness(limits);
    harness.freeze();
    for (std::uint64_t number = 0; number < 4; ++number)
        for (std::uint32_t source = 0; source < 2; ++source) harness.add(whole(source, number, 1));
    EXPECT_EQ(harness.table().messages_free(), 0u);
    harness.add(whole(0, 4, 2));
    harness.add(whole(1, 4, 2));
    EXPECT_EQ(harness.count(PacketCounter::no_room), 2u);
    harness.thaw();
    harness.add(whole(0, 5, 3));
    harness.add(whole(1, 5, 3));
    EXPECT_EQ(harness.count(EventCounter::complete), 5u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, HaveNoHalfWhenOneLcoreHasNoSlotForTheFirstPacket) {
    Limits limits{.sources = 2, .rx_count = 2};
    limits.messages_max = 4;
    Harness harness(limits);
    for (std::uint64_t number = 0; number < 4; ++number) harness.add(piece(0, number, 0, 2, 1));
    harness.add(whole(1, 9, 2));
    harness.add(piece(0, 9, 0, 2, 3));
    EXPECT_EQ(harness.count(EventCounter::incomplete_no_room), 1u);
    EXPECT_EQ(harness.count(PacketCounter::no_room), 2u);
    harness.finish();
    EXPECT_EQ(harness.find(9), nullptr);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, RefusedOnOneLcoreTakeBackWhatAnotherHasTaken) {
    Limits limits{.sources = 2, .rx_count = 2};
    limits.buffers_max = 4;
    Harness harness(limits);
    harness.add(whole(1, 1, 1));  // lcore 1 has its whole message delivered
    for (std::uint32_t i = 0; i < 5; ++i) harness.add(piece(0, 1, i, 8, 2));
    harness.finish();
    EXPECT_TRUE(harness.events.empty());
    EXPECT_EQ(harness.count(PacketCounter::no_room), 6u);
    EXPECT_EQ(harness.count(MessageCounter::refused_no_room), 2u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, KeepMemoryBoundedUnderAnyNumberOfOpenOnes) {
    Limits limits{.sources = 4};
    limits.open_max = 16;
    limits.messages_max = 128;
    limits.buffers_max = 256;
    Harness harness(limits);
    for (std::uint64_t number = 0; number < 5000; ++number)
        harness.add(piece(static_cast<std::uint32_t>(number % 4), number, 0, 5, 1));
    EXPECT_LE(harness.builder().open_count(), 16u);
    EXPECT_LE(harness.table().buffers_held(), 16u);
    EXPECT_EQ(harness.count(EventCounter::incomplete_evicted), 5000u - 16u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Events, SurviveEndlessRefusalsWithoutLosingAnAnswer) {
    // Nothing is drained for long: descriptors pile up, and every slot must still come back.
    Limits limits{.sources = 1};
    limits.messages_max = 4;
    limits.buffers_max = 3;
    Harness harness(limits);
    std::uint64_t number = 0;
    for (int round = 0; round < 20'000; ++round) {
        harness.add_undrained(piece(0, number, static_cast<std::uint32_t>(round % 4), 8, 1));
        if (round % 4 == 3) ++number;
    }
    harness.advance(2);
    harness.add(whole(0, 1'000'000, 3));
    EXPECT_NE(harness.find(1'000'000), nullptr);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

}  // namespace
