// The initiator against answers written by hand: what it sends, what it sends again, when, and how messages end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "roce/initiator/initiator.hpp"

namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using weir::core::ns_per_ms;
using weir::roce::Acknowledgement;
using weir::roce::Initiator;
using weir::roce::SendPacket;
using weir::roce::SendResult;
using weir::roce::SendStatus;
using weir::wire::RoceTransport;

constexpr std::uint8_t ack = 0x1f;
constexpr std::uint8_t nak_sequence = 0x60;
constexpr std::uint8_t rnr_10_ms = 0x20 | 20;  // 10.24 ms

struct Sender {
    explicit Sender(const Initiator::Config& config) : initiator(config) {}

    static Initiator::Config config() {
        Initiator::Config config;
        config.qp = 0x11;
        config.psn = 100;
        config.path_mtu = 1024;
        config.timeout_ns = 10 * ns_per_ms;
        return config;
    }
    void post(std::uint64_t id, std::uint32_t bytes) {
        ASSERT_TRUE(initiator.post({.id = id, .bytes = bytes, .immediate = static_cast<std::uint32_t>(id)}));
    }
    /// PSNs of everything that may go now.
    std::vector<std::uint32_t> send() {
        std::vector<std::uint32_t> psns;
        SendPacket packet;
        while (initiator.next(now, packet)) {
            psns.push_back(packet.packet.psn);
            packets.push_back(packet);
        }
        return psns;
    }
    void answer(std::uint32_t psn, std::uint8_t syndrome = ack, std::uint32_t msn = 0) {
        initiator.answered({.psn = psn & 0xffffff, .syndrome = syndrome, .msn = msn}, now);
    }
    std::vector<std::pair<std::uint64_t, SendStatus>> results() {
        std::vector<std::pair<std::uint64_t, SendStatus>> all;
        for (SendResult result; initiator.take(result);) all.emplace_back(result.id, result.status);
        return all;
    }

    Initiator initiator;
    weir::core::TimeNs now = 0;
    std::vector<SendPacket> packets;
};

TEST(RoceInitiator, CutsAMessageAtThePathMtu) {
    Sender sender(Sender::config());
    sender.post(7, 2500);
    EXPECT_THAT(sender.send(), ElementsAre(100, 101, 102));
    const std::vector<std::uint8_t> opcodes = {0x00, 0x01, 0x03};
    for (std::size_t i = 0; i < 3; ++i) {
        const SendPacket& packet = sender.packets[i];
        EXPECT_EQ(packet.packet.opcode, opcodes[i]);
        EXPECT_EQ(packet.offset, i * 1024);
        EXPECT_EQ(packet.packet.bytes, i < 2 ? 1024 : 452);
        EXPECT_EQ(packet.packet.ack_request, i == 2);
        EXPECT_EQ(packet.id, 7);
        EXPECT_FALSE(packet.again);
    }
    EXPECT_EQ(sender.packets[2].packet.immediate, 7);
    EXPECT_THAT(sender.results(), IsEmpty());
    sender.answer(102);
    EXPECT_THAT(sender.results(), ElementsAre(std::pair(7, SendStatus::acknowledged)));
    EXPECT_TRUE(sender.initiator.idle());
    EXPECT_EQ(sender.initiator.next_ns(), Initiator::never);
}

TEST(RoceInitiator, AMessageWithoutBytesIsOnePacket) {
    Sender sender(Sender::config());
    sender.post(1, 0);
    EXPECT_THAT(sender.send(), ElementsAre(100));
    EXPECT_EQ(sender.packets[0].packet.opcode, 0x05);
    sender.answer(100);
    EXPECT_THAT(sender.results(), ElementsAre(std::pair(1, SendStatus::acknowledged)));
}

TEST(RoceInitiator, OneAcknowledgementCoversEverythingBeforeIt) {
    Sender sender(Sender::config());
    for (std::uint64_t id = 0; id < 4; ++id) sender.post(id, 1500);
    sender.send();
    sender.answer(104);  // in the middle of the third
    EXPECT_EQ(sender.results().size(), 2);
    EXPECT_EQ(sender.initiator.unacknowledged(), 105);
    sender.answer(107);
    EXPECT_EQ(sender.results().size(), 2);
}

TEST(RoceInitiator, TheWindowEndsWithARequestForAnAcknowledgement) {
    Initiator::Config config = Sender::config();
    config.window = 4;
    config.ack_every = 3;
    Sender sender(config);
    sender.post(0, 10 * 1024);
    EXPECT_THAT(sender.send(), ElementsAre(100, 101, 102, 103));
    EXPECT_FALSE(sender.packets[1].packet.ack_request);
    EXPECT_TRUE(sender.packets[2].packet.ack_request) << "ack_every";
    EXPECT_TRUE(sender.packets[3].packet.ack_request) << "the window";
    sender.answer(101);
    EXPECT_THAT(sender.send(), ElementsAre(104, 105));
}

TEST(RoceInitiator, ASequenceNakSendsAgainFromThereAndOnlyOnce) {
    Sender sender(Sender::config());
    sender.post(0, 2048);
    sender.post(1, 4096);
    sender.send();
    sender.answer(103, nak_sequence);
    EXPECT_THAT(sender.results(), ElementsAre(std::pair(0, SendStatus::acknowledged)))
        << "what is before a NAK arrived";
    SendPacket packet;
    ASSERT_TRUE(sender.initiator.next(0, packet));
    EXPECT_EQ(packet.packet.psn, 103);
    EXPECT_EQ(packet.offset, 1024);
    EXPECT_TRUE(packet.again);
    sender.answer(103, nak_sequence);  // the network doubled it
    EXPECT_THAT(sender.send(), ElementsAre(104, 105));
    EXPECT_EQ(sender.initiator.account().sequence_naks, 1);
    EXPECT_EQ(sender.initiator.account().stale_answers, 1);
    EXPECT_EQ(sender.initiator.account().retransmitted, 3);
    sender.answer(105);
    EXPECT_THAT(sender.results(), ElementsAre(std::pair(1, SendStatus::acknowledged)));
}

TEST(RoceInitiator, EveryLossIsMadeUpForAtOnceAfterProgress) {
    Sender sender(Sender::config());
    sender.post(0, 6 * 1024);
    sender.send();
    sender.answer(101, nak_sequence);
    EXPECT_THAT(sender.send(), ElementsAre(101, 102, 103, 104, 105));
    sender.answer(102);
    sender.answer(103, nak_sequence);  // what was sent again was lost again, further on
    EXPECT_THAT(sender.send(), ElementsAre(103, 104, 105));
    sender.answer(104, nak_sequence);  // and a NAK can be the progress itself
    EXPECT_THAT(sender.send(), ElementsAre(104, 105));
    EXPECT_EQ(sender.initiator.account().sequence_naks, 3);
}

TEST(RoceInitiator, ProgressAllowsAllRetriesAgain) {
    Initiator::Config config = Sender::config();
    config.retries = 1;
    Sender sender(config);
    sender.post(0, 1024);
    sender.post(1, 1024);
    sender.send();
    sender.now = 10 * ns_per_ms;
    EXPECT_THAT(sender.send(), ElementsAre(100, 101));
    sender.answer(100);
    EXPECT_EQ(sender.initiator.next_ns(), 20 * ns_per_ms) << "and the first time-out again";
    sender.now = 20 * ns_per_ms;
    EXPECT_THAT(sender.send(), ElementsAre(101));
    EXPECT_FALSE(sender.initiator.in_error());
    sender.now = 40 * ns_per_ms;
    EXPECT_THAT(sender.send(), IsEmpty());
    EXPECT_TRUE(sender.initiator.in_error());
}

TEST(RoceInitiator, AnAcknowledgementFromBeforeTheRetransmissionCounts) {
    Sender sender(Sender::config());
    sender.post(0, 4096);
    sender.send();
    sender.answer(101, nak_sequence);
    SendPacket packet;
    ASSERT_TRUE(sender.initiator.next(0, packet));
    sender.answer(102);  // the NAK had overtaken it
    EXPECT_THAT(sender.send(), ElementsAre(103));
    sender.answer(103);
    EXPECT_TRUE(sender.initiator.idle());
}

TEST(RoceInitiator, OldAndImpossibleAnswersChangeNothing) {
    Sender sender(Sender::config());
    sender.post(0, 2048);
    sender.send();
    sender.answer(101);
    for (const std::uint8_t syndrome : {ack, nak_sequence, rnr_10_ms, std::uint8_t{0x61}}) {
        sender.answer(100, syndrome);
        sender.answer(102, syndrome);                  // not sent yet
        sender.answer(101 + (1 << 23) - 1, syndrome);  // as far away as can be
    }
    EXPECT_EQ(sender.initiator.account().stale_answers, 4);
    EXPECT_EQ(sender.initiator.account().ghost_answers, 8);
    EXPECT_FALSE(sender.initiator.in_error());
    EXPECT_EQ(sender.results().size(), 1);
    EXPECT_THAT(sender.send(), IsEmpty());
}

TEST(RoceInitiator, WithoutAnAnswerItSendsAgainEverLaterAndThenFails) {
    Initiator::Config config = Sender::config();
    config.retries = 3;
    Sender sender(config);
    sender.post(5, 1024);
    sender.post(6, 1024);
    EXPECT_THAT(sender.send(), ElementsAre(100, 101));
    for (const int ms : {10, 30, 70}) {  // 10, 20 and 40 after the sending before
        EXPECT_EQ(sender.initiator.next_ns(), ms * ns_per_ms);
        sender.now = ms * ns_per_ms - 1;
        EXPECT_THAT(sender.send(), IsEmpty());
        sender.now = ms * ns_per_ms;
        EXPECT_THAT(sender.send(), ElementsAre(100, 101));
    }
    sender.now = 150 * ns_per_ms;
    EXPECT_THAT(sender.send(), IsEmpty());
    EXPECT_THAT(sender.results(),
                ElementsAre(std::pair(5, SendStatus::retries_exceeded), std::pair(6, SendStatus::flushed)));
    EXPECT_TRUE(sender.initiator.in_error());
    EXPECT_FALSE(sender.initiator.post({}));
    EXPECT_EQ(sender.initiator.account().timeouts, 4);
}

TEST(RoceInitiator, ProgressBeginsTheTimeAnew) {
    Sender sender(Sender::config());
    sender.post(0, 1024);
    sender.post(1, 1024);
    sender.send();
    sender.now = 9 * ns_per_ms;
    sender.answer(100);
    EXPECT_EQ(sender.initiator.next_ns(), 19 * ns_per_ms);
    sender.answer(101);
    EXPECT_EQ(sender.initiator.next_ns(), Initiator::never);
}

TEST(RoceInitiator, PacketsThatAskForNothingAreNotWaitedFor) {
    Sender sender(Sender::config());
    sender.post(0, 4096);
    SendPacket packet;
    ASSERT_TRUE(sender.initiator.next(0, packet));
    EXPECT_EQ(sender.initiator.next_ns(), Initiator::never) << "a slow sender owes itself the next packet";
    sender.now = 1000 * ns_per_ms;
    EXPECT_THAT(sender.send(), ElementsAre(101, 102, 103));
    EXPECT_EQ(sender.initiator.next_ns(), 1010 * ns_per_ms);
}

TEST(RoceInitiator, WaitsAsLongAsAReceiverThatIsNotReadyAsks) {
    Sender sender(Sender::config());
    sender.post(0, 1024);
    sender.post(1, 2048);
    sender.send();
    sender.now = 5 * ns_per_ms;
    sender.answer(101, rnr_10_ms);
    EXPECT_THAT(sender.results(), ElementsAre(std::pair(0, SendStatus::acknowledged)));
    sender.answer(101, nak_sequence);  // to the packet after
    sender.now = 15 * ns_per_ms;
    EXPECT_THAT(sender.send(), IsEmpty());
    EXPECT_EQ(sender.initiator.next_ns(), 15'240'000);
    sender.now = 15'240'000;
    EXPECT_THAT(sender.send(), ElementsAre(101, 102));
    EXPECT_EQ(sender.initiator.account().rnr_waits, 1);
    EXPECT_EQ(sender.initiator.account().sequence_naks, 0);
    sender.answer(102);
    EXPECT_EQ(sender.results().size(), 1);
}

TEST(RoceInitiator, WaitsForAReceiverNoMoreOftenThanAllowed) {
    Initiator::Config config = Sender::config();
    config.rnr_retries = 2;
    Sender sender(config);
    sender.post(0, 1024);
    for (int i = 0; i < 3; ++i) {
        EXPECT_THAT(sender.send(), ElementsAre(100));
        sender.answer(100, rnr_10_ms);
        sender.now += 11 * ns_per_ms;
    }
    EXPECT_THAT(sender.results(), ElementsAre(std::pair(0, SendStatus::rnr_retries_exceeded)));
}

TEST(RoceInitiator, ARefusedMessageFailsAndTakesThoseBehindItAlong) {
    for (const auto& [syndrome, status] :
         {std::pair(0x61, SendStatus::invalid_request), std::pair(0x62, SendStatus::access_error),
          std::pair(0x63, SendStatus::operation_error), std::pair(0x64, SendStatus::operation_error),
          std::pair(0x40, SendStatus::operation_error)}) {
        Sender sender(Sender::config());
        for (std::uint64_t id = 0; id < 3; ++id) sender.post(id, 2048);
        sender.send();
        sender.answer(103, static_cast<std::uint8_t>(syndrome));
        EXPECT_THAT(sender.results(), ElementsAre(std::pair(0, SendStatus::acknowledged), std::pair(1, status),
                                                  std::pair(2, SendStatus::flushed)));
        EXPECT_TRUE(sender.initiator.in_error());
        EXPECT_THAT(sender.send(), IsEmpty());
    }
}

TEST(RoceInitiator, PacketNumbersWrap) {
    Initiator::Config config = Sender::config();
    config.psn = 0xfffffe;
    Sender sender(config);
    sender.post(0, 4096);
    EXPECT_THAT(sender.send(), ElementsAre(0xfffffe, 0xffffff, 0, 1));
    sender.answer(0, nak_sequence);
    EXPECT_THAT(sender.send(), ElementsAre(0, 1));
    sender.answer(1);
    EXPECT_TRUE(sender.initiator.idle());
}

TEST(RoceInitiator, WithoutCreditOnePacketGoesAlone) {
    Sender sender(Sender::config());
    sender.post(0, 1024);
    sender.send();
    sender.answer(100, 0, 1);  // one message done, no credit beyond it
    sender.post(1, 3072);
    sender.post(2, 1024);
    EXPECT_THAT(sender.send(), ElementsAre(101));
    EXPECT_TRUE(sender.packets.back().packet.ack_request);
    sender.answer(101, 0, 1);
    EXPECT_THAT(sender.send(), ElementsAre(102, 103)) << "the rest of the message that was let in";
    sender.answer(103, 1, 2);  // two done, one more may come
    EXPECT_THAT(sender.send(), ElementsAre(104));
    sender.answer(104, ack, 3);
    EXPECT_TRUE(sender.initiator.idle());
    EXPECT_EQ(sender.initiator.account().credit_waits, 1);
}

TEST(RoceInitiator, CreditsCountFromTheRespondersOwnNumber) {
    Sender sender(Sender::config());
    sender.post(0, 1024);
    sender.send();
    sender.answer(100, 2, 0xffffff);  // it had served others: 0xfffffe before us
    for (std::uint64_t id = 1; id < 4; ++id) sender.post(id, 1024);
    EXPECT_THAT(sender.send(), ElementsAre(101, 102)) << "two, and the third needs credit";
}

TEST(RoceInitiator, AMessageUnderWayIsNotStrandedByMissingCredit) {
    Sender sender(Sender::config());
    sender.post(0, 1024);
    sender.post(1, 3072);
    SendPacket packet;
    ASSERT_TRUE(sender.initiator.next(0, packet));
    ASSERT_TRUE(sender.initiator.next(0, packet));
    sender.answer(100, 0, 1);
    EXPECT_THAT(sender.send(), ElementsAre(102, 103));
}

TEST(RoceInitiator, CreditCodesAreThoseOfTheAeth) {
    for (const auto& [code, credits] :
         {std::pair(0, 0), std::pair(1, 1), std::pair(3, 3), std::pair(4, 4), std::pair(5, 6), std::pair(6, 8),
          std::pair(7, 12), std::pair(16, 256), std::pair(29, 24576), std::pair(30, 32768)})
        EXPECT_EQ(weir::roce::credits_of(static_cast<std::uint8_t>(code)), credits) << code;
    EXPECT_EQ(weir::roce::credits_of(0x1f), std::nullopt);
}

TEST(RoceInitiator, NobodyAnswersUnreliableServices) {
    for (const RoceTransport service : {RoceTransport::uc, RoceTransport::ud}) {
        Initiator::Config config = Sender::config();
        config.service = service;
        config.window = 1;
        Sender sender(config);
        sender.post(0, 1000);
        sender.post(1, 500);
        EXPECT_THAT(sender.send(), ElementsAre(100, 101));
        EXPECT_THAT(sender.results(), ElementsAre(std::pair(0, SendStatus::sent), std::pair(1, SendStatus::sent)));
        EXPECT_EQ(sender.packets[0].packet.opcode, service == RoceTransport::uc ? 0x25 : 0x65);
        EXPECT_FALSE(sender.packets[0].packet.ack_request);
        sender.answer(100, nak_sequence);
        EXPECT_THAT(sender.send(), IsEmpty());
        EXPECT_EQ(sender.initiator.next_ns(), Initiator::never);
    }
}

TEST(RoceInitiator, WritesSayWhereTheyGo) {
    Initiator::Config config = Sender::config();
    config.is_write = true;
    config.rkey = 0x77;
    Sender sender(config);
    ASSERT_TRUE(sender.initiator.post({.id = 1, .bytes = 2000, .va = 0x1000}));
    sender.send();
    EXPECT_EQ(sender.packets[0].packet.opcode, 0x06);
    EXPECT_EQ(sender.packets[0].packet.va, 0x1000);
    EXPECT_EQ(sender.packets[0].packet.rkey, 0x77);
    EXPECT_EQ(sender.packets[0].packet.dma_length, 2000);
    EXPECT_EQ(sender.packets[1].packet.opcode, 0x08);
}

TEST(RoceInitiator, TakesNoMoreMessagesThanItHasRoomFor) {
    Initiator::Config config = Sender::config();
    config.messages_max = 2;
    Sender sender(config);
    sender.post(0, 10);
    sender.post(1, 10);
    EXPECT_FALSE(sender.initiator.post({.id = 2, .bytes = 10}));
    sender.send();
    sender.answer(100);
    EXPECT_FALSE(sender.initiator.post({.id = 2, .bytes = 10})) << "a result that nobody took keeps its place";
    EXPECT_EQ(sender.results().size(), 1);
    EXPECT_TRUE(sender.initiator.post({.id = 2, .bytes = 10}));
    sender.initiator.abort();
    EXPECT_THAT(sender.results(), ElementsAre(std::pair(1, SendStatus::flushed), std::pair(2, SendStatus::flushed)));
}

}  // namespace
