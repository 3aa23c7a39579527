#include "reduce/gather.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <vector>

#include "assemble/message_table.hpp"
#include "core/hot_thread.hpp"
#include "reduce/made_message.hpp"

namespace {

using weir::assemble::ByteRange;
using weir::reduce::gather;
using weir::reduce::GatherCursor;
using weir::reduce::SortedRefs;
using weir::test::FragmentBlock;
using weir::test::MadeMessage;
using weir::test::Message;

std::vector<std::byte> bytes_of(std::uint32_t first, std::size_t count) {
    std::vector<std::byte> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(first + i * 7);
    return out;
}

/// Everything of a message, taken in steps of at most `step` bytes.
std::vector<std::byte> all_of(const Message& message, std::size_t step) {
    SortedRefs refs(1024);
    refs.assign(message);
    std::vector<std::byte> out;
    GatherCursor cursor;
    std::vector<std::byte> memory(step);
    for (;;) {
        const std::size_t got = gather(refs, cursor, memory);
        out.insert(out.end(), memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(got));
        if (got < step) break;
    }
    EXPECT_EQ(gather(refs, cursor, memory), 0u);
    return out;
}

TEST(Gather, PutsFragmentsInOrderOfOffset) {
    MadeMessage made;
    const auto whole = bytes_of(3, 90);
    const auto part = [&](std::ptrdiff_t from, std::ptrdiff_t to) {
        return std::vector<std::byte>(whole.begin() + from, whole.begin() + to);
    };
    made.add(50, part(50, 90));
    made.add(0, part(0, 20));
    made.add(20, part(20, 50));
    for (const std::size_t step : {1u, 7u, 20u, 64u, 90u, 1000u}) EXPECT_EQ(all_of(made.message(), step), whole);
}

TEST(Gather, LeavesGapsAndTrimmedFragmentsOut) {
    MadeMessage made;
    made.add(0, bytes_of(0, 10));
    made.add(10, bytes_of(10, 10));
    made.add(30, bytes_of(30, 10));
    made.add(40, bytes_of(40, 10));
    made.trim(1);
    auto expected = bytes_of(0, 10);
    for (const std::uint32_t offset : {30u, 40u}) {
        const auto more = bytes_of(offset, 10);
        expected.insert(expected.end(), more.begin(), more.end());
    }
    EXPECT_EQ(all_of(made.message(), 16), expected);

    SortedRefs refs(8);
    refs.assign(made.message());
    std::array<ByteRange, 8> ranges;
    ASSERT_EQ(refs.ranges(ranges), 2u);
    EXPECT_EQ(ranges[0].begin, 0u);
    EXPECT_EQ(ranges[0].end, 10u);
    EXPECT_EQ(ranges[1].begin, 30u);
    EXPECT_EQ(ranges[1].end, 50u);
    EXPECT_EQ(refs.largest_bytes(), 10u);
}

TEST(Gather, CountsRangesBeyondTheRoomForThem) {
    MadeMessage made;
    for (std::uint32_t i = 0; i < 5; ++i) made.add(i * 20, bytes_of(i, 10));
    SortedRefs refs(8);
    refs.assign(made.message());
    std::array<ByteRange, 2> ranges;
    EXPECT_EQ(refs.ranges(ranges), 5u);
    EXPECT_EQ(ranges[1].begin, 20u);
    EXPECT_EQ(ranges[1].end, 30u);
}

/// Two packets that changed places just where one block of references ends and the next begins.
TEST(Gather, SeesDisorderBetweenBlocks) {
    constexpr std::uint32_t packets = 3 * FragmentBlock::capacity;
    weir::wire::PacketTally packet_tally;
    weir::assemble::MessageTally message_tally;
    weir::assemble::MessageTable::Config config;
    weir::assemble::MessageTable table(config, packet_tally, message_tally, [](void**, std::uint32_t) {});
    std::vector<std::byte> payload(packets);
    for (std::uint32_t i = 0; i < packets; ++i) payload[i] = static_cast<std::byte>(i);
    for (std::uint32_t i = 0; i < packets; ++i) {
        std::uint32_t index = i;
        if (i == FragmentBlock::capacity - 1) index = i + 1;
        if (i == FragmentBlock::capacity) index = i - 1;
        weir::wire::Fragment fragment;
        fragment.payload = &payload[index];
        fragment.number = 7;
        fragment.offset = index;
        fragment.bytes = 1;
        fragment.total = packets;
        fragment.total_known = true;
        table.add(0, fragment, &payload[index], 1000 + i);
    }
    ASSERT_EQ(table.pending().size(), 2U);
    const Message& message = *table.pending()[1].message;
    ASSERT_TRUE(message.complete);
    SortedRefs refs(packets);
    refs.assign(message);
    GatherCursor cursor;
    std::vector<std::byte> out(packets);
    EXPECT_EQ(gather(refs, cursor, out), packets);
    EXPECT_EQ(out, payload);
}

TEST(Gather, KnowsAnEmptyMessage) {
    const MadeMessage made{};
    EXPECT_TRUE(all_of(made.message(), 64).empty());
    MadeMessage trimmed;
    trimmed.add(0, bytes_of(0, 10));
    trimmed.trim(0);
    EXPECT_TRUE(all_of(trimmed.message(), 64).empty());
}

/// Equal packets, the last one shorter, in any order; with one missing, or one of another size, they are on no grid.
TEST(Gather, EqualPacketsInAnyOrder) {
    enum class Odd { nothing, missing, split, trimmed };
    std::mt19937 random(1);
    for (const Odd odd : {Odd::nothing, Odd::missing, Odd::split, Odd::trimmed}) {
        for (const std::uint32_t size : {1U, 3U, 64U, 1000U, 1024U}) {
            for (const std::uint32_t count : {2U, 5U, 31U, 32U, 100U}) {
                const std::uint32_t last = (size + 1) / 2;
                const auto whole = bytes_of(size, (count - 1) * size + last);
                std::vector<ByteRange> parts;
                for (std::uint32_t i = 0; i < count; ++i)
                    parts.push_back({i * size, i + 1 < count ? (i + 1) * size : i * size + last});
                auto expected = whole;
                if (odd == Odd::missing) {
                    const ByteRange gone = parts[count / 2];
                    parts.erase(parts.begin() + count / 2);
                    expected.erase(expected.begin() + gone.begin, expected.begin() + gone.end);
                }
                if (odd == Odd::split && size >= 64) {
                    parts.push_back({parts[0].begin + 20, parts[0].end});
                    parts[0].end = 20;
                }
                std::ranges::shuffle(parts, random);
                MadeMessage made;
                for (const ByteRange& part : parts)
                    made.add(part.begin, {whole.begin() + part.begin, whole.begin() + part.end});
                if (odd == Odd::trimmed) {
                    made.add(0, bytes_of(0, size));  // again
                    made.trim(static_cast<std::uint32_t>(parts.size()));
                }
                EXPECT_EQ(all_of(made.message(), 700), expected) << size << " " << count;
            }
        }
    }
}

TEST(Gather, PayloadThatLiesInARow) {
    std::mt19937 random(7);
    for (const std::uint32_t packet : {1u, 16u, 48u, 64u, 100u, 128u, 1024u, 3000u}) {
        for (const bool shuffled : {false, true}) {
            for (const bool row_breaks : {false, true}) {
                constexpr std::uint32_t count = 200;
                const auto whole = bytes_of(packet, std::size_t{count} * packet);
                std::vector<std::uint32_t> order(count);
                std::iota(order.begin(), order.end(), 0U);
                // In a row but for a few, or nowhere.
                if (shuffled) std::shuffle(order.begin(), order.end(), random);
                MadeMessage made;
                made.copy_from_here((std::size_t{packet} + 15) * (row_breaks ? count / 2 : count));
                for (const std::uint32_t i : order)
                    made.add(i * packet, {whole.begin() + i * packet, whole.begin() + (i + 1) * packet});
                for (const std::size_t step : {std::size_t{1}, std::size_t{100}, std::size_t{2048}, std::size_t{4096},
                                               whole.size() - 1, whole.size(), whole.size() + 1})
                    ASSERT_EQ(all_of(made.message(), step), whole) << packet << " " << step;
            }
        }
    }
}

TEST(Gather, RandomMessagesOverManyBlocks) {
    const unsigned seed = std::random_device{}();
    RecordProperty("seed", static_cast<int>(seed));
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    for (int round = 0; round < 30; ++round) {
        std::vector<std::pair<std::uint32_t, std::vector<std::byte>>> parts;
        std::vector<std::byte> expected;
        std::uint32_t offset = 0;
        const auto count = random() % 200 + 1;
        for (unsigned i = 0; i < count; ++i) {
            auto bytes = bytes_of(static_cast<std::uint32_t>(random()), random() % 300 + 1);
            const bool missing = random() % 8 == 0;
            if (!missing) expected.insert(expected.end(), bytes.begin(), bytes.end());
            const auto size = static_cast<std::uint32_t>(bytes.size());
            if (!missing) parts.emplace_back(offset, std::move(bytes));
            offset += size;
        }
        if (round % 2 == 0) std::shuffle(parts.begin(), parts.end(), random);
        MadeMessage made;
        for (const auto& [at, bytes] : parts) {
            if (random() % 20 == 0) made.copy_from_here(random() % 4096);
            made.add(at, bytes);
        }
        EXPECT_EQ(all_of(made.message(), random() % 4096 + 1), expected);
    }
}

// Under the malloc trap this aborts if anything allocates.
TEST(Gather, DoesNotAllocate) {
    MadeMessage made;
    for (std::uint32_t i = 0; i < 100; ++i) made.add((99 - i) * 64, bytes_of(i, 64));
    SortedRefs refs(100);
    std::vector<std::byte> out(6400);
    GatherCursor cursor;
    std::array<ByteRange, 4> ranges;
    weir::core::hot_thread(true);
    refs.assign(made.message());
    const std::size_t got = gather(refs, cursor, out);
    const std::size_t count = refs.ranges(ranges);
    weir::core::hot_thread(false);
    EXPECT_EQ(got, 6400u);
    EXPECT_EQ(count, 1u);
}

}  // namespace
