// A frame that is said to be like one before is what wire::parse_frame says, and goes the way of that one.
#include "stages/rx/known_flows.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "received.hpp"
#include "wire/encode.hpp"

namespace weir::stages::test {
namespace {

using steer::Route;
using wire::Datagram;
using wire::FrameSpec;
using wire::test::Bytes;

constexpr std::size_t ip_at = 14;

/// Remembers a frame as the rx lcore does.
void remember(KnownFlows& flows, const Received& received, const Route& route) {
    Datagram datagram;
    ASSERT_EQ(received.parse(datagram), wire::ok);
    flows.remember(received.packet, datagram, route);
}

void repair_checksum(Bytes& frame) {
    wire::store_le(frame.data() + ip_at + 10, std::uint16_t{0});
    wire::store_le(frame.data() + ip_at + 10,
                   static_cast<std::uint16_t>(~wire::ipv4_header_sum(frame.data() + ip_at, 20)));
}

void expect_same(const Datagram& known, const Datagram& parsed) {
    EXPECT_EQ(known.payload, parsed.payload);
    EXPECT_EQ(known.ip, parsed.ip);
    EXPECT_EQ(known.payload_bytes, parsed.payload_bytes);
    EXPECT_EQ(known.ip_bytes, parsed.ip_bytes);
    EXPECT_EQ(known.src, parsed.src);
    EXPECT_EQ(known.dst, parsed.dst);
    EXPECT_EQ(known.sport, parsed.sport);
    EXPECT_EQ(known.dport, parsed.dport);
    EXPECT_EQ(known.ipv6, parsed.ipv6);
    EXPECT_EQ(known.fragment, parsed.fragment);
}

Bytes frame_of(const FrameSpec& spec, std::size_t payload_bytes) {
    return wire::make_udp_frame(spec, wire::test::pattern(payload_bytes));
}

TEST(KnownFlows, KnowsNothingAtFirst) {
    const KnownFlows flows;
    Datagram out;
    EXPECT_EQ(flows.find(Received(frame_of({}, 40)).packet, out), nullptr);
    EXPECT_EQ(flows.find(Received(Bytes(100)).packet, out), nullptr) << "all of it 0, as where nothing is remembered";
}

TEST(KnownFlows, WhatChangesFromFrameToFrameDoesNotMatter) {
    // Words of the header that are large, so that what they add up to is more than 32 bits hold.
    FrameSpec large;
    large.src = 0xfefe'fefe;
    large.dst = 0xefff'fffe;
    KnownFlows flows;
    remember(flows, Received(frame_of(large, 40)), {3, 2, 7});
    for (const std::size_t bytes : {0U, 1U, 40U, 8192U}) {
        for (const std::uint16_t identification : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{0xffff}}) {
            FrameSpec spec = large;
            spec.identification = identification;
            spec.sport = identification;
            const Received received(frame_of(spec, bytes));
            Datagram out;
            Datagram parsed;
            const Route* const route = flows.find(received.packet, out);
            ASSERT_NE(route, nullptr) << bytes << " bytes, identification " << identification;
            EXPECT_EQ(route->source, 7U);
            ASSERT_EQ(received.parse(parsed), wire::ok);
            expect_same(out, parsed);
        }
    }
}

TEST(KnownFlows, WhatIsNotPlainIsNotRemembered) {
    FrameSpec tagged;
    tagged.vlan = 100;
    FrameSpec ipv6;
    ipv6.ipv6.emplace();
    for (const FrameSpec& spec : {tagged, ipv6}) {
        KnownFlows flows;
        const Received received(frame_of(spec, 40));
        remember(flows, received, {3, 2, 7});
        Datagram out;
        EXPECT_EQ(flows.find(received.packet, out), nullptr);
    }
}

TEST(KnownFlows, AFrameInSeveralBuffersIsNotKnown) {
    KnownFlows flows;
    Received received(frame_of({}, 40));
    remember(flows, received, {3, 2, 7});
    Datagram out;
    ASSERT_NE(flows.find(received.packet, out), nullptr);
    received.packet.wire_bytes += 1;  // padding, in another buffer
    received.mbuf.nb_segs = 2;
    EXPECT_EQ(flows.find(received.packet, out), nullptr);
}

/// Any frame, of few senders so that most are known, with bits that are wrong.
TEST(KnownFlows, SaysWhatParsingSays) {
    std::mt19937 random(23);
    const auto below = [&random](std::size_t limit) { return static_cast<std::uint32_t>(random() % limit); };
    KnownFlows flows;
    std::map<std::tuple<std::uint8_t, std::uint32_t, std::uint32_t, std::uint16_t>, std::uint32_t> sources;
    std::size_t known = 0;
    std::size_t unknown = 0;
    for (std::uint32_t trial = 0; trial < 200'000; ++trial) {
        FrameSpec spec;
        spec.src += below(3);
        spec.dport = static_cast<std::uint16_t>(spec.dport + below(3));
        spec.identification = static_cast<std::uint16_t>(random());
        spec.tos = static_cast<std::uint8_t>(below(8) == 0 ? 4 : 0);
        Bytes frame = frame_of(spec, below(30));
        for (std::size_t edits = below(3); edits > 0; --edits)
            frame[12 + below(30)] ^= static_cast<std::byte>(1U << below(8));  // EtherType, IP and UDP headers
        if (below(4) != 0) repair_checksum(frame);
        const Received received(frame, below(8) == 0 ? below(frame.size() + 1) : frame.size(),
                                static_cast<std::uint8_t>(below(2)));
        Datagram out;
        Datagram parsed;
        const Route* const route = flows.find(received.packet, out);
        const wire::Verdict verdict = received.parse(parsed);
        ++(route != nullptr ? known : unknown);
        if (route != nullptr) {
            ASSERT_EQ(verdict, wire::ok);
            expect_same(out, parsed);
        }
        if (verdict != wire::ok) continue;
        std::uint32_t& source = sources[{received.packet.port, parsed.src, parsed.dst, parsed.dport}];
        if (source == 0) source = trial + 1;
        if (route != nullptr)
            ASSERT_EQ(route->source, source);
        else
            flows.remember(received.packet, parsed, {1, 0, source});
    }
    EXPECT_GT(known, 20'000U);
    EXPECT_GT(unknown, 20'000U);
}

}  // namespace
}  // namespace weir::stages::test
