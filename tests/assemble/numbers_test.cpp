// Event numbers: sparse, strided, wrapping at any width, wild ones, and restarts.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "effort.hpp"
#include "harness.hpp"

namespace {

using namespace weir::assemble;
using namespace weir::assemble::test;
using weir::wire::PacketCounter;

std::uint64_t carried(std::uint64_t number, unsigned bits) {
    return bits == 64 ? number : number & ((std::uint64_t{1} << bits) - 1);
}

void add_message(Harness& harness, std::uint32_t source, std::uint64_t number, std::uint32_t pieces, TimeNs time_ns) {
    for (std::uint32_t i = 0; i < pieces; ++i) harness.add(piece(source, number, i, pieces, time_ns));
}

TEST(Numbers, ExtendToTheNearest) {
    EXPECT_EQ(extend_number(0x00, 0xFF, 8), 0x100u);
    EXPECT_EQ(extend_number(0xFF, 0x100, 8), 0xFFu);
    EXPECT_EQ(extend_number(0x7F, 0x1000, 8), 0x107Fu);
    EXPECT_EQ(extend_number(0x80, 0x1000, 8), 0x0F80u);
    EXPECT_EQ(extend_number(0xFFFF, 0, 16), ~std::uint64_t{0});
    EXPECT_EQ(extend_number(1, 0xFFFFFFFF, 32), 0x100000001u);
    EXPECT_EQ(extend_number(1, 0, 1), ~std::uint64_t{0});
    EXPECT_EQ(extend_number(5, 99, 64), 5u);
    EXPECT_EQ(extend_number(0, (std::uint64_t{1} << 63) - 1, 63), std::uint64_t{1} << 63);
}

TEST(Numbers, MayBeSparseOrStrided) {
    for (const std::uint64_t stride : {1ULL, 2ULL, 1000ULL, 1ULL << 20U, 1ULL << 32U, (1ULL << 40U) + 1}) {
        Limits limits{.sources = 3};
        limits.horizon = 64;
        Harness harness(limits);
        for (std::uint64_t i = 0; i < 500; ++i)
            for (std::uint32_t source = 0; source < 3; ++source) harness.add(whole_message(source, 17 + i * stride, 1));
        EXPECT_EQ(harness.count(EventCounter::complete), 500u) << stride;
        harness.finish();
        EXPECT_EQ(harness.faults(), "");
    }
}

TEST(Numbers, MayWrapAtAnyWidth) {
    for (const unsigned bits : {8U, 12U, 16U, 32U, 48U, 64U}) {
        for (const std::uint32_t horizon : {16U, 4096U}) {
            Limits limits{.sources = 2};
            limits.number_bits = bits;
            limits.horizon = horizon;
            Harness harness(limits);
            const std::uint64_t from = std::uint64_t{0} - (bits == 64 ? 300 : 300 - (std::uint64_t{1} << bits));
            for (std::uint64_t i = 0; i < 1000; ++i)
                for (std::uint32_t source = 0; source < 2; ++source)
                    harness.add(whole_message(source, carried(from + i, bits), static_cast<TimeNs>(i)));
            EXPECT_EQ(harness.count(EventCounter::complete), 1000u) << bits << " bits, horizon " << horizon;
            for (std::size_t i = 1; i < harness.events.size(); ++i)
                EXPECT_EQ(harness.events[i].number, harness.events[i - 1].number + 1);
            EXPECT_EQ(harness.events.back().epoch, 0u);
            harness.finish();
            EXPECT_EQ(harness.faults(), "");
        }
    }
}

TEST(Numbers, MayJumpByMoreThanAQuarterOfTheirRange) {
    Limits limits{.sources = 1};
    limits.number_bits = 16;
    Harness harness(limits);
    std::uint64_t number = 10;
    for (int i = 0; i < 10; ++i) harness.add(whole_message(0, number++, 1));
    for (int jump = 0; jump < 5; ++jump) {
        number += 20'000;
        for (int i = 0; i < 100; ++i) harness.add(whole_message(0, carried(number += 100, 16), 1));
    }
    ASSERT_EQ(harness.events.size(), 510u);
    EXPECT_EQ(harness.events.back().number, number);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Numbers, MeetWhereSourcesStartOnEitherSideOfAWrap) {
    for (const unsigned bits : {8U, 16U, 32U}) {
        for (const std::uint32_t first : {0U, 1U}) {
            Limits limits{.sources = 2};
            limits.number_bits = bits;
            Harness harness(limits);
            const std::uint64_t from = (std::uint64_t{1} << bits) - 2;
            for (std::uint64_t i = 0; i < 2; ++i) harness.add(whole_message(first, carried(from + i, bits), 1));
            for (std::uint64_t i = 2; i < 300; ++i)
                for (std::uint32_t source = 0; source < 2; ++source)
                    harness.add(whole_message(source, carried(from + i, bits), static_cast<TimeNs>(i)));
            for (std::uint64_t i = 0; i < 2; ++i)
                harness.add(whole_message(1 - first, carried(from + 300 + i, bits), 300));
            EXPECT_EQ(harness.count(EventCounter::complete), 298u) << bits;
            harness.finish();
            EXPECT_EQ(harness.count(EventCounter::opened), 302u);
            EXPECT_EQ(harness.faults(), "");
        }
    }
}

TEST(Numbers, MeetWhereOnlyOneSourceIsBehindAWrapAndTimeOutThere) {
    // The events of the source whose number was shifted are closed by command, in that source's own numbers.
    Limits limits{.sources = 2, .rx_count = 2};
    limits.number_bits = 8;
    Harness harness(limits);
    harness.add(whole_message(0, 255, 0));
    for (std::uint64_t i = 0; i < 50; ++i) {
        harness.add(piece(1, i, 0, 2, static_cast<TimeNs>(100 * i)));
        harness.add(piece(0, i, 0, 2, static_cast<TimeNs>(100 * i)));
    }
    harness.advance(10'000);
    EXPECT_EQ(harness.count(EventCounter::incomplete_timeout), 51u);
    for (const EventResult& event : harness.events)
        if (event.sequence > 0) {
            EXPECT_EQ(event.messages.size(), 2u) << event.number;
        }
    EXPECT_EQ(harness.table(1).buffers_held(), 0u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Numbers, ThatAreWildCostOneOpenEventAndNothingElse) {
    const unsigned every = weir::test::one_in({.sanitized = 5, .quick = 5});
    for (const unsigned bits : {16U, 32U, 64U}) {
        for (unsigned flipped = 10; flipped < bits; flipped += every) {
            for (const std::uint64_t at : {0ULL, 1ULL, 7ULL, 8ULL}) {  // the very first packets too
                for (const std::uint32_t wild_source : {0U, 1U}) {
                    Limits limits{.sources = 2};
                    limits.number_bits = bits;
                    limits.horizon = 32;
                    Harness harness(limits);
                    for (std::uint64_t i = 0; i < 100; ++i)
                        for (std::uint32_t source = 0; source < 2; ++source)
                            for (std::uint32_t j = 0; j < 3; ++j) {
                                const bool wild = i == at && source == wild_source && j == 1;
                                harness.add(piece(source, (300 + i) ^ (wild ? std::uint64_t{1} << flipped : 0), j, 3,
                                                  static_cast<TimeNs>(i)));
                            }
                    // The wild one opens an event of its own; the event that it was missing in stays open.
                    EXPECT_EQ(harness.count(EventCounter::complete), 99u)
                        << bits << " bits, bit " << flipped << ", event " << at << ", source " << wild_source;
                    EXPECT_LE(harness.count(EventCounter::opened), 101u);
                    for (const EventResult& event : harness.events) ASSERT_EQ(event.epoch, 0u);
                    harness.finish();
                    EXPECT_EQ(harness.faults(), "");
                }
            }
        }
    }
}

TEST(Numbers, ThatAreWildFirstOfAllDoNotShiftASource) {
    for (const unsigned bits : {8U, 16U, 32U}) {
        for (const std::uint32_t wild_source : {0U, 1U}) {
            for (unsigned flipped = 5; flipped < bits; ++flipped) {
                Limits limits{.sources = 2};
                limits.number_bits = bits;
                Harness harness(limits);
                for (std::uint64_t i = 0; i < 60; ++i)
                    for (std::uint32_t source = 0; source < 2; ++source) {
                        const bool wild = i == 0 && source == wild_source;
                        harness.add(whole_message(source, (70 + i) ^ (wild ? std::uint64_t{1} << flipped : 0),
                                                  static_cast<TimeNs>(i)));
                    }
                EXPECT_GE(harness.count(EventCounter::complete), 58u)
                    << bits << " bits, bit " << flipped << ", source " << wild_source;
                harness.finish();
                EXPECT_EQ(harness.faults(), "");
            }
        }
    }
}

TEST(Numbers, ThatAreWildDoNotMoveTheHorizon) {
    Limits limits{.sources = 1};
    limits.horizon = 16;
    Harness harness(limits);
    for (std::uint64_t i = 0; i < 200; ++i) {
        if (i == 50) harness.add(whole_message(0, std::uint64_t{1} << 50U, 1));
        if (i == 100) harness.add(whole_message(0, 2, 1));  // below everything: late, not a restart
        harness.add(whole_message(0, 1000 + i, 1));
    }
    EXPECT_EQ(harness.count(EventCounter::complete), 201u);
    EXPECT_EQ(harness.events.back().epoch, 0u);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::late), 1u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Restart, BeginsAnEpochInsideAndBeyondTheHorizon) {
    for (const std::uint32_t horizon : {16U, 4096U}) {
        for (const std::uint32_t pieces : {1U, 2U, 4U, 128U}) {
            Limits limits{.sources = 2};
            limits.horizon = horizon;
            Harness harness(limits);
            for (std::uint32_t epoch = 0; epoch < 6; ++epoch)
                for (std::uint64_t number = 0; number < 40; ++number)
                    for (std::uint32_t source = 0; source < 2; ++source)
                        add_message(harness, source, number, pieces, 1);
            EXPECT_EQ(harness.count(EventCounter::complete), 240u) << pieces << " pieces";
            std::set<std::pair<std::uint32_t, std::uint64_t>> seen;
            for (const EventResult& event : harness.events) seen.emplace(event.epoch, event.number);
            EXPECT_EQ(seen.size(), 240u);
            EXPECT_EQ(seen.rbegin()->first, 5u);
            harness.finish();
            EXPECT_EQ(harness.faults(), "");
        }
    }
}

TEST(Restart, IsOfOneSourceAndTheOthersStay) {
    Harness harness({.sources = 3});
    for (std::uint64_t number = 0; number < 20; ++number)
        for (std::uint32_t source = 0; source < 3; ++source) add_message(harness, source, number, 4, 1);
    for (std::uint64_t number = 0; number < 10; ++number) {
        add_message(harness, 0, number, 4, 10);
        add_message(harness, 1, 20 + number, 4, 10);
        add_message(harness, 2, 20 + number, 4, 10);
    }
    harness.advance(2000);
    EXPECT_EQ(harness.find(25, 0)->messages.size(), 2u);
    EXPECT_EQ(harness.find(0, 1)->messages.size(), 1u);
    EXPECT_EQ(harness.find(9, 1)->messages.size(), 1u);
    for (std::uint32_t source = 1; source < 3; ++source)
        for (std::uint64_t number = 0; number < 5; ++number) add_message(harness, source, number, 4, 2001);
    for (std::uint64_t number = 10; number < 20; ++number)
        for (std::uint32_t source = 0; source < 3; ++source) add_message(harness, source, number, 4, 2002);
    for (std::uint64_t number = 10; number < 20; ++number) {
        ASSERT_NE(harness.find(number, 1), nullptr) << number;
        EXPECT_EQ(harness.find(number, 1)->cause, EventCause::complete);
    }
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Restart, IsNotMadeByIsolatedOldPackets) {
    Harness harness({.sources = 2});
    for (std::uint64_t number = 0; number < 200; ++number) {
        for (std::uint32_t source = 0; source < 2; ++source) harness.add(whole_message(source, number, 1));
        if (number >= 50) harness.add(whole_message(0, number - 50, 1));
    }
    EXPECT_EQ(harness.count(EventCounter::complete), 200u);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 150u);
    EXPECT_EQ(harness.events.size(), 200u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Restart, IsNotMadeByTwoMessagesOrByFallingNumbers) {
    Harness harness({.sources = 1});
    for (std::uint64_t number = 0; number < 50; ++number) add_message(harness, 0, number, 4, 1);
    add_message(harness, 0, 10, 4, 2);
    add_message(harness, 0, 11, 4, 2);
    add_message(harness, 0, 50, 4, 2);
    for (const std::uint64_t number : {30ULL, 29ULL, 28ULL, 27ULL, 26ULL}) add_message(harness, 0, number, 4, 3);
    add_message(harness, 0, 51, 4, 3);
    harness.finish();
    EXPECT_EQ(harness.count(EventCounter::complete), 52u);
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 28u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Restart, DoesNotTurnAnOlderDuplicateIntoAnEvent) {
    Harness harness({.sources = 1});
    for (std::uint64_t number = 0; number < 50; ++number) add_message(harness, 0, number, 4, 1);
    add_message(harness, 0, 40, 4, 2);   // a whole_message duplicate
    harness.add(piece(0, 41, 2, 4, 2));  // and a piece of one
    for (std::uint64_t number = 0; number < 5; ++number) add_message(harness, 0, number, 4, 3);
    harness.finish();
    EXPECT_EQ(harness.find(40, 1), nullptr);
    EXPECT_EQ(harness.find(41, 1), nullptr);
    EXPECT_EQ(harness.count(EventCounter::opened), 55u);
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 5u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Restart, OfASlowSourceIsNoticedAlthoughProbationEnds) {
    Harness harness({.sources = 1});
    for (std::uint64_t number = 0; number < 50; ++number) add_message(harness, 0, number, 4, 1);
    for (std::uint64_t number = 0; number < 10; ++number)
        add_message(harness, 0, number, 4, 10'000 + 5000 * static_cast<TimeNs>(number));
    EXPECT_EQ(harness.count(EventCounter::complete), 58u);  // the first two came to nothing before there was proof
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 8u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Restart, CountsNoMessageThatHasTimedOut) {
    Harness harness({.sources = 1});
    for (std::uint64_t number = 0; number < 50; ++number) add_message(harness, 0, number, 4, 1);
    for (std::uint64_t number = 0; number < 3; ++number)
        for (std::uint32_t i = 0; i < 4; ++i)
            harness.add_undrained(piece(0, number, i, 4, 2000 + 500 * static_cast<TimeNs>(number)));
    harness.advance(3000);
    EXPECT_EQ(harness.find(0, 1), nullptr);  // its time-out is when the proof comes
    EXPECT_NE(harness.find(1, 1), nullptr);
    EXPECT_NE(harness.find(2, 1), nullptr);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Restart, WithMessagesInterleavedDeeplyIsNoticed) {
    Harness harness({.sources = 1});
    for (std::uint64_t number = 0; number < 100; ++number) add_message(harness, 0, number, 4, 1);
    for (std::uint32_t i = 0; i < 4; ++i)
        for (std::uint64_t number = 0; number < 48; ++number) harness.add(piece(0, number, i, 4, 2));
    EXPECT_EQ(harness.count(EventCounter::complete), 148u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Restart, LeavesAMessageThatWasOpenAlone) {
    // The source stops in the middle of 5 and begins again at 3, inside what is open.
    Harness harness({.sources = 2});
    for (std::uint64_t number = 0; number < 5; ++number)
        for (std::uint32_t source = 0; source < 2; ++source) add_message(harness, source, number, 8, 1);
    for (std::uint32_t i = 0; i < 4; ++i) harness.add(piece(0, 5, i, 8, 2));
    for (std::uint64_t number = 3; number < 9; ++number) add_message(harness, 0, number, 8, 3);
    harness.advance(5000);
    ASSERT_NE(harness.find(5, 0), nullptr);
    EXPECT_EQ(harness.find(5, 0)->messages.at(0).packets.size(), 4u);
    for (std::uint64_t number = 3; number < 9; ++number) {
        ASSERT_NE(harness.find(number, 1), nullptr) << number;
        EXPECT_TRUE(harness.find(number, 1)->messages.at(0).complete) << number;
    }
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Restart, PassesOverNumbersThatWereLostBefore) {
    Harness harness({.sources = 1});
    for (std::uint64_t number = 0; number < 50; ++number)
        if (number != 2) add_message(harness, 0, number, 16, 1);
    for (std::uint64_t number = 0; number < 8; ++number) add_message(harness, 0, number, 16, 2);
    for (std::uint64_t number = 0; number < 8; ++number) EXPECT_NE(harness.find(number, 1), nullptr) << number;
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Restart, WhileAMessageOfAShiftedSourceIsOpenLeavesNothingBehind) {
    // Source 1 counts one turn behind source 0; its open message of the old epoch must still get its answer.
    Limits limits{.sources = 2, .rx_count = 2};
    limits.number_bits = 8;
    Harness harness(limits);
    harness.add(whole_message(0, 255, 0));
    for (std::uint64_t number = 0; number < 20; ++number)
        for (std::uint32_t source = 0; source < 2; ++source) add_message(harness, source, number, 4, 1);
    harness.add(piece(1, 20, 0, 4, 2));
    for (std::uint64_t number = 0; number < 10; ++number)
        for (std::uint32_t source = 0; source < 2; ++source) add_message(harness, source, number, 4, 3);
    harness.advance(10'000);
    EXPECT_EQ(harness.builder().in_use(), 0u);
    EXPECT_EQ(harness.count(EventCounter::complete), 30u);
    for (std::uint32_t rx = 0; rx < 2; ++rx) EXPECT_EQ(harness.table(rx).buffers_held(), 0u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Restart, DeliversWhatWasOpenAtOnce) {
    // The old event must be able to leave before its time-out, although its source counts in a new epoch.
    Limits limits{.sources = 2, .rx_count = 2};
    limits.number_bits = 8;
    limits.open_max = 2;
    Harness harness(limits);
    add_message(harness, 0, 255, 1, 1);  // and is one turn of the counter behind the other
    for (std::uint64_t number = 0; number < 20; ++number)
        for (std::uint32_t source = 0; source < 2; ++source) add_message(harness, source, number, 4, 1);
    harness.add(piece(1, 20, 0, 4, 2));
    for (std::uint64_t number = 0; number < 10; ++number) add_message(harness, 1, number, 4, 3);
    EXPECT_EQ(harness.builder().in_use(), 2u);  // everything older has been evicted, and has left
    const EventResult* old = harness.find(256 + 20);
    ASSERT_NE(old, nullptr);
    EXPECT_EQ(old->cause, EventCause::evicted);
    EXPECT_EQ(old->messages.at(1).packets.size(), 1u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Restart, OverAndOverLeavesNothingBehind) {
    Limits limits{.sources = 2, .rx_count = 2};
    limits.number_bits = 16;
    Harness harness(limits);
    TimeNs now = 0;
    for (int round = 0; round < 50; ++round) {
        for (std::uint64_t number = 0; number < 12; ++number)
            for (std::uint32_t source = 0; source < 2; ++source)
                harness.add(whole_message(source, number, ++now % 100));
        harness.add(piece(static_cast<std::uint32_t>(round % 2), 12, 0, 4, now % 100));  // stays open
    }
    harness.advance(10'000);
    EXPECT_EQ(harness.builder().in_use(), 0u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Duplicates, HoldBuffersUntilANewNumberComes) {
    Harness harness({.sources = 1});
    harness.add(whole_message(0, 1, 1));
    for (int i = 0; i < 3; ++i) harness.add(piece(0, 1, 0, 1, 2));
    EXPECT_EQ(harness.count(PacketCounter::in_flight), 1u);  // it might have been a restart
    harness.add(whole_message(0, 2, 3));
    EXPECT_EQ(harness.table().buffers_held(), 0u);
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 3u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Duplicates, OfAWholeStreamOneMessageBehindDisturbNothing) {
    // As from a switch that mirrors twice: every packet again, a message later.
    Harness harness({.sources = 2});
    for (std::uint64_t number = 0; number < 100; ++number)
        for (std::uint32_t i = 0; i < 16; ++i)
            for (std::uint32_t source = 0; source < 2; ++source) {
                harness.add(piece(source, number, i, 16, 1));
                // Whole again when half of the next has come.
                if (number > 0 && i < 8) harness.add(piece(source, number - 1, 2 * i, 16, 1));
                if (number > 0 && i < 8) harness.add(piece(source, number - 1, 2 * i + 1, 16, 1));
            }
    EXPECT_EQ(harness.count(EventCounter::complete), 100u);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 99u * 32u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Duplicates, OfAMessageDoNotDivertTheOneThatIsOpen) {
    Harness harness({.sources = 1});
    add_message(harness, 0, 4, 2, 1);
    harness.add(piece(0, 5, 0, 2, 1));
    add_message(harness, 0, 4, 2, 1);
    harness.add(piece(0, 5, 1, 2, 1));
    EXPECT_EQ(harness.count(EventCounter::complete), 2u);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 2u);
    EXPECT_EQ(harness.faults(), "");
}

}  // namespace
