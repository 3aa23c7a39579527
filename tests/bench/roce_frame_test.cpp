// What RoceFrameMaker makes is what weir's decoder, and RoceTarget, take.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "bench/frame_kind.hpp"
#include "bench/roce_frame_maker.hpp"
#include "bench/roce_target.hpp"
#include "core/error.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace {

using weir::bench::FrameKind;
using weir::bench::PacketChecker;
using weir::bench::PacketPlan;
using weir::bench::RoceFrameMaker;
using weir::bench::RoceTarget;
namespace wire = weir::wire;

const wire::FrameSpec to_roce{
    .vlan = {}, .src = 0x0a630001, .dst = 0x0a630002, .sport = 50000, .dport = wire::roce_port};

std::vector<std::byte> made_roce_frame(const RoceFrameMaker& maker, std::uint64_t sequence) {
    std::vector<std::byte> frame(maker.frame_bytes());
    maker.write_body(0, frame.data());
    maker.write_head(sequence, 1000, frame.data());
    return frame;
}

wire::Datagram datagram_of(const std::vector<std::byte>& frame) {
    wire::Datagram datagram;
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    EXPECT_EQ(wire::parse_frame(frame.data(), bytes, bytes, datagram), wire::ok);
    EXPECT_EQ(datagram.dport, wire::roce_port);
    return datagram;
}

class RoceFrames : public testing::TestWithParam<FrameKind::Is> {};
INSTANTIATE_TEST_SUITE_P(Kinds, RoceFrames, testing::Values(FrameKind::Is::roce_send, FrameKind::Is::roce_write));

TEST_P(RoceFrames, AreReadBackAsThePacketsOfThePlan) {
    for (const std::uint32_t bytes : {PacketPlan::bytes_min, 61U, 62U, 63U, 2048U, 4095U, 4096U}) {
        const PacketPlan plan{.trial = 5, .bytes = bytes, .packets = 1};
        RoceTarget target(GetParam(), bytes, 1);
        const RoceFrameMaker maker(to_roce, target.frames(), plan);
        const PacketChecker checker(plan);
        std::vector<std::byte> frame(maker.frame_bytes());
        maker.write_body(0, frame.data());  // once: heads are written over heads
        for (const std::uint64_t sequence : {0U, 1U, 64U, 0x1000003U}) {
            maker.write_head(sequence, 1000, frame.data());
            const wire::Datagram datagram = datagram_of(frame);
            wire::RocePacket packet;
            ASSERT_EQ(wire::decode_roce(datagram, true, packet), wire::ok) << bytes;
            EXPECT_EQ(packet.psn, sequence & 0xffffff);
            EXPECT_EQ(packet.immediate, sequence);
            EXPECT_TRUE(packet.has_immediate);
            EXPECT_FALSE(packet.ack_request);
            EXPECT_EQ(packet.place, wire::RocePlace::only);
            const RoceTarget::Taken taken = target.take(datagram);
            ASSERT_EQ(taken.is, RoceTarget::Is::taken);
            const PacketChecker::Packet is = checker.check({taken.payload, taken.bytes});
            EXPECT_EQ(is.is, PacketChecker::Is::whole);
            EXPECT_EQ(is.sequence, sequence);
            target.next_burst();
        }
    }
}

TEST_P(RoceFrames, OfWhichABitIsWrongAreDamaged) {
    const PacketPlan plan{.trial = 5, .bytes = 1000, .packets = 1};
    RoceTarget target(GetParam(), plan.bytes, 1);
    const RoceFrameMaker maker(to_roce, target.frames(), plan);
    for (const std::size_t from_end : {1U, 5U, 300U, 900U}) {
        std::vector<std::byte> frame = made_roce_frame(maker, 3);
        frame[frame.size() - from_end] ^= std::byte{1};
        EXPECT_EQ(target.take(datagram_of(frame)).is, RoceTarget::Is::damaged);
    }
}

TEST_P(RoceFrames, OfAnotherQueuePairAreNotForUs) {
    const PacketPlan plan{.trial = 5, .bytes = 1000, .packets = 1};
    RoceTarget target(GetParam(), plan.bytes, 1);
    FrameKind other = target.frames();
    other.qp = 0x12;
    EXPECT_EQ(target.take(datagram_of(made_roce_frame({to_roce, other, plan}, 0))).is, RoceTarget::Is::other);
    other = target.frames();
    other.is = other.is == FrameKind::Is::roce_send ? FrameKind::Is::roce_write : FrameKind::Is::roce_send;
    EXPECT_EQ(target.take(datagram_of(made_roce_frame({to_roce, other, plan}, 0))).is, RoceTarget::Is::other);
}

TEST_P(RoceFrames, HaveAtMostAPathsMtu) {
    EXPECT_NO_THROW((RoceTarget(GetParam(), 4096, 1)));
    try {
        (void)RoceTarget(GetParam(), 8240, 1);
        FAIL();
    } catch (const weir::core::RunError& error) {
        EXPECT_STREQ(error.what(), "a RoCE packet carries at most 4096 bytes, not 8240");
    }
}

TEST_P(RoceFrames, AreDescribedToTheOtherSide) {
    const FrameKind frames = RoceTarget(GetParam(), 2048, 1).frames();
    EXPECT_EQ(weir::bench::frames_from_json(to_json(frames)), frames);
    EXPECT_EQ(weir::bench::frames_from_json(weir::bench::to_json(FrameKind{})), FrameKind{});
    EXPECT_THROW((void)weir::bench::frames_from_json({{"kind", "smoke"}}), weir::core::RunError);
}

TEST(RoceTarget, WritesGoToAllPlacesInTurnAndToNoOthers) {
    const PacketPlan plan{.trial = 5, .bytes = 1000, .packets = 1};
    RoceTarget target(FrameKind::Is::roce_write, plan.bytes, 1000);
    EXPECT_EQ(target.frames().places, 1000U);
    const RoceFrameMaker maker(to_roce, target.frames(), plan);
    std::set<const std::byte*> places;
    for (std::uint64_t sequence = 0; sequence < 1000; ++sequence)
        places.insert(target.take(datagram_of(made_roce_frame(maker, sequence))).payload);
    EXPECT_EQ(places.size(), 1000U);
    EXPECT_FALSE(places.contains(nullptr));
    // The first place again: what is there has to be read before.
    EXPECT_EQ(target.take(datagram_of(made_roce_frame(maker, 1000))).is, RoceTarget::Is::not_yet);
    target.next_burst();
    EXPECT_EQ(target.take(datagram_of(made_roce_frame(maker, 1000))).payload, *places.begin());

    for (const std::int64_t off : {std::int64_t{-1}, std::int64_t{1000 * 1024 - 999}, INT64_MAX}) {
        FrameKind outside = target.frames();
        outside.va += static_cast<std::uint64_t>(off);
        EXPECT_EQ(target.take(datagram_of(made_roce_frame({to_roce, outside, plan}, 0))).is, RoceTarget::Is::other);
    }
    FrameKind key = target.frames();
    key.rkey = 1;
    EXPECT_EQ(target.take(datagram_of(made_roce_frame({to_roce, key, plan}, 0))).is, RoceTarget::Is::other);
}

}  // namespace
