// The listener, one behaviour at a time: numbering, what is proven of lossy messages, restarts, limits, refusals.
#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "listener_harness.hpp"

namespace weir::roce::test {
namespace {

using Bytes = std::vector<std::byte>;

class ListenerTest : public ::testing::Test {
protected:
    void start(NumberBy by = NumberBy::immediate) {
        config.sources[0].number_by = by;
        harness = std::make_unique<Harness>(config);
    }
    /// The packets of a message of `packets` packets (the last one short), kept alive here.
    std::vector<wire::RocePacket> message(std::uint32_t id, std::uint32_t packets, std::uint32_t psn) {
        payloads.push_back(payload_of(id, packets == 0 ? 0 : packets * pmtu - 100));
        spec.immediate = id;
        return packets_of(spec, payloads.back(), psn);
    }
    void send(const std::vector<wire::RocePacket>& packets, const std::vector<std::size_t>& without = {}) {
        for (std::size_t i = 0; i < packets.size(); ++i)
            if (std::find(without.begin(), without.end(), i) == without.end()) harness->add(packets[i], now += 1000);
    }
    void finish() { harness->finish(now); }
    /// A header of 300 bytes, more than one packet, with the number at its end.
    void use_declared() {
        wire::FormatOptions options;
        options.declared.name = "d";
        options.declared.header_bytes = 300;
        options.declared.event.emplace();
        options.declared.event->offset = 280;
        options.declared.event->bytes = 8;
        config.sources[0].format = wire::find_format("declared");
        ASSERT_NE(config.sources[0].format, nullptr);
        config.sources[0].context = config.sources[0].format->make_context(options);
    }
    std::uint64_t count(PacketCounter counter) const { return harness->packets.get(counter); }
    std::vector<std::uint64_t> numbers() const {
        std::vector<std::uint64_t> out;
        for (const Delivered& got : harness->delivered)
            if (got.complete) out.push_back(got.number);
        return out;
    }

    HarnessConfig config;
    MessageSpec spec{wire::RoceTransport::uc, false, std::nullopt, pmtu};
    std::deque<Bytes> payloads;
    std::unique_ptr<Harness> harness;
    core::TimeNs now = 0;
};

TEST_F(ListenerTest, DeliversAcrossTheWrapInAnyOrder) {
    start();
    auto packets = message(7, 9, 0xfffffc);
    std::reverse(packets.begin(), packets.end());
    send(packets);
    ASSERT_EQ(harness->delivered.size(), 1U);
    EXPECT_EQ(harness->delivered[0].number, 7U);
    EXPECT_TRUE(harness->delivered[0].complete);
    EXPECT_EQ(harness->delivered[0].bytes, payloads[0]);
    finish();
}

TEST_F(ListenerTest, WithoutAnImmediateThereIsNoNumber) {
    start();
    auto packets = message(7, 3, 0);
    packets.back().has_immediate = false;
    send(packets);
    finish();
    EXPECT_EQ(count(PacketCounter::unbound), 3U);
    EXPECT_EQ(harness->messages.get(assemble::MessageCounter::refused_unbound), 1U);
}

TEST_F(ListenerTest, RetransmissionsAreDuplicatesLongAfter) {
    spec.transport = wire::RoceTransport::rc;
    start();
    const auto first = message(0, 40, 100);
    send(first);
    for (std::uint32_t i = 1; i < 400; ++i) send(message(i, 40, 100 + 40 * i));
    send(first);
    finish();
    EXPECT_EQ(count(PacketCounter::duplicate), 40U);
    EXPECT_EQ(numbers().size(), 400U);
}

TEST_F(ListenerTest, ArrivalNumbersInClosingOrderWithEmptyMessages) {
    start(NumberBy::arrival);
    send(message(50, 2, 10));
    send(message(51, 0, 12));
    send(message(52, 1, 13));
    finish();
    EXPECT_EQ(numbers(), (std::vector<std::uint64_t>{0, 1, 2}));
    EXPECT_EQ(harness->delivered[1].total, 0U);
    EXPECT_EQ(count(PacketCounter::placed), 4U);
}

TEST_F(ListenerTest, WriteKeepsExactRangesWhateverIsLost) {
    spec.is_write = true;
    start();
    send(message(3, 10, 5), {1, 2, 3, 6});
    EXPECT_TRUE(harness->delivered.empty());
    finish();
    ASSERT_EQ(harness->delivered.size(), 1U);
    const Delivered& got = harness->delivered[0];
    EXPECT_FALSE(got.complete);
    EXPECT_EQ(got.total, 10 * pmtu - 100);
    ASSERT_EQ(got.ranges.size(), 3U);
    EXPECT_EQ(got.ranges[1].begin, 4 * pmtu);
    EXPECT_EQ(got.ranges[1].end, 6 * pmtu);
}

TEST_F(ListenerTest, SendJoinsOverOneLostPacketOnly) {
    start();
    send(message(1, 6, 0), {2, 4});
    send(message(2, 6, 6), {2, 3});
    finish();
    ASSERT_EQ(harness->delivered.size(), 1U);
    EXPECT_EQ(harness->delivered[0].number, 1U);
    EXPECT_EQ(harness->delivered[0].total, 6 * pmtu - 100);
    EXPECT_EQ(count(PacketCounter::unbound), 4U);
}

TEST_F(ListenerTest, LostFirstBehindAKnownEndIsProven) {
    start();
    send(message(1, 2, 0));
    send(message(2, 4, 2), {0});
    send(message(3, 4, 6), {0, 1});
    finish();
    ASSERT_EQ(harness->delivered.size(), 2U);
    EXPECT_EQ(harness->delivered[1].number, 2U);
    EXPECT_EQ(harness->delivered[1].ranges[0].begin, pmtu);
    EXPECT_EQ(count(PacketCounter::unbound), 2U);
}

TEST_F(ListenerTest, ConfiguredSizeProvesLongGapsAndTheStart) {
    config.sources[0].message_bytes = 8 * pmtu - 100;
    start();
    send(message(1, 8, 0), {3, 4, 5});
    send(message(2, 8, 8), {0, 1, 2, 5});
    finish();
    ASSERT_EQ(harness->delivered.size(), 2U);
    EXPECT_EQ(harness->delivered[0].ranges.size(), 2U);
    EXPECT_EQ(harness->delivered[1].ranges[0].begin, 3 * pmtu);
    EXPECT_EQ(harness->delivered[1].total, 8 * pmtu - 100);
}

TEST_F(ListenerTest, LastLostLeavesTheSizeUnknown) {
    start(NumberBy::arrival);
    send(message(1, 4, 0), {3});
    send(message(2, 2, 4));
    finish();
    ASSERT_EQ(harness->delivered.size(), 2U);
    EXPECT_FALSE(harness->delivered[1].total_known);
    EXPECT_EQ(harness->delivered[1].ranges[0].end, 3 * pmtu);
}

TEST_F(ListenerTest, TimeOutEndsAMessageAndTheRestIsLateHoweverOftenTheListenerIsAsked) {
    spec.is_write = true;
    config.timeout_ns = 1'000'000;
    for (const bool asked : {true, false}) {
        start();
        const auto packets = message(1, 6, 0);
        send(packets, {2});
        now += 2'000'000;
        if (asked) harness->expire(now);
        harness->add(packets[2], now);
        harness->add(packets[3], now);
        ASSERT_EQ(harness->delivered.size(), 1U);
        EXPECT_FALSE(harness->delivered[0].complete);
        finish();
        EXPECT_EQ(count(PacketCounter::late), 2U);
    }
}

TEST_F(ListenerTest, WhatContinuesAnAbandonedMessageIsLate) {
    config.timeout_ns = 1'000'000;
    start();
    const auto packets = message(1, 6, 0);
    send({packets[0], packets[1]});
    now += 2'000'000;
    harness->expire(now);
    send({packets[2], packets[3], packets[4], packets[5]});
    finish();
    EXPECT_EQ(count(PacketCounter::unbound), 2U);
    EXPECT_EQ(count(PacketCounter::late), 4U);
}

TEST_F(ListenerTest, RunThatTurnsOutToContinueAnAbandonedMessageGoesToo) {
    config.timeout_ns = 1'000'000;
    start();
    const auto packets = message(1, 5, 0);
    send({packets[0], packets[1]});
    now += 2'000'000;
    harness->expire(now);
    send({packets[3], packets[4], packets[2]});
    EXPECT_EQ(count(PacketCounter::late), 3U);
    finish();
    EXPECT_EQ(count(PacketCounter::unbound), 2U);
}

TEST_F(ListenerTest, SendAndWriteNeverMix) {
    start();
    auto packets = message(1, 4, 0);
    packets[1].is_write = packets[2].is_write = packets[3].is_write = true;
    send(packets);
    finish();
    EXPECT_TRUE(harness->delivered.empty());
    EXPECT_EQ(count(PacketCounter::unbound), 4U);
}

TEST_F(ListenerTest, WindowEndsTheOldest) {
    config.window = 4;
    start();
    send(message(0, 3, 0), {1});
    for (std::uint32_t i = 1; i < 4; ++i) send(message(i, 3, 3 * i));
    ASSERT_EQ(harness->delivered.size(), 3U);  // its own LAST counts as well
    send(message(4, 3, 12));
    ASSERT_EQ(harness->delivered.size(), 5U);
    EXPECT_EQ(harness->delivered[4].number, 0U);
    finish();
}

TEST_F(ListenerTest, WriteOfAnotherSizeIsAConflict) {
    spec.is_write = true;
    start();
    auto packets = message(1, 4, 0);
    packets[0].dma_length += 1;
    send(packets);
    finish();
    EXPECT_TRUE(harness->delivered.empty());
    EXPECT_EQ(count(PacketCounter::conflict), 4U);
}

TEST_F(ListenerTest, MiddleWhereTheLastMustBeIsAConflict) {
    spec.is_write = true;
    start(NumberBy::arrival);
    auto packets = message(1, 4, 0);
    packets[3].place = wire::RocePlace::middle;
    packets[3].bytes = pmtu;
    send(packets, {1});
    finish();
    EXPECT_TRUE(harness->delivered.empty());
    EXPECT_EQ(count(PacketCounter::conflict), 1U);
    EXPECT_EQ(count(PacketCounter::late), 2U);
}

TEST_F(ListenerTest, PacketThatDoesNotFitDoesNotTakeThePlaceOfTheRightOne) {
    start();
    auto packets = message(1, 4, 0);
    auto wrong = packets[1];
    wrong.bytes -= 4;
    send({packets[0], wrong, packets[1], packets[2], packets[3]});
    finish();
    EXPECT_EQ(count(PacketCounter::conflict), 1U);
    EXPECT_EQ(numbers().size(), 1U);
}

TEST_F(ListenerTest, ImpossibleLengthsAreMalformed) {
    start();
    auto packets = message(1, 3, 0);
    packets[0].bytes = 0;
    harness->add(packets[0], now);
    packets[2].bytes = 0;
    harness->add(packets[2], now);
    spec.is_write = true;
    auto write = message(2, 1, 9);
    write[0].dma_length = 1;
    harness->add(write[0], now);
    auto longer = message(3, 3, 20);
    longer[0].dma_length = pmtu;
    harness->add(longer[0], now);
    finish();
    EXPECT_EQ(count(PacketCounter::malformed_roce_length), 4U);
}

TEST_F(ListenerTest, TooLargeMessagesAreRefusedWhole) {
    config.sources[0].max_message_bytes = 4 * pmtu;
    start();
    send(message(1, 8, 0));
    send(message(2, 2, 8));
    spec.is_write = true;
    send(message(3, 8, 10));
    send(message(4, 2, 18));
    finish();
    EXPECT_EQ(count(PacketCounter::malformed_message_size), 16U);
    EXPECT_EQ(numbers(), (std::vector<std::uint64_t>{2, 4}));
}

TEST_F(ListenerTest, OneWildPsnMovesNothing) {
    start();
    const auto packets = message(1, 6, 1000);
    auto wild = packets[2];
    wild.psn ^= 0x400000;
    send({packets[0], packets[1], wild, packets[2], packets[3], packets[4], packets[5]});
    finish();
    EXPECT_EQ(numbers().size(), 1U);
    EXPECT_EQ(count(PacketCounter::unbound), 1U);
}

TEST_F(ListenerTest, RestartFarAwayLosesNothing) {
    start();
    send(message(1, 6, 1000));
    send(message(2, 6, 1006), {3, 4, 5});
    send(message(3, 6, 0x700000));
    send(message(4, 6, 0x700006));
    EXPECT_EQ(numbers(), (std::vector<std::uint64_t>{1, 3, 4}));
    send(message(5, 1, 0x200001));
    send(message(6, 1, 0x200000));
    finish();
    EXPECT_EQ(numbers().size(), 5U);
}

TEST_F(ListenerTest, UnreliableRestartAtTheSamePsn) {
    start(NumberBy::arrival);
    for (int round = 0; round < 2; ++round)
        for (std::uint32_t i = 0; i < 20; ++i) send(message(i, 6, 6 * i));
    finish();
    EXPECT_EQ(numbers().size(), 40U);
    EXPECT_EQ(count(PacketCounter::duplicate), 0U);
}

TEST_F(ListenerTest, ReliableRepeatsAreNeverARestart) {
    spec.transport = wire::RoceTransport::rc;
    start(NumberBy::arrival);
    for (int round = 0; round < 2; ++round)
        for (std::uint32_t i = 0; i < 20; ++i) send(message(i, 6, 6 * i));
    finish();
    EXPECT_EQ(numbers().size(), 20U);
    EXPECT_EQ(count(PacketCounter::duplicate), 120U);
}

TEST_F(ListenerTest, CountInPsnOrder) {
    start(NumberBy::count);
    std::vector<wire::RocePacket> all;
    std::uint32_t psn = 0xfffff0;
    for (std::uint32_t i = 0; i < 100; ++i) {
        const auto packets = message(i, 1 + i % 4, psn);
        all.insert(all.end(), packets.begin(), packets.end());
        psn = (psn + 1 + i % 4) & 0xffffff;
    }
    for (std::size_t i = 0; i + 12 <= all.size(); i += 12)
        std::reverse(all.begin() + static_cast<std::ptrdiff_t>(i), all.begin() + static_cast<std::ptrdiff_t>(i) + 12);
    send(all);
    finish();
    std::vector<std::uint64_t> expected(100);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(numbers(), expected);
    for (const Delivered& got : harness->delivered) EXPECT_EQ(got.bytes, payloads[got.number]);
}

TEST_F(ListenerTest, CountStopsWhereTheOrderIsLost) {
    start(NumberBy::count);
    for (std::uint32_t i = 0; i < 40; ++i) send(message(i, 2, 2 * i));
    send(message(40, 2, 80), {0, 1});
    for (std::uint32_t i = 41; i < 45; ++i) send(message(i, 2, 2 * i));
    finish();
    EXPECT_EQ(numbers().size(), 40U);
    EXPECT_EQ(count(PacketCounter::unbound), 8U);
}

TEST_F(ListenerTest, CountGoesOnOverReads) {
    start(NumberBy::count);
    for (std::uint32_t i = 0; i < 40; ++i) send(message(i, 2, 2 * i));
    wire::RocePacket read;
    read.transport = spec.transport;
    read.psn = 80;
    read.dma_length = 3 * pmtu;
    harness->listener.skip(0, read, now);
    send(message(40, 2, 83));
    finish();
    EXPECT_EQ(numbers().size(), 41U);
}

TEST_F(ListenerTest, CountWithAConfiguredSizeSurvivesLoss) {
    config.sources[0].message_bytes = 3 * pmtu - 100;
    start(NumberBy::count);
    for (std::uint32_t i = 0; i < 50; ++i)
        if (i < 40 || i > 43)
            send(message(i, 3, 3 * i), i == 45 ? std::vector<std::size_t>{1} : std::vector<std::size_t>{});
    finish();
    ASSERT_EQ(harness->delivered.size(), 46U);
    for (const Delivered& got : harness->delivered) {
        EXPECT_EQ(got.complete, got.number != 45);
        std::uint32_t word = 0;
        std::memcpy(&word, got.bytes.data(), 4);
        EXPECT_EQ(got.number, word >> 18U);
    }
}

TEST_F(ListenerTest, FormatStripsItsHeaderAndShiftsRanges) {
    use_declared();
    spec.is_write = true;
    start(NumberBy::format);
    auto packets = message(1, 6, 0);
    const std::uint64_t number = 4242;
    std::memcpy(payloads[0].data() + 280, &number, 8);
    std::reverse(packets.begin(), packets.end());
    send(packets);
    auto lossy = message(2, 6, 6);
    std::memcpy(payloads[1].data() + 280, &number, 8);
    payloads[1][280] = std::byte{1};
    send(lossy, {3});
    finish();
    ASSERT_EQ(harness->delivered.size(), 2U);
    EXPECT_EQ(harness->delivered[0].number, number);
    EXPECT_EQ(harness->delivered[0].bytes, Bytes(payloads[0].begin() + 300, payloads[0].end()));
    EXPECT_EQ(harness->delivered[0].meta.size(), 64U);
    const Delivered& got = harness->delivered[1];
    ASSERT_EQ(got.ranges.size(), 2U);
    EXPECT_EQ(got.ranges[0].end, 3 * pmtu - 300);
    EXPECT_EQ(got.ranges[1].begin, 4 * pmtu - 300);
    EXPECT_EQ(got.total, 6 * pmtu - 400);
}

TEST_F(ListenerTest, FormatWithItsHeaderLostIsUnbound) {
    use_declared();
    spec.is_write = true;
    start(NumberBy::format);
    send(message(1, 6, 0), {1});
    finish();
    EXPECT_EQ(count(PacketCounter::unbound), 5U);
}

TEST_F(ListenerTest, FormatThatCarriesNoNumberIsRefused) {
    config.sources[0].format = wire::find_format("message");
    config.sources[0].context = config.sources[0].format->make_context({});
    EXPECT_THROW(start(NumberBy::format), core::UsageError);
}

TEST_F(ListenerTest, NoRoomEvictsTheOldestFirst) {
    config.messages_max = 4;
    start();
    for (std::uint32_t i = 0; i < 6; ++i) send(message(i, 3, 10 * i), {2});
    send(message(9, 3, 60));
    finish();
    EXPECT_EQ(numbers(), (std::vector<std::uint64_t>{9}));
    EXPECT_EQ(count(PacketCounter::no_room), 0U);
}

TEST_F(ListenerTest, NoRoomIsForTheWholeMessage) {
    config.buffers_max = 4;
    start();
    send(message(1, 8, 0));
    send(message(2, 3, 8));
    finish();
    EXPECT_EQ(numbers(), (std::vector<std::uint64_t>{2}));
    EXPECT_EQ(count(PacketCounter::placed), 3U);
}

TEST_F(ListenerTest, EvictOldestSaysWhenThereIsNone) {
    start();
    EXPECT_FALSE(harness->listener.evict_oldest(now));
    send(message(1, 3, 0), {2});
    EXPECT_TRUE(harness->listener.evict_oldest(now));
    EXPECT_FALSE(harness->listener.evict_oldest(now));
    finish();
}

TEST_F(ListenerTest, SourcesDoNotMix) {
    config.sources.resize(2);
    config.sources[0].source = 5;
    config.sources[1].source = 2;
    harness = std::make_unique<Harness>(config);
    const auto a = message(1, 5, 100);
    const auto b = message(2, 5, 102);
    for (std::size_t i = 0; i < 5; ++i) {
        harness->add(a[i], now += 1000, 5);
        harness->add(b[i], now += 1000, 2);
    }
    finish();
    ASSERT_EQ(harness->delivered.size(), 2U);
    EXPECT_EQ(harness->delivered[0].source, 5U);
    EXPECT_EQ(harness->delivered[1].bytes, payloads[1]);
}

}  // namespace
}  // namespace weir::roce::test
