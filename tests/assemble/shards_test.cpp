// Several shards of the builder: who gets which event, and what they have in common. That they build the same events as
// one does, whatever comes when, is the model test's to say.
#include <gtest/gtest.h>

#include <set>

#include "assemble/shard_of.hpp"
#include "harness.hpp"

namespace {

using namespace weir::assemble;
using namespace weir::assemble::test;

constexpr std::array<std::uint8_t, 2> wide{64, 64};

/// The first `count` numbers from `from` on that belong to this shard.
std::vector<std::uint64_t> numbers_of(const ShardOf& shard_of, std::uint32_t shard, std::size_t count,
                                      std::uint64_t from = 0) {
    std::vector<std::uint64_t> numbers;
    for (; numbers.size() < count; ++from)
        if (shard_of(from) == shard) numbers.push_back(from);
    return numbers;
}

TEST(ShardOf, SpreadsNumbersInARowAndWithAnyStride) {
    constexpr std::uint64_t count = 4096;
    for (const std::uint32_t shards : {2U, 3U, 4U, 7U, 16U})
        for (const std::uint64_t stride : {1ULL, 2ULL, 3ULL, 4ULL, 16ULL, 60ULL, 1000ULL, 4096ULL, 65536ULL,
                                           1ULL << 32U, 1ULL << 40U, 0x9e3779b9ULL})
            for (const std::uint64_t from : {0ULL, 77ULL, ~0ULL - 1000}) {
                const ShardOf shard_of(shards, wide);
                std::vector<std::uint64_t> got(shards);
                for (std::uint64_t i = 0; i < count; ++i) ++got[shard_of(from + i * stride)];
                for (const std::uint64_t share : got) {
                    EXPECT_GT(share, count / shards / 2) << shards << " shards, stride " << stride;
                    EXPECT_LT(share, count / shards * 2) << shards << " shards, stride " << stride;
                }
            }
}

TEST(ShardOf, DoesNotSeeByHowManyTurnsCountersDiffer) {
    for (const unsigned bits : {8U, 16U, 32U, 48U}) {
        const std::array<std::uint8_t, 3> widths{64, static_cast<std::uint8_t>(bits), 56};
        const ShardOf shard_of(5, widths);
        EXPECT_EQ(shard_of.bits(), bits);
        for (std::uint64_t number = 0; number < 300; ++number)
            for (const std::uint64_t turns : {1ULL, 3ULL, ~0ULL})
                EXPECT_EQ(shard_of(number), shard_of(number + (turns << bits)));
    }
}

TEST(ShardOf, GivesAllToOneShardWhereCountersAreTooNarrow) {
    const std::array<std::uint8_t, 2> narrow{64, ShardOf::bits_min - 1};
    const ShardOf shard_of(4, narrow);
    EXPECT_EQ(shard_of.shards(), 1U);
    for (std::uint64_t number = 0; number < 1000; ++number) EXPECT_EQ(shard_of(number), 0U);
    const std::array<std::uint8_t, 1> enough{ShardOf::bits_min};
    EXPECT_EQ(ShardOf(4, enough).shards(), 4U);
}

TEST(Shards, AllHaveTheirPart) {
    Harness harness({.rx_count = 2, .shards = 4});
    for (std::uint64_t i = 0; i < 400; ++i)
        for (std::uint32_t source = 0; source < 2; ++source)
            harness.add(whole_message(source, i, static_cast<TimeNs>(i)));
    harness.finish();
    EXPECT_EQ(harness.count(EventCounter::complete), 400U);
    for (const std::uint64_t opened : harness.opened_by_shard()) {
        EXPECT_GE(opened, 90U);
        EXPECT_LE(opened, 110U);
    }
    EXPECT_EQ(harness.faults(), "");
}

TEST(Shards, ShareOneWindowEvenIfAllEventsAreInOneOfThem) {
    constexpr std::uint32_t window = 16;
    Harness harness({.shards = 4, .open_max = window});
    const std::vector<std::uint64_t> numbers = numbers_of(ShardOf(4, wide), 2, window + 3);
    for (std::uint32_t i = 0; i < window; ++i) harness.add(whole_message(0, numbers[i], i));
    EXPECT_EQ(harness.builder(2).open_count(), window);
    EXPECT_EQ(harness.count(EventCounter::incomplete_evicted), 0U);
    for (std::uint32_t i = window; i < numbers.size(); ++i) harness.add(whole_message(0, numbers[i], i));
    EXPECT_EQ(harness.count(EventCounter::incomplete_evicted), 3U);
    for (std::uint32_t i = 0; i < 3; ++i) EXPECT_NE(harness.find(numbers[i]), nullptr);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Shards, MakeRoomWhereTheEventIsThatOpenedFirst) {
    constexpr std::uint32_t window = 8;
    const ShardOf shard_of(2, wide);
    Harness harness({.shards = 2, .open_max = window});
    const std::vector<std::uint64_t> old = numbers_of(shard_of, 0, window / 2);
    const std::vector<std::uint64_t> young = numbers_of(shard_of, 1, window);
    TimeNs now = 0;
    for (const std::uint64_t number : old) harness.add(whole_message(0, number, now++));
    for (const std::uint64_t number : young) harness.add(whole_message(0, number, now++));
    // Shard 1 was one above the limit each time, and shard 0 gave way.
    for (const std::uint64_t number : old) {
        const EventResult* event = harness.find(number);
        ASSERT_NE(event, nullptr) << number;
        EXPECT_EQ(event->cause, EventCause::evicted);
    }
    EXPECT_EQ(harness.builder(1).open_count(), window);
    EXPECT_EQ(harness.count(EventCounter::incomplete_evicted), window / 2);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Shards, RefuseTogetherWhenTheSinkStandsStill) {
    // Without `wait`: no more than the window and the queue hold, in all shards together.
    Limits limits{.sources = 1, .shards = 3, .open_max = 4, .queued_max = 20};
    Harness harness(limits);
    harness.freeze();
    for (std::uint64_t i = 0; i < 60; ++i) harness.add(whole_message(0, i, static_cast<TimeNs>(i)));
    EXPECT_EQ(harness.count(EventCounter::complete), 24U);
    EXPECT_EQ(harness.count(weir::wire::PacketCounter::queue_full), 36U);
    harness.thaw();
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Shards, NumberEventsAsTheFirstOneOfAllDoes) {
    // Source 0 comes first, just before its counter wraps; source 1 begins after the wrap, in whichever shard.
    for (const unsigned bits : {8U, 16U, 32U})
        for (const std::uint32_t shards : {1U, 2U, 3U, 5U})
            for (std::uint64_t seed = 0; seed < 8; ++seed) {
                Limits limits{.rx_count = 2, .shards = shards};
                limits.number_bits = bits;
                const std::uint64_t turn = std::uint64_t{1} << bits;
                std::vector<Packet> packets;
                for (std::uint64_t i = 0; i < 60; ++i) {
                    const std::uint64_t number = turn - 3 + i;
                    const auto at = static_cast<TimeNs>(10 * i);
                    if (i != 4) packets.push_back(whole_message(0, number % turn, at));
                    if (i >= 3) packets.push_back(whole_message(1, number % turn, at + 1));
                }
                Harness harness(limits);
                if (seed == 0) {
                    for (const Packet& packet : packets) harness.add(packet);
                    harness.finish();
                } else {
                    harness.run_spread(packets, seed);
                }
                std::set<std::uint64_t> numbers;
                for (const EventResult& event : harness.events) numbers.insert(event.number);
                EXPECT_EQ(numbers.size(), 60U);
                EXPECT_EQ(*numbers.begin(), turn - 3) << bits << " bits, " << shards << " shards, seed " << seed;
                EXPECT_EQ(*numbers.rbegin(), turn + 56);
                EXPECT_EQ(harness.faults(), "");
            }
}

TEST(ShardBoard, AsksNoShardMoreOftenThanItCanDo) {
    ShardBoard board(2, 64);
    std::uint32_t asked = 0;
    while (board.ask(1)) ++asked;
    EXPECT_EQ(asked, ShardBoard::asked_max);
    EXPECT_EQ(board.take_asked(1), ShardBoard::asked_max);
    EXPECT_EQ(board.take_asked(1), 0U);
    EXPECT_TRUE(board.ask(1));
}

TEST(ShardBoard, DecidesOnATurnWhenNobodyCanComeEarlier) {
    ShardBoard board(3, 16);
    ASSERT_TRUE(board.post(0, 0, 5, 100));
    board.seen_until(0, 200);
    board.seen_until(1, 200);
    EXPECT_EQ(board.turn(0, 5), std::nullopt);  // shard 2 may have something before 100
    ASSERT_TRUE(board.post(2, 0, 65530, 90));
    board.seen_until(2, 90);
    EXPECT_EQ(board.turn(0, 5), std::optional<std::uint64_t>(65536));
    EXPECT_EQ(board.turn(0, 65530), std::optional<std::uint64_t>(0));
    ASSERT_TRUE(board.post(1, 0, 1, 10));  // too late to change anything
    EXPECT_EQ(board.turn(0, 65530), std::optional<std::uint64_t>(0));
    // Another epoch begins anew; so does one that takes the place of one long gone.
    EXPECT_EQ(board.turn(1, 7), std::optional<std::uint64_t>(0));
    ASSERT_TRUE(board.post(1, 64, 9, 300));
    for (std::uint32_t shard = 0; shard < 3; ++shard) board.seen_until(shard, 300);
    EXPECT_EQ(board.turn(64, 9 + 65536), std::optional<std::uint64_t>(std::uint64_t{0} - 65536));
    EXPECT_EQ(board.turn(0, 5), std::optional<std::uint64_t>(0));  // forgotten
}

}  // namespace
