// A RoCE packet that is said to be like one before is what wire::decode_roce says, and goes the way of that one.
#include "stages/rx/known_queue_pairs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "received.hpp"
#include "stages/rx/known_flows.hpp"
#include "wire/encode.hpp"

namespace weir::stages::test {
namespace {

using steer::Route;
using wire::Datagram;
using wire::FrameSpec;
using wire::RoceOperation;
using wire::RocePacket;
using wire::test::Bytes;

constexpr std::size_t bth_at = 42;

struct Made {
    FrameSpec spec;
    RocePacket packet;
    std::uint32_t bytes = 256;

    explicit Made(RoceOperation operation = RoceOperation::send_middle) {
        spec.dport = wire::roce_port;
        packet.opcode = static_cast<std::uint8_t>(operation);
        packet.qp = 0x11;
    }
    [[nodiscard]] Bytes frame() const {
        const Bytes payload = wire::test::pattern(bytes);
        RocePacket whole = packet;
        whole.payload = payload.data();
        whole.bytes = bytes;
        whole.dma_length = bytes;
        return wire::make_roce_frame(spec, whole);
    }
};

/// Both memories, used as the rx lcore does.
class Lcore {
public:
    /// Takes a packet of queue pairs 0x10 and 0x11 of either port, and compares. Returns whether it was known.
    bool take(const Received& received) {
        Datagram datagram;
        const bool plain = flows_.find(received.packet, datagram) != nullptr;
        if (!plain && received.parse(datagram) != wire::ok) return false;
        if (!plain) flows_.remember(received.packet, datagram, {1, 0, 0});
        RocePacket known;
        const Route* const route = plain ? pairs_.find(received.packet.port, datagram, known) : nullptr;
        RocePacket decoded;
        const wire::Verdict verdict = wire::decode_roce(datagram, false, decoded);
        if (route != nullptr) {
            EXPECT_EQ(verdict, wire::ok);
            EXPECT_EQ(known, decoded);
            EXPECT_EQ(route->source, source_of(received, decoded));
        } else if (verdict == wire::ok) {
            pairs_.remember(received.packet, datagram, decoded, {1, 0, source_of(received, decoded)});
        }
        return route != nullptr;
    }
    bool take(const Made& made, std::uint8_t port = 0) { return take(Received(made.frame(), port)); }

private:
    static std::uint32_t source_of(const Received& received, const RocePacket& packet) {
        return std::uint32_t{received.packet.port} << 24U | packet.qp;
    }
    KnownFlows flows_;
    KnownQueuePairs pairs_;
};

TEST(KnownQueuePairs, KnowsNothingAtFirst) {
    KnownQueuePairs pairs;
    RocePacket out;
    const Bytes nothing(100);  // all of it 0, as where nothing is remembered
    Datagram datagram;
    datagram.ip = nothing.data();
    datagram.payload = nothing.data() + 28;
    for (const std::uint32_t bytes : {0U, 11U, 12U, 16U}) {
        datagram.payload_bytes = bytes;
        EXPECT_EQ(pairs.find(0, datagram, out), nullptr);
    }
}

TEST(KnownQueuePairs, WhatChangesFromPacketToPacketDoesNotMatter) {
    Lcore lcore;
    Made made;
    const Received first(made.frame());  // the others lie elsewhere
    EXPECT_FALSE(lcore.take(first));
    for (const std::uint32_t psn : {0U, 1U, 0xffffffU}) {
        for (const bool ack : {false, true}) {
            made.packet.psn = psn;
            made.packet.ack_request = ack;
            made.spec.sport = static_cast<std::uint16_t>(psn);
            EXPECT_TRUE(lcore.take(made));
        }
    }
}

TEST(KnownQueuePairs, WhateverElseChangesDoes) {
    const Made first;
    const auto differs = [&](const auto& change) {
        Lcore lcore;
        lcore.take(first);
        EXPECT_TRUE(lcore.take(first));
        Made other = first;
        change(other);
        Made neighbour = other;
        neighbour.packet.qp = 0x10;
        lcore.take(neighbour);  // so that the flow of the other is known, and nothing of its queue pair
        return !lcore.take(other);
    };
    EXPECT_FALSE(differs([](Made&) {})) << "or nothing is said by the others";
    EXPECT_TRUE(
        differs([](Made& made) { made.packet.opcode = static_cast<std::uint8_t>(RoceOperation::write_middle); }));
    EXPECT_TRUE(differs([](Made& made) { made.packet.solicited = true; }));
    EXPECT_TRUE(differs([](Made& made) { made.packet.pkey = 1; }));
    EXPECT_TRUE(differs([](Made& made) { made.bytes = 512; }));
    EXPECT_TRUE(differs([](Made& made) { made.spec.tos = 3; })) << "congestion";
}

TEST(KnownQueuePairs, SendersWithOnePlaceAreToldApart) {
    const auto place = [](const Made& made) {
        return flow_place(std::uint64_t{made.spec.src} << 32U | made.spec.dst, made.packet.qp);
    };
    const Made made;
    Made other = made;
    do ++other.spec.src;
    while (place(other) != place(made));
    Lcore lcore;
    lcore.take(made);
    EXPECT_TRUE(lcore.take(made));
    other.packet.opcode = static_cast<std::uint8_t>(RoceOperation::send_first);
    EXPECT_FALSE(lcore.take(other)) << "its flow is known now, but nothing of its queue pair";
    other.packet.opcode = made.packet.opcode;
    EXPECT_FALSE(lcore.take(other));
    EXPECT_TRUE(lcore.take(other));
}

TEST(KnownQueuePairs, OfThoseWithFurtherHeadersAndTheEndsOfMessagesNothingIsRemembered) {
    for (const RoceOperation operation :
         {RoceOperation::send_first, RoceOperation::send_last, RoceOperation::send_last_immediate,
          RoceOperation::write_only, RoceOperation::send_only_immediate, RoceOperation::read_request,
          RoceOperation::acknowledge}) {
        Lcore lcore;
        for (int i = 0; i < 3; ++i) EXPECT_FALSE(lcore.take(Made(operation))) << static_cast<int>(operation);
    }
    Lcore lcore;
    lcore.take(Made(RoceOperation::send_only));
    EXPECT_TRUE(lcore.take(Made(RoceOperation::send_only)));
}

TEST(KnownQueuePairs, OfWhatIsNoKnownFlowNothingIsRemembered) {
    Made tagged;
    tagged.spec.vlan = 100;
    const Received received(tagged.frame());
    Datagram datagram;
    RocePacket decoded;
    ASSERT_EQ(received.parse(datagram), wire::ok);
    ASSERT_EQ(wire::decode_roce(datagram, false, decoded), wire::ok);
    KnownQueuePairs pairs;
    pairs.remember(received.packet, datagram, decoded, {1, 0, 7});
    EXPECT_EQ(pairs.find(0, datagram, decoded), nullptr);
}

/// Any packet, of few senders and queue pairs so that many are known, with bits that are wrong.
TEST(KnownQueuePairs, SaysWhatDecodingSays) {
    std::mt19937 random(29);
    const auto below = [&random](std::size_t limit) { return static_cast<std::uint32_t>(random() % limit); };
    Lcore lcore;
    std::size_t known = 0;
    constexpr std::size_t trials = 200'000;
    for (std::size_t trial = 0; trial < trials; ++trial) {
        Made made(below(4) != 0 ? RoceOperation::write_middle : static_cast<RoceOperation>(below(12)));
        made.spec.src += below(2);
        made.spec.tos = static_cast<std::uint8_t>(below(16) == 0 ? below(4) : 0);
        made.packet.qp = 0x10 + below(2);
        made.packet.psn = static_cast<std::uint32_t>(random()) & 0xffffff;
        made.packet.ack_request = below(2) == 0;
        if (below(8) == 0) made.bytes = below(600);
        Bytes frame = made.frame();
        if (below(3) == 0) {
            const std::size_t at = bth_at + below(std::min<std::size_t>(20, frame.size() - bth_at));
            frame[at] ^= static_cast<std::byte>(1U << below(8));
        }
        known += lcore.take(Received(frame, static_cast<std::uint8_t>(below(2)))) ? 1 : 0;
        if (HasFailure()) FAIL() << "trial " << trial;
    }
    EXPECT_GT(known, trials / 10);
    EXPECT_LT(known, trials / 10 * 9);
}

}  // namespace
}  // namespace weir::stages::test
