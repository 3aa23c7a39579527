// The responder's rules: (state, packet) -> (answer, counter, what becomes of the message).
// docs/reference/ROCE_ANSWERS.md has the same table in words, with where each rule was learnt.
#include "responder_harness.hpp"

namespace weir::roce::test {
namespace {

using C = PacketCounter;
using A = AnswerCounter;
constexpr auto none = AnswerCounter::count_;
constexpr auto go = PacketCounter::in_flight;
constexpr auto request = PacketCounter::not_for_us_roce_request;
constexpr auto bad_length = PacketCounter::malformed_roce_length;

struct Row {
    const char* name;
    std::vector<P> before;  ///< is accepted
    P packet;
    C counter;
    A sent;
    std::uint32_t psn = 0;  ///< of the answer
    std::uint8_t syndrome = 0;
    std::uint32_t msn = 0;
    wire::Verdict decoded = wire::ok;
    Room room{};
};

void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}

const std::vector<P> nothing;
const std::vector<P> in_send = {P(first, 100, 256)};
const std::vector<P> in_write = {P(first, 100, 256, true).length(600)};
const std::vector<P> one_done = {P(only, 100, 10)};

const std::vector<Row> rows = {
    // What is due.
    {"first", nothing, P(first, 100, 256), go, none},
    {"first that asks", nothing, P(first, 100, 256).ask(), go, A::ack, 100, 0x1f, 0},
    {"only", nothing, P(only, 100, 10), go, none},
    {"only that asks", nothing, P(only, 100, 10).ask(), go, A::ack, 100, 0x1f, 1},
    {"empty only", nothing, P(only, 100, 0).ask(), go, A::ack, 100, 0x1f, 1},
    {"middle", in_send, P(middle, 101, 256).ask(), go, A::ack, 101, 0x1f, 0},
    {"last", in_send, P(last, 101, 1).ask(), go, A::ack, 101, 0x1f, 1},
    {"second message", one_done, P(only, 101, 256).ask(), go, A::ack, 101, 0x1f, 2},
    {"write", nothing, P(only, 100, 200, true).ask(), go, A::ack, 100, 0x1f, 1},
    {"write of nothing, anywhere", nothing, P(only, 100, 0, true).at(1, 99).ask(), go, A::ack, 100, 0x1f, 1},
    {"write middle", in_write, P(middle, 101, 256, true), go, none},
    {"write at the very end of the region", nothing, P(only, 100, 16, true).at(0x10ff0, 5).ask(), go, A::ack, 100, 0x1f,
     1},
    // Before and ahead.
    {"ahead", nothing, P(only, 101, 10), C::roce_sequence, A::nak_sequence, 100, 0x60, 0},
    {"ahead, in a message", in_send, P(last, 102, 10).ask(), C::roce_sequence, A::nak_sequence, 101, 0x60, 0},
    {"far ahead", nothing, P(only, 100 + 0x7fffff, 10), C::roce_sequence, A::nak_sequence, 100, 0x60, 0},
    {"repeated", one_done, P(only, 100, 10), C::duplicate, A::ack, 100, 0x1f, 1},
    {"repeated, of long ago", one_done, P(only, 101 - 0x800000, 10), C::duplicate, A::ack, 100, 0x1f, 1},
    {"repeated in a message", in_send, P(first, 100, 256), C::duplicate, A::ack, 100, 0x1f, 0},
    {"read, repeated", one_done, P(only, 100, 0), request, none, 0, 0, 0, request},
    // The order of opcodes.
    {"middle without first", nothing, P(middle, 100, 256), C::roce_invalid_request, A::nak_invalid_request, 100, 0x61,
     0},
    {"last without first", one_done, P(last, 101, 6), C::roce_invalid_request, A::nak_invalid_request, 101, 0x61, 1},
    {"first in a message", in_send, P(first, 101, 256), C::roce_invalid_request, A::nak_invalid_request, 101, 0x61, 0},
    {"only in a message", in_send, P(only, 101, 6), C::roce_invalid_request, A::nak_invalid_request, 101, 0x61, 0},
    {"write in a send", in_send, P(last, 101, 6, true), C::roce_invalid_request, A::nak_invalid_request, 101, 0x61, 0},
    {"send in a write", in_write, P(last, 101, 6), C::roce_invalid_request, A::nak_invalid_request, 101, 0x61, 0},
    {"read", nothing, P(only, 100, 0), C::roce_invalid_request, A::nak_invalid_request, 100, 0x61, 0, request},
    {"read in a message", in_send, P(only, 101, 0), C::roce_invalid_request, A::nak_invalid_request, 101, 0x61, 0,
     request},
    {"send with invalidate", nothing, P(only, 100, 4).opcode(0x17), C::roce_invalid_request, A::nak_invalid_request,
     100, 0x61, 0},
    // Lengths.
    {"length that its place forbids", nothing, P(only, 100, 4), C::roce_invalid_request, A::nak_invalid_request, 100,
     0x61, 0, bad_length},
    {"first of another path MTU", nothing, P(first, 100, 512), C::roce_invalid_request, A::nak_invalid_request, 100,
     0x61, 0},
    {"only above the path MTU", nothing, P(only, 100, 257), C::roce_invalid_request, A::nak_invalid_request, 100, 0x61,
     0},
    {"last above the path MTU", in_send, P(last, 101, 300), C::roce_invalid_request, A::nak_invalid_request, 101, 0x61,
     0},
    {"write shorter than declared", in_write, P(last, 101, 6, true), C::roce_invalid_request, A::nak_invalid_request,
     101, 0x61, 0},
    {"write longer than declared",
     {P(first, 100, 256, true).length(300)},
     P(middle, 101, 256, true),
     C::roce_invalid_request,
     A::nak_invalid_request,
     101,
     0x61,
     0},
    {"write of more than a message may have", nothing, P(first, 100, 256, true).length(5000), C::roce_invalid_request,
     A::nak_invalid_request, 100, 0x61, 0},
    // Memory.
    {"wrong R_Key", nothing, P(only, 100, 4, true).at(0x10000, 6), C::roce_access, A::nak_remote_access, 100, 0x62, 0},
    {"before the region", nothing, P(only, 100, 4, true).at(0xffff, 5), C::roce_access, A::nak_remote_access, 100, 0x62,
     0},
    {"over the end of the region", nothing, P(only, 100, 17, true).at(0x10ff0, 5), C::roce_access, A::nak_remote_access,
     100, 0x62, 0},
    {"around the end of the address space", nothing, P(only, 100, 4, true).at(~std::uint64_t{0}, 5), C::roce_access,
     A::nak_remote_access, 100, 0x62, 0},
    {"first of a write that will not fit", nothing, P(first, 100, 256, true).at(0x10f00, 5).length(512), C::roce_access,
     A::nak_remote_access, 100, 0x62, 0},
    // Room.
    {"no room for a message",
     nothing,
     P(only, 100, 4).ask(),
     C::roce_not_ready,
     A::rnr_nak,
     100,
     0x2c,
     0,
     wire::ok,
     {.packet = true, .message = false}},
    {"no room for a packet",
     in_send,
     P(middle, 101, 256),
     C::roce_not_ready,
     A::rnr_nak,
     101,
     0x2c,
     0,
     wire::ok,
     {.packet = false, .message = true}},
    {"no room for another message while one goes on",
     in_send,
     P(last, 101, 256).ask(),
     go,
     A::ack,
     101,
     0x1f,
     1,
     wire::ok,
     {.packet = true, .message = false}},
    // Not ours: no answer.
    {"unreliable packet", nothing, P(only, 100, 4).over(wire::RoceTransport::uc), C::roce_service, none},
    {"malformed, and of no transport", nothing, P(only, 100, 4).over(wire::RoceTransport::other), bad_length, none, 0,
     0, 0, bad_length},
    {"other partition", nothing, P(only, 100, 4).partition(0x8001), C::roce_key, none},
    {"limited member of the partition", nothing, P(only, 100, 4).partition(0x7fff).ask(), go, A::ack, 100, 0x1f, 1},
    {"other address", one_done, P(only, 101, 4).from(2), C::roce_peer, none},
};

class Rule : public testing::TestWithParam<Row> {};

TEST_P(Rule, AnswersAndCounts) {
    const Row& row = GetParam();
    Gate gate(rc_pair());
    for (const P& packet : row.before) ASSERT_TRUE(gate.send(packet).accepted());
    const Ruling ruling = gate.send(row.packet, row.decoded, row.room);
    EXPECT_EQ(ruling.counter, row.counter);
    EXPECT_EQ(ruling.sent, row.sent);
    if (row.sent != none) {
        EXPECT_EQ(ruling.answer.kind, wire::RoceAnswer::Kind::acknowledge);
        EXPECT_EQ(ruling.answer.psn, row.psn);
        EXPECT_EQ(ruling.answer.syndrome, row.syndrome);
        EXPECT_EQ(ruling.answer.msn, row.msn);
        EXPECT_EQ(ruling.answer.qp, 0x77U);
    }
    const bool fatal = row.syndrome > 0x60;
    EXPECT_EQ(ruling.failed, fatal);
    EXPECT_EQ(gate.status().state, fatal ? QueuePairState::error : QueuePairState::ready);
    EXPECT_EQ(gate.status().psn, 100 + row.before.size() + (ruling.accepted() ? 1 : 0));
    EXPECT_EQ(gate.refused.get(row.counter), row.counter == go ? 0U : 1U);
    gate.harness.finish(gate.now);
}

INSTANTIATE_TEST_SUITE_P(Responder, Rule, testing::ValuesIn(rows),
                         [](const auto& row) { return std::to_string(row.index); });

TEST(Responder, NamesAGapOnceUntilWhatIsDueHasCome) {
    Gate gate(rc_pair());
    EXPECT_EQ(gate.send(P(only, 102, 4)).sent, A::nak_sequence);
    EXPECT_EQ(gate.send(P(only, 103, 4)).sent, none);
    EXPECT_EQ(gate.send(P(only, 100, 4).ask()).sent, A::ack);
    EXPECT_EQ(gate.send(P(only, 102, 4)).sent, A::nak_sequence);
    EXPECT_EQ(gate.refused.get(C::roce_sequence), 3U);
}

TEST(Responder, IsSilentBehindAPacketThatFoundNoRoom) {
    Gate gate(rc_pair());
    const Room full{.packet = false, .message = false};
    EXPECT_EQ(gate.send(P(only, 100, 4), wire::ok, full).sent, A::rnr_nak);
    EXPECT_EQ(gate.send(P(only, 101, 4), wire::ok, full).sent, none);
    EXPECT_EQ(gate.send(P(only, 100, 4), wire::ok, full).sent, A::rnr_nak);
    EXPECT_EQ(gate.send(P(only, 100, 4).ask()).answer.msn, 1U);
    EXPECT_EQ(gate.status().psn, 101U);
}

TEST(Responder, FlushesAfterAFatalAnswerUntilItIsConfiguredAnew) {
    Gate gate(rc_pair(), NumberBy::immediate);
    ASSERT_TRUE(gate.send(P(first, 100, 256)).accepted());
    ASSERT_TRUE(gate.send(P(first, 101, 256)).failed);
    EXPECT_EQ(gate.harness.receiver.collecting(), 0U) << "what had begun has ended, and its buffers are back";
    EXPECT_EQ(gate.send(P(last, 101, 4)).counter, C::roce_flushed);
    EXPECT_EQ(gate.send(P(only, 100, 4)).sent, none);
    gate.responder.reset(0);
    EXPECT_EQ(gate.send(P(only, 100, 4)).counter, C::roce_reset);
    gate.responder.configure(0, rc_pair());
    const Ruling ruling = gate.send(P(only, 100, 4).imm(9).ask());
    EXPECT_TRUE(ruling.accepted());
    EXPECT_EQ(ruling.answer.msn, 1U);
    gate.harness.finish(gate.now);
    ASSERT_EQ(gate.harness.delivered.size(), 1U);
    EXPECT_EQ(gate.harness.delivered[0].number, 9U);
}

TEST(Responder, AcknowledgesUnaskedAsOftenAsConfigured) {
    QueuePair qp = rc_pair();
    qp.ack_every = 2;
    Gate gate(qp);
    EXPECT_EQ(gate.send(P(first, 100, 256)).sent, none);
    EXPECT_EQ(gate.send(P(middle, 101, 256)).sent, A::ack);
    EXPECT_EQ(gate.send(P(middle, 102, 256)).sent, none);
    EXPECT_EQ(gate.send(P(last, 103, 256)).sent, A::ack);
    EXPECT_EQ(gate.send(P(only, 104, 256)).sent, A::ack) << "the end of a message";
}

TEST(Responder, BeginsWithTheFirstStartOfAMessageIfNobodySaidWhere) {
    QueuePair qp = rc_pair();
    qp.psn.reset();
    qp.path_mtu = 0;
    Gate gate(qp);
    EXPECT_EQ(gate.send(P(middle, 0xfffffd, 256)).counter, C::roce_sequence);
    EXPECT_EQ(gate.send(P(last, 0xfffffe, 256)).sent, none);
    EXPECT_TRUE(gate.send(P(first, 0xffffff, 1024)).accepted());
    EXPECT_TRUE(gate.send(P(middle, 0, 1024)).accepted()) << "over the wrap";
    EXPECT_EQ(gate.send(P(middle, 1, 256)).counter, C::roce_invalid_request) << "the path MTU is what FIRST had";
}

TEST(Responder, StartsEarlierIfTheFirstMessageWasLostAndNothingHasBeenAnswered) {
    QueuePair qp = rc_pair();
    qp.psn.reset();
    Gate gate(qp);
    // 100 and 101 were lost on their way; 102 comes, and then, for want of an answer, everything again.
    EXPECT_TRUE(gate.send(P(first, 102, 256)).accepted());
    EXPECT_TRUE(gate.send(P(first, 100, 256)).accepted());
    EXPECT_EQ(gate.status().psn, 101U);
    EXPECT_TRUE(gate.send(P(last, 101, 256)).accepted());
    EXPECT_TRUE(gate.send(P(first, 102, 256)).accepted());
    EXPECT_EQ(gate.send(P(last, 103, 256).ask()).sent, A::ack);
    gate.harness.finish(gate.now);
    EXPECT_EQ(gate.harness.packets.get(C::placed), 4U);
    EXPECT_EQ(gate.harness.packets.get(C::duplicate), 1U);
    EXPECT_EQ(gate.status().msn, 2U);
}

TEST(Responder, CountsWhatCameBeforeAnAcknowledgedStartAsLost) {
    QueuePair qp = rc_pair();
    qp.psn.reset();
    Gate gate(qp);
    EXPECT_EQ(gate.send(P(only, 102, 256).ask()).sent, A::ack);
    // The sender has not seen the answer yet.
    const Ruling late = gate.send(P(only, 101, 256).ask());
    EXPECT_EQ(late.counter, C::unbound);
    EXPECT_EQ(late.answer.psn, 102U);
    EXPECT_EQ(gate.send(P(only, 102, 256).ask()).counter, C::duplicate);
    EXPECT_TRUE(gate.send(P(only, 103, 256)).accepted());
}

TEST(Responder, ForgetsAnAssumedStartBeforeThePsnsComeRound) {
    QueuePair qp = rc_pair();
    qp.psn.reset();
    Responder responder({.sources = {{.source = 0, .queue_pair = qp, .ready = true}}});
    P packet(only, 7, 4);
    packet.ask();
    for (std::uint32_t i = 0; i < 1U << 22U; ++i, ++packet.packet.psn)
        ASSERT_TRUE(responder.rule(0, packet.packet, wire::ok, {}, 0).accepted());
    EXPECT_EQ(responder.rule(0, P(only, 6, 4).packet, wire::ok, {}, 0).counter, C::duplicate)
        << "or half a turn later what is due would be taken for what was before";
}

TEST(Responder, KnowsWhatCameBeforeAConfiguredStart) {
    Gate gate(rc_pair());
    EXPECT_EQ(gate.send(P(only, 99, 256)).counter, C::duplicate);
}

TEST(Responder, RefusesWhatCanBeNoEvent) {
    QueuePair qp = rc_pair();
    qp.needs_immediate = true;
    Gate by_immediate(qp, NumberBy::immediate);
    EXPECT_TRUE(by_immediate.send(P(only, 100, 4).imm(1)).accepted());
    const Ruling ruling = by_immediate.send(P(only, 101, 4));
    EXPECT_EQ(ruling.counter, C::roce_operation);
    EXPECT_EQ(ruling.answer.syndrome, 0x63);
    qp.needs_immediate = false;
    qp.message_bytes = 300;
    Gate by_size(qp);
    EXPECT_TRUE(by_size.send(P(first, 100, 256)).accepted());
    EXPECT_TRUE(by_size.send(P(last, 101, 44)).accepted());
    EXPECT_EQ(by_size.send(P(only, 102, 44)).sent, A::nak_remote_operation);
}

TEST(Responder, KeepsWritesWithinTheBuffersOfAList) {
    const Region list{.va = 1000, .bytes = 100, .rkey = 1, .count = 3, .stride = 256};
    EXPECT_TRUE(list.holds(1000, 100));
    EXPECT_TRUE(list.holds(1256 + 50, 50));
    EXPECT_TRUE(list.holds(1512, 100));
    EXPECT_FALSE(list.holds(1512 + 1, 100));
    EXPECT_FALSE(list.holds(1100, 1)) << "between two";
    EXPECT_FALSE(list.holds(1768, 1)) << "after the last";
    EXPECT_FALSE(list.holds(1050, 300)) << "over two";
    QueuePair qp = rc_pair();
    qp.regions[0] = list;
    qp.regions[0].remote_write = false;
    Gate gate(qp);
    EXPECT_EQ(gate.send(P(only, 100, 4, true).at(1000, 1)).counter, C::roce_access) << "no permission";
}

TEST(Responder, NotifiesOfCongestionAtMostOncePerInterval) {
    QueuePair qp = rc_pair();
    qp.congestion_interval_us = 1;
    Gate gate(qp);
    P marked(only, 100, 4);
    marked.packet.congestion = true;
    const Ruling ruling = gate.send(marked);
    EXPECT_TRUE(ruling.notify && ruling.accepted());
    EXPECT_EQ(ruling.notification.kind, wire::RoceAnswer::Kind::congestion);
    EXPECT_EQ(ruling.notification.qp, 0x77U);
    marked.packet.psn = 101;
    EXPECT_FALSE(gate.send(marked).notify);
    gate.now += 1000;
    marked.packet.psn = 102;
    EXPECT_TRUE(gate.send(marked).notify);
    qp.congestion_interval_us = 0;
    gate.responder.configure(0, qp);
    marked.packet.psn = 100;
    EXPECT_FALSE(gate.send(marked).notify);
}

QueuePair uc_pair() {
    QueuePair qp = rc_pair();
    qp.service = Service::uc;
    qp.peer_qp.reset();
    qp.psn.reset();
    return qp;
}

P uc(wire::RocePlace place, std::uint32_t psn, std::uint32_t bytes) {
    return P(place, psn, bytes).over(wire::RoceTransport::uc);
}

TEST(UnreliableConnection, DropsBehindAGapUntilAMessageStarts) {
    Gate gate(uc_pair(), NumberBy::immediate);
    EXPECT_EQ(gate.send(uc(middle, 9, 256)).counter, C::roce_gap);
    EXPECT_TRUE(gate.send(uc(first, 10, 256)).accepted());
    EXPECT_EQ(gate.send(uc(middle, 12, 256)).counter, C::roce_gap);
    EXPECT_EQ(gate.send(uc(last, 13, 256).imm(1)).counter, C::roce_gap);
    EXPECT_TRUE(gate.send(uc(first, 14, 256)).accepted());
    EXPECT_TRUE(gate.send(uc(last, 15, 256).imm(2)).accepted());
    EXPECT_TRUE(gate.send(uc(only, 20, 256).imm(3)).accepted());
    gate.harness.finish(gate.now);
    ASSERT_EQ(gate.harness.delivered.size(), 2U);
    EXPECT_EQ(gate.harness.delivered[0].number, 2U);
    EXPECT_EQ(gate.harness.delivered[1].number, 3U);
}

TEST(UnreliableConnection, AnswersNothingWhateverIsWrong) {
    Gate gate(uc_pair());
    const std::vector<std::pair<P, wire::Verdict>> wrong = {
        {uc(only, 0, 300), wire::ok},   {uc(first, 1, 512), wire::ok}, {uc(only, 2, 4), bad_length},
        {uc(middle, 3, 256), wire::ok}, {uc(only, 4, 4), request},
    };
    for (const auto& [packet, decoded] : wrong) {
        const Ruling ruling = gate.send(packet, decoded, {.packet = false, .message = false});
        EXPECT_FALSE(ruling.accepted());
        EXPECT_FALSE(ruling.answers());
    }
    EXPECT_EQ(gate.status().state, QueuePairState::ready);
    EXPECT_TRUE(gate.send(uc(only, 5, 4)).accepted());
}

TEST(UnreliableConnection, DeliversNothingTwiceAndFollowsASenderThatBeginsAnew) {
    Gate gate(uc_pair(), NumberBy::immediate);
    for (std::uint32_t i = 0; i < 40; ++i) ASSERT_TRUE(gate.send(uc(only, 100 + i, 8).imm(i)).accepted());
    ASSERT_EQ(gate.harness.delivered.size(), 40U);
    gate.send(uc(only, 110, 8).imm(10));  // the network doubled it
    EXPECT_EQ(gate.send(uc(middle, 113, 256)).counter, C::duplicate);
    EXPECT_TRUE(gate.send(uc(only, 140, 8).imm(40)).accepted());
    EXPECT_EQ(gate.harness.delivered.size(), 41U);
    EXPECT_EQ(gate.harness.packets.get(C::duplicate), 1U);
    for (std::uint32_t i = 0; i < 40; ++i) gate.send(uc(only, 100 + i, 8).imm(1000 + i));
    EXPECT_EQ(gate.status().psn, 140U);
    gate.harness.finish(gate.now);
    EXPECT_EQ(gate.harness.delivered.size(), 81U);
}

TEST(Datagrams, AreTakenWithTheRightKeyAndLengthInAnyOrder) {
    QueuePair qp = rc_pair();
    qp.service = Service::ud;
    qp.qkey = 0x11111111;
    Gate gate(qp, NumberBy::immediate);
    const auto ud = [](std::uint32_t psn, std::uint32_t bytes, std::uint32_t qkey) {
        P packet = P(only, psn, bytes).over(wire::RoceTransport::ud).imm(psn);
        packet.packet.qkey = qkey;
        packet.packet.source_qp = 0x99;
        return packet;
    };
    EXPECT_TRUE(gate.send(ud(5, 256, 0x11111111)).accepted());
    EXPECT_TRUE(gate.send(ud(4, 10, 0x11111111)).accepted());
    EXPECT_EQ(gate.send(ud(6, 10, 0x11111112)).counter, C::roce_key);
    EXPECT_EQ(gate.send(ud(6, 257, 0x11111111)).counter, C::roce_invalid_request);
    P marked = ud(7, 10, 0x11111111);
    marked.packet.congestion = true;
    EXPECT_EQ(gate.send(marked).notification.qp, 0x99U) << "the sender's queue pair is in the datagram";
    gate.harness.finish(gate.now);
    EXPECT_EQ(gate.harness.delivered.size(), 3U);
}

TEST(RnrTimer, IsNeverShorterThanWhatWasAskedFor) {
    for (const std::uint32_t us : {10U, 11U, 640U, 641U, 491520U}) {
        EXPECT_GE(rnr_timer_us(rnr_timer_code(us)), us);
        EXPECT_LE(rnr_timer_us(rnr_timer_code(us)), 2 * us + 10);
    }
    EXPECT_EQ(rnr_timer_code(640), 12);
    EXPECT_EQ(rnr_timer_code(655360), 0);
}

}  // namespace
}  // namespace weir::roce::test
