#include "bench/frame_maker.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "wire/network.hpp"

namespace {

using weir::bench::FrameMaker;
using weir::bench::PacketChecker;
using weir::bench::PacketPlan;
namespace wire = weir::wire;

std::vector<std::byte> made_frame(const FrameMaker& maker, std::uint64_t sequence) {
    std::vector<std::byte> frame(FrameMaker::head_bytes);
    maker.write_head(sequence, 1000, frame.data());
    const auto body = maker.body(sequence);
    frame.insert(frame.end(), body.begin(), body.end());
    return frame;
}

TEST(FrameMaker, FramesAreReadBackAsThePacketsOfThePlan) {
    for (const std::uint32_t bytes : {PacketPlan::bytes_min, 2048U, 8240U, PacketPlan::bytes_max}) {
        const PacketPlan plan{.trial = 5, .bytes = bytes, .packets = 8};
        const FrameMaker maker({.vlan = {}, .src = 0x0a630001, .dst = 0x0a630002, .sport = 4000, .dport = 5000}, plan);
        const PacketChecker checker(plan);
        for (const std::uint64_t sequence : {0U, 1U, 64U, 100'000U}) {
            const std::vector<std::byte> frame = made_frame(maker, sequence);
            const auto frame_bytes = static_cast<std::uint32_t>(frame.size());
            wire::Datagram datagram;
            ASSERT_EQ(wire::parse_frame(frame.data(), frame_bytes, frame_bytes, datagram), wire::ok);
            EXPECT_EQ(datagram.src, 0x0a630001U);
            EXPECT_EQ(datagram.dst, 0x0a630002U);
            EXPECT_EQ(datagram.sport, 4000);
            EXPECT_EQ(datagram.dport, 5000);
            ASSERT_EQ(datagram.payload_bytes, bytes);
            const PacketChecker::Packet packet = checker.check({datagram.payload, datagram.payload_bytes});
            EXPECT_EQ(packet.is, PacketChecker::Is::whole);
            EXPECT_EQ(packet.sequence, sequence);
            EXPECT_EQ(packet.sent_ns, 1000);
        }
    }
}

}  // namespace
