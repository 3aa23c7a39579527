// Fragments become messages: any order, duplicates, overlaps, bounds, ranges, declared sizes, room.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "harness.hpp"

namespace {

using namespace weir::assemble;
using namespace weir::assemble::test;
using weir::wire::PacketCounter;
using Missing = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

Packet range(std::uint32_t begin, std::uint32_t end, std::uint32_t total, TimeNs time_ns = 0) {
    return {.source = 0, .number = 1, .offset = begin, .bytes = end - begin, .total = total, .time_ns = time_ns};
}

Limits one_source() {
    Limits limits;
    limits.sources = 1;
    return limits;
}

TEST(Assembly, TakesThePiecesOfAMessageInAnyOrder) {
    std::vector<std::uint32_t> order(40);
    std::iota(order.begin(), order.end(), 0U);
    std::mt19937_64 random(7);
    for (int round = 0; round < 50; ++round) {
        Harness harness(one_source());
        for (const std::uint32_t index : order) harness.add(piece(0, 1, index, 40, 5));
        ASSERT_EQ(harness.events.size(), 1u);
        EXPECT_EQ(harness.events[0].cause, EventCause::complete);
        EXPECT_EQ(harness.events[0].messages.at(0).packets.size(), 40u);
        harness.finish();
        EXPECT_EQ(harness.faults(), "");
        std::ranges::shuffle(order, random);
    }
}

TEST(Assembly, TakesMessagesAndEventsInterleaved) {
    Harness harness({.sources = 3});
    for (std::uint32_t index = 0; index < 10; ++index)
        for (std::uint64_t number = 1; number <= 20; ++number)
            for (std::uint32_t source = 0; source < 3; ++source) harness.add(piece(source, number, index, 10, 1));
    EXPECT_EQ(harness.events.size(), 20u);
    EXPECT_EQ(harness.count(EventCounter::complete), 20u);
    EXPECT_EQ(harness.count(MessageCounter::delivered), 60u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Assembly, CountsADuplicateOnceAndLetsItCompleteNothing) {
    Harness harness(one_source());
    harness.add(piece(0, 1, 0, 3, 1));
    harness.add(piece(0, 1, 0, 3, 2));
    harness.add(piece(0, 1, 0, 3, 3));
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 2u);
    harness.add(piece(0, 1, 2, 3, 4));
    harness.finish();
    const EventResult* event = harness.find(1);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(event->cause, EventCause::end_of_run);
    EXPECT_EQ(event->messages.at(0).packets, (std::vector<std::size_t>{0, 3}));  // the first one stays
    EXPECT_EQ(event->messages.at(0).missing, (Missing{{100, 200}}));
    EXPECT_EQ(harness.faults(), "");
}

TEST(Assembly, TakesAPieceInsideAMergedRangeForADuplicate) {
    Harness harness(one_source());
    harness.add(range(0, 100, 1000));
    harness.add(range(100, 200, 1000));
    harness.add(range(50, 150, 1000));
    harness.add(range(0, 200, 1000));
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 2u);
    EXPECT_EQ(harness.count(PacketCounter::conflict), 0u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Assembly, CallsEveryPartialOverlapAConflict) {
    for (const auto& [begin, end] : {std::pair{199U, 201U},
                                     {150U, 250U},
                                     {250U, 301U},
                                     {299U, 300U + 2},
                                     {100U, 400U},
                                     {199U, 300U},
                                     {200U, 301U},
                                     {0U, 1000U}}) {
        Harness harness(one_source());
        harness.add(range(200, 300, 1000));
        harness.add(range(begin, end, 1000));
        EXPECT_EQ(harness.count(PacketCounter::conflict), 1u) << begin << ".." << end;
        harness.finish();
        EXPECT_EQ(harness.find(1)->messages.at(0).missing, (Missing{{0, 200}, {300, 1000}}));
        EXPECT_EQ(harness.faults(), "");
    }
}

TEST(Assembly, TakesWhatTouchesOnEitherSideOrOnBoth) {
    Harness harness(one_source());
    harness.add(range(200, 300, 600));
    harness.add(range(100, 200, 600));  // touches right
    harness.add(range(300, 400, 600));  // touches left
    harness.add(range(500, 600, 600));
    harness.add(range(400, 500, 600));  // both
    EXPECT_TRUE(harness.events.empty());
    harness.add(range(200, 201, 600));
    harness.add(range(599, 600, 600));
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 2u);
    harness.add(range(0, 100, 600));
    EXPECT_EQ(harness.count(EventCounter::complete), 1u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Assembly, RefusesWhatLiesOutsideTheDeclaredSize) {
    Harness harness(one_source());
    harness.add(range(900, 1001, 1000));
    harness.add({.source = 0, .number = 1, .offset = 0xFFFFFFF0U, .bytes = 32, .total = 1000});
    EXPECT_EQ(harness.count(PacketCounter::malformed_range), 2u);
    EXPECT_EQ(harness.count(MessageCounter::opened), 0u);
    harness.add(range(900, 1000, 1000));  // up to the last byte is inside
    EXPECT_EQ(harness.count(MessageCounter::opened), 1u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Assembly, BoundsTheSizeOfMessages) {
    Limits limits = one_source();
    limits.message_bytes_max = 1000;
    Harness harness(limits);
    harness.add(range(0, 100, 1001));
    harness.add({.source = 0, .number = 1, .offset = 950, .bytes = 51, .total_known = false});
    EXPECT_EQ(harness.count(PacketCounter::malformed_message_size), 2u);
    harness.add({.source = 0, .number = 1, .offset = 950, .bytes = 50, .total_known = false});
    harness.add(range(0, 950, 1000));
    EXPECT_EQ(harness.count(EventCounter::complete), 1u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Assembly, LetsTheFirstDeclaredTotalWin) {
    Harness harness(one_source());
    harness.add({.source = 0, .number = 1, .offset = 300, .bytes = 100, .total_known = false});
    harness.add(range(0, 100, 399));  // does not hold what is there already
    EXPECT_EQ(harness.count(PacketCounter::conflict), 1u);
    harness.add(range(0, 100, 500));
    harness.add(range(100, 200, 600));
    harness.add({.source = 0, .number = 1, .offset = 450, .bytes = 51, .total_known = false});
    EXPECT_EQ(harness.count(PacketCounter::conflict), 3u);
    harness.finish();
    EXPECT_EQ(harness.find(1)->messages.at(0).total, 500u);
    EXPECT_EQ(harness.find(1)->messages.at(0).missing, (Missing{{100, 300}, {400, 500}}));
    EXPECT_EQ(harness.faults(), "");
}

TEST(Assembly, LeavesTheSizeUnknownWhereItWasNeverDeclared) {
    Harness harness(one_source());
    harness.add({.source = 0, .number = 1, .offset = 0, .bytes = 100, .total_known = false});
    harness.finish();
    EXPECT_FALSE(harness.find(1)->messages.at(0).total_known);
    EXPECT_FALSE(harness.find(1)->messages.at(0).complete);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Assembly, CompletesAMessageOfNoBytes) {
    Harness harness({.sources = 2});
    harness.add({.source = 0, .number = 1});
    harness.add({.source = 1, .number = 1});
    EXPECT_EQ(harness.count(EventCounter::complete), 1u);
    for (int i = 0; i < 4; ++i) harness.add({.source = 0, .number = 1});
    harness.add({.source = 0, .number = 2, .bytes = 0, .total = 10});  // nothing of something
    EXPECT_EQ(harness.count(PacketCounter::malformed_payload_length), 1u);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 4u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Assembly, BoundsTheRangesOfAMessage) {
    for (const std::uint32_t blocks : {0U, 1U}) {
        Limits limits = one_source();
        limits.range_blocks = blocks;
        limits.message_bytes_max = 1U << 22;
        const std::uint32_t limit = blocks == 0 ? Message::inline_ranges : RangeBlock::capacity;
        const std::uint32_t total = 2 * 10 * (limit + 3);
        Harness harness(limits);
        for (std::uint32_t i = 0; i < limit; ++i) harness.add(range(20 * i + 10, 20 * i + 20, total));
        EXPECT_EQ(harness.count(PacketCounter::too_fragmented), 0u);
        harness.add(range(20 * limit + 10, 20 * limit + 20, total));
        EXPECT_EQ(harness.count(PacketCounter::too_fragmented), 1u);
        harness.add(range(0, 10, total));   // makes no new range
        harness.add(range(20, 30, total));  // makes two ranges one
        EXPECT_EQ(harness.count(PacketCounter::too_fragmented), 1u);
        harness.add(range(20 * limit + 10, 20 * limit + 20, total));
        EXPECT_EQ(harness.count(PacketCounter::too_fragmented), 1u);
        harness.finish();
        EXPECT_EQ(harness.faults(), "");
    }
}

TEST(Assembly, ReturnsRangeBlocks) {
    Limits limits = one_source();
    limits.range_blocks = 1;
    Harness harness(limits);
    for (std::uint64_t number = 1; number <= 3; ++number) {
        for (std::uint32_t i = 0; i < 40; i += 2) harness.add(piece(0, number, i, 40, 1));
        for (std::uint32_t i = 1; i < 40; i += 2) harness.add(piece(0, number, i, 40, 1));
    }
    EXPECT_EQ(harness.count(EventCounter::complete), 3u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Assembly, KeepsRangesLikeASetOfBytes) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        std::mt19937_64 random(seed);
        Limits limits = one_source();
        limits.range_blocks = 1;
        Harness harness(limits);
        std::vector<bool> have(200);
        std::uint64_t duplicates = 0;
        std::uint64_t conflicts = 0;
        for (int i = 0; i < 60; ++i) {
            const auto begin = static_cast<std::uint32_t>(random() % 196);
            const auto end = begin + 1 + static_cast<std::uint32_t>(random() % 4);
            const auto held = std::count(have.begin() + begin, have.begin() + end, true);
            duplicates += held == end - begin;
            conflicts += held > 0 && held < end - begin;
            if (held == 0) std::fill(have.begin() + begin, have.begin() + end, true);
            harness.add(range(begin, end, 201));
        }
        EXPECT_EQ(harness.count(PacketCounter::duplicate), duplicates) << "seed " << seed;
        EXPECT_EQ(harness.count(PacketCounter::conflict), conflicts) << "seed " << seed;
        harness.finish();
        EXPECT_EQ(harness.faults(), "") << "seed " << seed;
    }
}

TEST(Assembly, KeepsTheFirstPacketsHeaderWithTheMessage) {
    weir::wire::PacketTally packets;
    weir::assemble::MessageTally messages;
    static std::uint32_t released = 0;
    released = 0;
    MessageTable table({}, packets, messages, [](void**, std::uint32_t count) { released += count; });
    std::array<std::byte, 80> header{};
    std::array<std::byte, 8> payload{};
    int buffer = 0;
    for (std::uint8_t first = 1; first <= 2; ++first) {
        for (std::size_t i = 0; i < header.size(); ++i) header[i] = static_cast<std::byte>(first + i);
        weir::wire::Fragment fragment{
            .payload = payload.data(), .number = 1, .bytes = 8, .total = 16, .header = header.data()};
        fragment.offset = 8 * (first - 1U);
        fragment.header_bytes = 80;
        fragment.total_known = true;
        table.add(0, fragment, &buffer, 0);
    }
    ASSERT_EQ(table.pending().size(), 2u);
    Message* message = table.pending()[1].message;
    ASSERT_NE(message, nullptr);
    EXPECT_EQ(message->meta_bytes, Message::meta_bytes_max);  // cut
    EXPECT_EQ(message->meta[0], std::byte{1});
    EXPECT_EQ(message->meta[63], std::byte{64});
    table.execute({Command::Kind::recycle, 0, 1, message}, 0);
    table.end_burst();
    EXPECT_EQ(released, 2u);
}

TEST(Assembly, PayloadThatIsKeptElsewhereHoldsNoBuffer) {
    weir::wire::PacketTally packets;
    weir::assemble::MessageTally messages;
    static std::uint32_t released = 0;
    released = 0;
    MessageTable::Config config;
    config.buffers_max = 100;
    config.messages_max = 4;
    MessageTable table(config, packets, messages, [](void**, std::uint32_t count) { released += count; });
    std::array<std::byte, 8> payload{};
    int buffer = 0;
    Message* message = table.open_unbound(0, 0);
    ASSERT_NE(message, nullptr);
    table.append_kept(*message, &buffer, payload.data(), 0, 8, 1);
    EXPECT_EQ(table.buffers_held(), 0u);
    ASSERT_TRUE(table.append(*message, &buffer, payload.data(), 8, 8, 1));
    EXPECT_EQ(table.buffers_held(), 1u);
    table.abandon(*message, PacketCounter::unbound);
    table.end_burst();
    EXPECT_EQ(table.buffers_held(), 0u);
    EXPECT_EQ(released, 2u);
}

TEST(Assembly, JoinsMessagesThatTurnedOutToBeOne) {
    weir::wire::PacketTally packets;
    weir::assemble::MessageTally messages;
    static std::uint32_t released = 0;
    released = 0;
    MessageTable::Config config;
    config.buffers_max = 2000;
    config.messages_max = 64;
    MessageTable table(config, packets, messages, [](void**, std::uint32_t count) { released += count; });
    std::array<std::byte, 8> payload{};
    int buffer = 0;
    // Runs that never share a block: 16 references each, joined until every buffer is used.
    Message* whole = table.open_unbound(0, 0);
    std::uint32_t offset = 0;
    for (int run = 0; run < 125; ++run) {
        Message* part = table.open_unbound(0, 0);
        ASSERT_NE(part, nullptr);
        for (int i = 0; i < 16; ++i, offset += 8)
            ASSERT_TRUE(table.append(*part, &buffer, payload.data(), offset, 8, 1));
        table.splice(*whole, *part);
    }
    EXPECT_EQ(table.buffers_held(), 2000u);
    EXPECT_FALSE(table.append(*whole, &buffer, payload.data(), offset, 8, 1));
    std::uint32_t expected = 0;
    MessageTable::for_each_ref(*whole, [&](const FragmentRef& ref) { EXPECT_EQ(ref.offset, 8 * expected++); });
    EXPECT_EQ(expected, 2000u);
    whole->total = offset;
    whole->total_known = whole->complete = true;
    EXPECT_EQ(table.add_range(*whole, 0, offset), RangeResult::added);
    table.bind_and_deliver(*whole, 77, 2);
    ASSERT_EQ(table.pending().size(), 1u);
    EXPECT_EQ(table.pending()[0].number, 77u);
    EXPECT_EQ(messages.get(MessageCounter::opened), 1u);
    table.execute({Command::Kind::recycle, 0, 77, whole}, 2);
    table.end_burst();
    EXPECT_EQ(released, 2000u);
    EXPECT_EQ(table.messages_free(), 64u);
}

}  // namespace
