// Who sends to a queue pair: several senders, datagrams, READs between messages; and what one message proves of the
// next.
#include <algorithm>

#include "listener_harness.hpp"

namespace weir::roce::test {
namespace {

class ConnectionsTest : public ::testing::Test {
protected:
    void start(NumberBy by = NumberBy::immediate) {
        config.sources[0].number_by = by;
        harness = std::make_unique<Harness>(config);
    }
    /// Message `id` of `packets` packets, the last one short; its number is the id.
    std::vector<wire::RocePacket> message(std::uint32_t id, std::uint32_t packets, std::uint32_t psn) {
        payloads.push_back(payload_of(id, packets == 0 ? 0 : packets * pmtu - 100));
        spec.immediate = id;
        auto out = packets_of(spec, payloads.back(), psn);
        for (wire::RocePacket& packet : out) {
            packet.address_pair = sender;
            packet.source_qp = spec.transport == wire::RoceTransport::ud ? sender_qp : 0;
        }
        return out;
    }
    void send(const std::vector<wire::RocePacket>& packets, const std::vector<std::size_t>& without = {}) {
        for (std::size_t i = 0; i < packets.size(); ++i)
            if (std::find(without.begin(), without.end(), i) == without.end()) harness->add(packets[i], now += 1000);
    }
    void skip(std::uint32_t psn, std::uint32_t dma_length) {
        wire::RocePacket read;
        read.transport = wire::RoceTransport::rc;
        read.psn = psn;
        read.dma_length = dma_length;
        harness->listener.skip(0, read, now += 1000);
        harness->drain(now);
    }
    std::vector<std::uint64_t> numbers() const {
        std::vector<std::uint64_t> out;
        for (const Delivered& got : harness->delivered) out.push_back(got.number);
        return out;
    }
    /// The message that the bytes say they are of.
    static std::uint32_t id_in(const Delivered& got) {
        std::uint32_t word = 0;
        std::memcpy(&word, got.bytes.data() + got.ranges.at(0).begin, 4);
        return word >> 18U;
    }
    std::uint64_t count(PacketCounter counter) const { return harness->packets.get(counter); }
    void finish() { harness->finish(now); }

    HarnessConfig config;
    MessageSpec spec{wire::RoceTransport::uc, false, std::nullopt, pmtu};
    std::uint64_t sender = 1;
    std::uint32_t sender_qp = 0;
    std::deque<std::vector<std::byte>> payloads;
    std::unique_ptr<Harness> harness;
    core::TimeNs now = 0;
};

using Numbers = std::vector<std::uint64_t>;

TEST_F(ConnectionsTest, TwoSendersWithTheSamePsnsDoNotMix) {
    start();
    const auto a = message(1, 5, 100);
    sender = 2;
    const auto b = message(2, 5, 100);
    // What is missing of one is there of the other.
    for (std::size_t i = 0; i < 5; ++i) harness->add(i % 2 == 0 ? a[i] : b[i], now += 1000);
    send({b[0], b[2], b[4], a[1], a[3]});
    finish();
    ASSERT_EQ(harness->delivered.size(), 2U);
    for (const Delivered& got : harness->delivered) EXPECT_EQ(got.bytes, payloads[got.number - 1]);
    EXPECT_EQ(count(PacketCounter::placed), 10U);
}

TEST_F(ConnectionsTest, NumbersGoOnWhenThePeerIsForgottenAndAnotherOneCounts) {
    spec.transport = wire::RoceTransport::rc;
    start(NumberBy::count);
    for (std::uint32_t connection = 0; connection < 3; ++connection) {
        sender = connection;
        for (std::uint32_t i = 0; i < 5; ++i) send(message(5 * connection + i, 3, 1000 * connection + 3 * i));
        harness->listener.forget(0, now += 1000);
        harness->drain(now);
    }
    EXPECT_EQ(harness->delivered.size(), 15U);
    for (const Delivered& got : harness->delivered) EXPECT_EQ(got.number, id_in(got));
    EXPECT_EQ(harness->delivered.back().epoch, 0U);
    finish();
    EXPECT_EQ(count(PacketCounter::placed), 45U);
}

TEST_F(ConnectionsTest, AnAnnouncedPeerIsCountedFromItsFirstPsnAtOnce) {
    spec.transport = wire::RoceTransport::uc;
    config.sources[0].message_bytes = 3 * pmtu - 100;
    start(NumberBy::count);
    harness->listener.forget(0, now, 100);
    send(message(2, 3, 106));  // messages 0 and 1 were lost
    ASSERT_EQ(harness->delivered.size(), 1U) << "it waits for others";
    EXPECT_EQ(harness->delivered[0].number, 2U);
    harness->listener.forget(0, now, 0xfffffe);
    send(message(3, 3, 0xfffffe));
    ASSERT_EQ(harness->delivered.size(), 2U);
    EXPECT_EQ(harness->delivered[1].number, 3U);
    finish();
}

TEST_F(ConnectionsTest, InOrderTheFirstMessageIsMessageZeroAtOnce) {
    spec.transport = wire::RoceTransport::rc;
    config.sources[0].in_order = true;
    start(NumberBy::count);
    for (std::uint32_t i = 0; i < 3; ++i) {
        send(message(i, 3, 50 + 3 * i));
        ASSERT_EQ(harness->delivered.size(), i + 1);
        EXPECT_EQ(harness->delivered[i].number, i);
    }
    finish();
}

TEST_F(ConnectionsTest, TransportsDoNotMix) {
    start();
    const auto a = message(1, 3, 100);
    spec.transport = wire::RoceTransport::rc;
    const auto b = message(2, 3, 100);
    send({a[0], b[1], a[2]});
    finish();
    ASSERT_EQ(harness->delivered.size(), 1U);
    EXPECT_EQ(harness->delivered[0].ranges.size(), 2U);
    EXPECT_EQ(count(PacketCounter::unbound), 1U);
}

TEST_F(ConnectionsTest, MoreSendersThanPlacesForgetTheOneSilentForLongest) {
    start(NumberBy::arrival);
    for (std::uint32_t i = 0; i < 200; ++i) {
        sender = i;
        send(message(i, 3, 7));
    }
    EXPECT_EQ(harness->delivered.size(), 200U);
    send(message(199, 3, 7));
    finish();
    EXPECT_EQ(count(PacketCounter::duplicate), 3U);
}

TEST_F(ConnectionsTest, WhoTakesAnothersPlaceEndsWhatIsOpenThere) {
    start();
    spec.is_write = true;
    const auto first = message(1, 6, 40);
    send({first[0], first[5]});
    for (std::uint32_t i = 2; i < 102; ++i) {
        sender = i;
        send(message(i, 2, 40));
    }
    sender = 1;
    send({first[1], first[2]});
    finish();
    const auto got = std::find_if(harness->delivered.begin(), harness->delivered.end(),
                                  [](const Delivered& one) { return one.number == 1; });
    ASSERT_NE(got, harness->delivered.end());
    EXPECT_EQ(got->ranges.size(), 2U);
    EXPECT_EQ(count(PacketCounter::unbound), 2U);
}

TEST_F(ConnectionsTest, OnlyOneSenderIsCounted) {
    config.timeout_ns = 1'000'000;
    start(NumberBy::count);
    for (std::uint32_t i = 0; i < 40; ++i) send(message(i, 2, 2 * i));
    sender = 2;
    for (std::uint32_t i = 0; i < 5; ++i) send(message(500 + i, 2, 2 * i));
    EXPECT_EQ(count(PacketCounter::unbound), 10U);
    EXPECT_EQ(harness->delivered.size(), 40U);
    finish();
    for (const Delivered& got : harness->delivered) EXPECT_EQ(got.number, id_in(got));
}

TEST_F(ConnectionsTest, AnotherSenderIsCountedOnceTheFirstIsSilent) {
    config.timeout_ns = 1'000'000;
    start(NumberBy::count);
    for (std::uint32_t i = 0; i < 40; ++i) send(message(i, 2, 2 * i));
    now += 2'000'000;
    sender = 2;
    for (std::uint32_t i = 0; i < 40; ++i) send(message(i, 2, 7000 + 2 * i));
    finish();
    ASSERT_EQ(harness->delivered.size(), 80U);
    EXPECT_EQ(harness->delivered.back().epoch, 1U);
    for (const Delivered& got : harness->delivered) EXPECT_EQ(got.number, id_in(got));
}

TEST_F(ConnectionsTest, DatagramsOfTwoQueuePairsOfOneHostDoNotMix) {
    spec.transport = wire::RoceTransport::ud;
    start();
    for (std::uint32_t i = 0; i < 20; ++i) {
        sender_qp = 5 + i % 2;
        send(message(i, 1, 100 + i / 2));
    }
    send(message(19, 1, 109));
    finish();
    EXPECT_EQ(harness->delivered.size(), 20U);
    EXPECT_EQ(count(PacketCounter::duplicate), 1U);
}

TEST_F(ConnectionsTest, DatagramsAreCountedByTheirPsns) {
    spec.transport = wire::RoceTransport::ud;
    start(NumberBy::count);
    for (std::uint32_t i = 0; i < 100; ++i)
        if (i % 7 != 3 && i != 50 && i != 51) send(message(i, 1, (0xffffd0 + i) & 0xffffff));
    finish();
    EXPECT_EQ(harness->delivered.size(), 84U);
    for (const Delivered& got : harness->delivered) EXPECT_EQ(got.number, id_in(got));
}

TEST_F(ConnectionsTest, DatagramsMaySkipAnyNumberOfPsns) {
    spec.transport = wire::RoceTransport::ud;
    start(NumberBy::arrival);
    std::uint32_t psn = 10;
    for (std::uint32_t i = 0; i < 60; ++i) {
        send(message(i, 1, psn & 0xffffff));
        if (i % 3 == 0) send(message(i, 1, psn & 0xffffff));
        psn += i % 2 == 0 ? 40'000 : 3'000'000;
    }
    finish();
    EXPECT_EQ(harness->delivered.size(), 60U);
    EXPECT_EQ(count(PacketCounter::duplicate), 20U);
}

TEST_F(ConnectionsTest, DatagramSenderThatStartsAgainLosesNothing) {
    spec.transport = wire::RoceTransport::ud;
    start(NumberBy::arrival);
    for (int round = 0; round < 3; ++round)
        for (std::uint32_t i = 0; i < 50; ++i) send(message(i, 1, i));
    finish();
    EXPECT_EQ(harness->delivered.size(), 150U);
}

TEST_F(ConnectionsTest, WriteTellsWhereTheNextMessageStarts) {
    start();
    spec.is_write = true;
    const auto before = message(1, 4, 0);
    spec.is_write = false;
    const auto after = message(2, 4, 4);
    // Opened first, so it ends first; two packets between the two runs are missing.
    send({after[1], after[2], after[3], before[0], before[1], before[2]});
    finish();
    ASSERT_EQ(harness->delivered.size(), 1U);
    EXPECT_EQ(harness->delivered[0].number, 2U);
    EXPECT_EQ(harness->delivered[0].ranges[0].begin, pmtu);
    EXPECT_EQ(harness->delivered[0].total, 4 * pmtu - 100);
}

TEST_F(ConnectionsTest, NothingIsProvenWhereTheWriteMayEndBehindTheGap) {
    start(NumberBy::arrival);
    spec.is_write = true;
    const auto before = message(1, 9, 0);
    const auto after = message(2, 5, 9);
    send({after[2], after[3], after[4], before[0], before[1], before[2]});
    finish();
    ASSERT_EQ(harness->delivered.size(), 1U);  // the first one, whose start and length are known
    EXPECT_EQ(harness->delivered[0].total, 9 * pmtu - 100);
    EXPECT_EQ(count(PacketCounter::unbound), 3U);
}

TEST_F(ConnectionsTest, LoneLastIsPlacedOnceThePathMtuIsKnown) {
    start();
    send(message(1, 3, 0));
    send(message(2, 2, 3), {0});
    finish();
    ASSERT_EQ(numbers(), (Numbers{1, 2}));
    EXPECT_EQ(harness->delivered[1].ranges[0].begin, pmtu);
    EXPECT_EQ(harness->delivered[1].total, 2 * pmtu - 100);
}

TEST_F(ConnectionsTest, LoneLastIsNotPlacedWhereThePathMtuVaries) {
    start();
    send(message(1, 3, 0));
    spec.pmtu = 2 * pmtu;
    send(message(3, 3, 3));
    send(message(4, 2, 5));
    send(message(5, 4, 6), {0});
    finish();
    EXPECT_EQ(numbers(), (Numbers{1, 3, 4}));
    EXPECT_EQ(count(PacketCounter::unbound), 1U);
}

TEST_F(ConnectionsTest, OneSizeProvesThePlaceOfEveryPacket) {
    config.sources[0].message_bytes = 6 * pmtu - 100;
    start(NumberBy::count);
    for (std::uint32_t i = 0; i < 40; ++i) send(message(i, 6, 6 * i));
    send(message(40, 6, 240), {0, 1, 2, 4, 5});  // one packet of the middle
    send(message(41, 6, 246), {0, 1, 3, 5});
    send(message(42, 6, 252), {0, 1, 2, 3, 4, 5});
    send(message(43, 6, 258), {0, 1, 2, 3, 4});  // the LAST alone
    finish();
    ASSERT_EQ(harness->delivered.size(), 43U);
    for (const Delivered& got : harness->delivered) {
        EXPECT_EQ(got.total, 6 * pmtu - 100);
        EXPECT_EQ(got.number, id_in(got));
    }
    EXPECT_EQ(harness->delivered[40].ranges[0].begin, 3 * pmtu);
    EXPECT_EQ(harness->delivered[41].ranges.size(), 2U);
    EXPECT_EQ(harness->delivered[42].ranges[0].begin, 5 * pmtu);
}

TEST_F(ConnectionsTest, CountGoesOnOverOneLostOnly) {
    start(NumberBy::count);
    for (std::uint32_t i = 0; i < 40; ++i) send(message(i, 2, 2 * i));
    send(message(40, 1, 80), {0});
    send(message(41, 2, 81));
    send(message(42, 1, 83), {0});
    send(message(43, 4, 84), {1});
    send(message(44, 2, 88));
    finish();
    EXPECT_EQ(harness->delivered.size(), 43U);
    for (const Delivered& got : harness->delivered) EXPECT_EQ(got.number, id_in(got));
    EXPECT_EQ(count(PacketCounter::unbound), 0U);
}

TEST_F(ConnectionsTest, OnReliableConnectionsTheLostPacketMayHaveBeenARead) {
    spec.transport = wire::RoceTransport::rc;
    start(NumberBy::count);
    for (std::uint32_t i = 0; i < 40; ++i) send(message(i, 2, 2 * i));
    send(message(40, 2, 81));
    finish();
    EXPECT_EQ(harness->delivered.size(), 40U);
    EXPECT_EQ(count(PacketCounter::unbound), 2U);
}

TEST_F(ConnectionsTest, CountGoesOnOverAReadOfAnyLength) {
    spec.transport = wire::RoceTransport::rc;
    sender = 0;
    start(NumberBy::count);
    for (std::uint32_t i = 0; i < 40; ++i) send(message(i, 2, 2 * i));
    skip(80, 100'000 * pmtu);
    send(message(40, 2, 100'080));
    finish();
    EXPECT_EQ(harness->delivered.size(), 41U);
    for (const Delivered& got : harness->delivered) EXPECT_EQ(got.number, id_in(got));
}

TEST_F(ConnectionsTest, ReadEndsACountByPsns) {
    spec.transport = wire::RoceTransport::rc;
    sender = 0;
    config.sources[0].message_bytes = pmtu - 100;
    start(NumberBy::count);
    for (std::uint32_t i = 0; i < 40; ++i) send(message(i, 1, i));
    skip(40, 10);
    send(message(40, 1, 41));
    finish();
    EXPECT_EQ(harness->delivered.size(), 40U);
    EXPECT_EQ(count(PacketCounter::unbound), 1U);
}

TEST_F(ConnectionsTest, WhatContinuesAnEndedMessageBehindOneLostPacketIsLate) {
    config.timeout_ns = 1'000'000;
    start();
    const auto packets = message(1, 6, 0);
    send({packets[0], packets[1]});
    now += 2'000'000;
    harness->expire(now);
    send({packets[3], packets[4], packets[5]});
    finish();
    EXPECT_EQ(count(PacketCounter::unbound), 2U);
    EXPECT_EQ(count(PacketCounter::late), 3U);
}

}  // namespace
}  // namespace weir::roce::test
