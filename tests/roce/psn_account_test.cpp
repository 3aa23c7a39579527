// Which PSNs of a queue pair came: losses of whole messages, restarts, what cannot be told, and who sent.
#include "listener_harness.hpp"

namespace weir::roce::test {
namespace {

class PsnAccountTest : public ::testing::Test {
protected:
    void start() { harness = std::make_unique<Harness>(config); }
    /// `count` messages of three packets from `psn` on, without the packets whose place is in `lost`.
    void send(std::uint32_t count, std::uint32_t psn, const std::vector<std::uint32_t>& lost = {}) {
        for (std::uint32_t at = 0; at < 3 * count; ++at) {
            if (at % 3 == 0) payloads.push_back(payload_of(next++, 3 * pmtu - 8));
            spec.immediate = next;
            auto packet = packets_of(spec, payloads.back(), psn + at - at % 3)[at % 3];
            packet.address = packet.address_pair = sender;
            if (std::ranges::find(lost, at) == lost.end()) harness->add(packet, now += 1000);
        }
    }
    void datagram(std::uint32_t psn, std::uint32_t source_qp, std::uint32_t source = 0) {
        payloads.push_back(payload_of(next, 64));
        auto packet = packets_of({wire::RoceTransport::ud, false, next++, pmtu}, payloads.back(), psn)[0];
        packet.source_qp = source_qp;
        packet.address = packet.address_pair = sender;
        harness->add(packet, now += 1000, source);
    }
    void read(std::uint32_t psn, std::uint32_t length) {
        wire::RocePacket packet;
        packet.transport = spec.transport;
        packet.psn = psn;
        packet.dma_length = length;
        packet.address = packet.address_pair = sender;
        harness->listener.skip(0, packet, now += 1000);
    }
    [[nodiscard]] PsnCounts::Values counts(std::uint32_t source = 0) const {
        return harness->listener.psn_counts(source);
    }

    HarnessConfig config;
    MessageSpec spec{wire::RoceTransport::uc, false, std::nullopt, pmtu};
    std::uint64_t sender = 1;
    std::uint32_t next = 0;
    std::deque<std::vector<std::byte>> payloads;
    std::unique_ptr<Harness> harness;
    core::TimeNs now = 0;
};

TEST_F(PsnAccountTest, MessagesOfWhichNothingCameAreMissing) {
    start();
    send(10, 0xfffffa, {9, 10, 11, 12, 13, 14, 20});
    EXPECT_EQ(counts().transport, wire::RoceTransport::uc);
    EXPECT_EQ(counts().expected, 30U);
    EXPECT_EQ(counts().seen, 23U);
    EXPECT_EQ(counts().missing(), 7U);
    EXPECT_EQ(counts().senders, 1U);
}

TEST_F(PsnAccountTest, WhatComesBeforeTheFirstOrLateIsOutOfOrder) {
    start();
    send(3, 103);
    send(1, 100);  // before the first that came
    EXPECT_EQ(counts().expected, 12U);
    EXPECT_EQ(counts().missing(), 0U);
    EXPECT_EQ(counts().out_of_order, 3U);
    send(1, 100);
    EXPECT_EQ(counts().repeated, 3U);
    EXPECT_EQ(counts().seen, 12U);
}

TEST_F(PsnAccountTest, AKnownFirstPsnMakesTheFirstMessageMissing) {
    config.sources[0].first_psn = 97;
    start();
    send(2, 100);
    EXPECT_EQ(counts().expected, 9U);
    EXPECT_EQ(counts().missing(), 3U);
}

TEST_F(PsnAccountTest, ASenderThatBeginsAnewHasLostNothing) {
    start();
    send(20, 1000);
    send(20, 1000);  // of an unreliable connection: not retransmitted, but sent again
    EXPECT_EQ(counts().restarts, 1U);
    EXPECT_EQ(counts().repeated, 0U);
    EXPECT_EQ(counts().expected, 120U);
    EXPECT_EQ(counts().missing(), 0U);
    send(2, 1000 - 0x700000);
    EXPECT_EQ(counts().restarts, 2U);
    EXPECT_EQ(counts().jumps, 0U);
    EXPECT_EQ(counts().missing(), 0U);
}

TEST_F(PsnAccountTest, AStepTooLargeToTellLossFromANewBeginningIsNeither) {
    start();
    send(20, 1000);
    send(20, 1060 + 100'000);
    EXPECT_EQ(counts().jumps, 1U);
    EXPECT_EQ(counts().jump_psns, 100'000U);
    EXPECT_EQ(counts().expected, 120U);
    EXPECT_EQ(counts().missing(), 0U);
}

TEST_F(PsnAccountTest, RetransmissionsAreRepeatedAndFillTheirGaps) {
    spec.transport = wire::RoceTransport::rc;
    start();
    send(5, 0, {4});
    EXPECT_EQ(counts().missing(), 1U);
    send(4, 3);  // go-back-N from the second message on
    EXPECT_EQ(counts().missing(), 0U);
    EXPECT_EQ(counts().repeated, 11U);
}

TEST_F(PsnAccountTest, ReadsUsePsnsAsFarAsIsKnown) {
    spec.transport = wire::RoceTransport::rc;
    start();
    send(1, 0);
    read(3, 10 * pmtu);
    send(1, 13);
    EXPECT_EQ(counts().expected, 16U);
    EXPECT_EQ(counts().missing(), 0U);
}

TEST_F(PsnAccountTest, AReadOfUnknownPacketsSaysNothingOfWhatFollows) {
    spec.transport = wire::RoceTransport::rc;
    start();
    read(0, 10 * pmtu);
    send(1, 10);
    EXPECT_EQ(counts().missing(), 0U);
    EXPECT_EQ(counts().restarts + counts().jumps, 0U);
}

TEST_F(PsnAccountTest, SendersOfDatagramsHavePsnsOfTheirOwn) {
    start();
    for (std::uint32_t i = 0; i < 10; ++i) {
        datagram(100 + i, 7);
        if (i != 4) datagram(50'000 + i, 8);
    }
    EXPECT_EQ(counts().senders, 2U);
    EXPECT_EQ(counts().expected, 20U);
    EXPECT_EQ(counts().missing(), 1U);
}

TEST_F(PsnAccountTest, OneSenderOfDatagramsIsKnownAgain) {
    config.sources.push_back({.source = 1});
    start();
    datagram(1, 7, 0);
    datagram(2, 7, 1);
    EXPECT_EQ(counts(0).sender, counts(1).sender);
    sender = 2;
    start();
    datagram(1, 7, 0);
    datagram(2, 8, 1);
    EXPECT_NE(counts(0).sender, counts(1).sender);
}

}  // namespace
}  // namespace weir::roce::test
