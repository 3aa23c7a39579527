// What happens to new events at a limit, by the operator's choice: refused as a whole, thinned out by number, or made
// to wait; open ones are left in peace. Which limit it was shows in the counters.
#include <gtest/gtest.h>

#include "harness.hpp"

namespace {

using namespace weir::assemble;
using namespace weir::assemble::test;
using weir::wire::PacketCounter;

Limits limits_with(Overload overload, std::uint32_t open_max, std::uint32_t prescale = 1) {
    Limits limits{.sources = 2};
    limits.open_max = open_max;
    limits.overload = overload;
    limits.prescale = prescale;
    return limits;
}

std::vector<std::uint64_t> numbers_of(const Harness& harness) {
    std::vector<std::uint64_t> numbers;
    for (const EventResult& event : harness.events) numbers.push_back(event.number);
    std::ranges::sort(numbers);
    return numbers;
}

TEST(Overload, LevelsHaveTwoMarksAndAReserve) {
    EXPECT_EQ(fill_of(0, 1), Fill::low);
    EXPECT_EQ(fill_of(1, 1), Fill::full);
    EXPECT_EQ(fill_of(50, 100), Fill::low);
    EXPECT_EQ(fill_of(51, 100), Fill::middle);
    EXPECT_EQ(fill_of(74, 100), Fill::middle);
    EXPECT_EQ(fill_of(75, 100), Fill::high);
    EXPECT_EQ(fill_of(88, 100), Fill::full);
    EXPECT_EQ(fill_of(1ULL << 32U, 1ULL << 32U), Fill::full);
}

TEST(Overload, RefuseNewKeepsTheOpenEventsAndRefusesWholeOnes) {
    Harness harness(limits_with(Overload::refuse_new, 2));
    harness.add(piece(0, 1, 0, 2, 1));
    harness.add(whole_message(0, 2, 2));
    for (std::uint32_t source = 0; source < 2; ++source)
        for (std::uint32_t i = 0; i < 3; ++i) harness.add(piece(source, 3, i, 3, 3));
    EXPECT_TRUE(harness.events.empty());
    EXPECT_EQ(harness.count(PacketCounter::no_room), 6u);
    EXPECT_EQ(harness.count(EventCounter::refused_no_room), 1u);
    harness.add(piece(0, 1, 1, 2, 4));  // what was open goes on
    harness.add(whole_message(1, 1, 5));
    harness.add(whole_message(1, 3, 6));  // refused stays refused, although there is room again
    harness.add(whole_message(0, 4, 7));
    harness.add(whole_message(1, 4, 8));
    harness.add(whole_message(1, 2, 9));
    harness.finish();
    EXPECT_EQ(numbers_of(harness), (std::vector<std::uint64_t>{1, 2, 4}));
    EXPECT_EQ(harness.count(EventCounter::complete), 3u);
    EXPECT_EQ(harness.count(PacketCounter::no_room), 7u);
    EXPECT_EQ(harness.count(EventCounter::incomplete_evicted), 0u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Overload, RefuseNewTakesNoEventWhileAnRxLcoreKeepsItsLastBuffersForOpenOnes) {
    Harness harness(limits_with(Overload::refuse_new, 8));
    harness.add(whole_message(0, 1, 1));
    harness.builder().watch(Fill::full, false);
    harness.add(whole_message(0, 2, 2));
    harness.builder().make_room();  // nobody asked for an eviction
    EXPECT_EQ(harness.builder().open_count(), 1u);
    harness.builder().watch(Fill::high, false);
    harness.add(whole_message(0, 3, 3));
    harness.finish();
    EXPECT_EQ(numbers_of(harness), (std::vector<std::uint64_t>{1, 3}));
    EXPECT_EQ(harness.count(PacketCounter::no_room), 1u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Overload, EvictOldestMakesRoomWhereBuffersAreShort) {
    Harness harness(limits_with(Overload::evict_oldest, 8));
    harness.add(whole_message(0, 1, 1));
    harness.add(whole_message(0, 2, 2));
    harness.builder().make_room();
    harness.advance(3);
    ASSERT_EQ(harness.events.size(), 1u);
    EXPECT_EQ(harness.events[0].number, 1u);
    EXPECT_EQ(harness.events[0].cause, EventCause::evicted);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Overload, PrescaleKeepsEveryNthNumberFromTheHighMarkToTheLowOne) {
    Harness harness(limits_with(Overload::prescale, 8, 10));
    TimeNs now = 0;
    for (std::uint64_t number = 1; number <= 6; ++number) harness.add(whole_message(0, number, ++now));
    EXPECT_FALSE(harness.builder().prescaler().active());
    for (std::uint64_t number = 7; number <= 29; ++number)  // from six of eight on
        for (std::uint32_t source = 0; source < 2; ++source) harness.add(whole_message(source, number, ++now));
    EXPECT_TRUE(harness.builder().prescaler().active());
    harness.add(whole_message(1, 1, ++now));  // five are open: between the marks
    harness.add(whole_message(0, 31, ++now));
    harness.add(whole_message(1, 2, ++now));  // four: it is over
    for (std::uint32_t source = 0; source < 2; ++source) harness.add(whole_message(source, 33, ++now));
    EXPECT_FALSE(harness.builder().prescaler().active());
    harness.finish();
    EXPECT_EQ(numbers_of(harness), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 10, 20, 33}));
    EXPECT_EQ(harness.count(EventCounter::refused_prescaled), 22u);
    EXPECT_EQ(harness.count(PacketCounter::prescaled), 43u);
    EXPECT_EQ(harness.count(MessageCounter::refused_prescaled), 43u);
    EXPECT_EQ(harness.builder().prescale_kept(), 2u);
    EXPECT_EQ(harness.builder().prescaler().times(), 1u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Overload, PrescaleRefusesWhatItWouldKeepWhereThereIsNoRoomAtAll) {
    Harness harness(limits_with(Overload::prescale, 2, 2));
    harness.add(whole_message(0, 1, 1));
    harness.add(whole_message(0, 2, 2));
    harness.add(whole_message(0, 3, 3));
    harness.add(whole_message(0, 4, 4));
    harness.finish();
    EXPECT_EQ(harness.count(EventCounter::refused_prescaled), 1u);
    EXPECT_EQ(harness.count(EventCounter::refused_no_room), 1u);
    EXPECT_EQ(numbers_of(harness), (std::vector<std::uint64_t>{1, 2}));
    EXPECT_EQ(harness.faults(), "");
}

TEST(Overload, PrescaleBeginsWhenClosedEventsWaitForTheSink) {
    Limits limits = limits_with(Overload::prescale, 4, 3);
    limits.queued_max = 8;
    Harness harness(limits);
    harness.freeze();
    TimeNs now = 0;
    for (std::uint64_t number = 1; number <= 30; ++number)
        for (std::uint32_t source = 0; source < 2; ++source) harness.add(whole_message(source, number, ++now));
    // Six wait; then 9, 12, 15, ... until there are twelve, which is all that queue and window hold.
    EXPECT_EQ(numbers_of(harness), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 9, 12, 15, 18, 21, 24}));
    EXPECT_EQ(harness.count(EventCounter::refused_queue_full), 2u);
    EXPECT_EQ(harness.count(EventCounter::refused_prescaled), 16u);
    harness.thaw();
    for (std::uint64_t number = 31; number <= 33; ++number)
        for (std::uint32_t source = 0; source < 2; ++source) harness.add(whole_message(source, number, ++now));
    EXPECT_EQ(harness.events.size(), 15u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Overload, OfAnotherBuilderMakesThisOneChooseByNumberToo) {
    Harness harness(limits_with(Overload::prescale, 100, 4));
    harness.builder().watch(Fill::low, true);
    for (std::uint64_t number = 0; number < 8; ++number) harness.add(whole_message(0, number, 1));
    harness.builder().watch(Fill::low, false);
    harness.add(whole_message(0, 9, 2));
    harness.finish();
    EXPECT_EQ(numbers_of(harness), (std::vector<std::uint64_t>{0, 4, 9}));
    EXPECT_EQ(harness.faults(), "");
}

TEST(Overload, IsNotWhatWaitingHelpsAgainst) {
    for (const Overload overload : {Overload::evict_oldest, Overload::refuse_new, Overload::prescale}) {
        Limits limits = limits_with(overload, 100, 2);
        limits.queued_max = 4;
        limits.wait = true;
        Harness harness(limits);
        harness.freeze();
        harness.builder().watch(Fill::full, false);
        for (std::uint64_t number = 0; number < 20; ++number)
            for (std::uint32_t source = 0; source < 2; ++source) harness.add(whole_message(source, number, 1));
        EXPECT_EQ(harness.events.size(), 4u);
        for (int i = 0; i < 8; ++i) {
            harness.thaw();
            harness.freeze();
            harness.advance(1);
        }
        harness.thaw();
        harness.finish();
        EXPECT_EQ(harness.count(EventCounter::complete), 20u);
        EXPECT_EQ(harness.faults(), "");
    }
}

TEST(Overload, AMessageThatLearnsItsNumberLateIsRefusedAsAWhole) {
    Harness harness(limits_with(Overload::prescale, 1, 2));
    const std::vector<Harness::Part> parts{{0, 100, 1}, {100, 100, 2}};
    harness.bind(0, 2, 200, parts, 3);
    harness.bind(0, 3, 200, parts, 4);
    EXPECT_EQ(harness.count(PacketCounter::prescaled), 2u);
    EXPECT_EQ(harness.count(MessageCounter::refused_prescaled), 1u);
    harness.bind(1, 3, 200, parts, 5);
    harness.bind(1, 2, 200, parts, 6);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::prescaled), 4u);
    EXPECT_EQ(harness.count(EventCounter::complete), 1u);
    EXPECT_EQ(harness.faults(), "");
}

}  // namespace
