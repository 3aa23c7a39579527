#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "frames.hpp"
#include "probe/find.hpp"
#include "probe/findings_text.hpp"
#include "probe/packet_view.hpp"
#include "probe/proposal.hpp"
#include "probe/shipped_formats.hpp"
#include "source_root.hpp"
#include "wire/format_marks.hpp"

namespace weir::probe {
namespace {

using test::Bytes;
using test::udp_frame;

void add(PacketSample& sample, const Bytes& frame, core::TimeNs time_ns = 0) {
    sample.add(frame, static_cast<std::uint32_t>(frame.size()), time_ns);
}

Bytes jungfrau(std::uint64_t frame, std::uint32_t packet, std::uint16_t row = 0) {
    Bytes out(48 + 8192);
    const wire::SlsHeader header{
        .frame_number = frame, .packet_number = packet, .row = row, .detector_type = 3, .version = 2};
    wire::write_sls(header, Bytes(8192), out);
    return out;
}

Findings found_in(const PacketSample& sample) {
    Findings out = find(sample, {});
    out.input = "test";
    return out;
}

TEST(Find, TheReadoutFollowsFromThePacketNumbers) {
    for (const auto& [first, last, interfaces, rows] :
         {std::tuple{0U, 127U, 1, 512U}, {32U, 95U, 1, 256U}, {0U, 63U, 2, 512U}, {48U, 63U, 2, 128U}}) {
        PacketSample sample;
        for (std::uint64_t frame = 1; frame < 3; ++frame)
            for (std::uint32_t packet = first; packet <= last; ++packet) {
                add(sample, udp_frame(jungfrau(frame, packet), 50001));
                if (interfaces == 2)
                    add(sample, udp_frame(jungfrau(frame, rows == 512 ? packet : packet - first, 1), 50002));
            }
        const Findings findings = found_in(sample);
        ASSERT_TRUE(findings.recognised());
        const FoundStream& stream = findings.streams.front();
        EXPECT_EQ(stream.stream.format, "jungfrau");
        EXPECT_EQ(stream.stream.own.interfaces, interfaces);
        EXPECT_EQ(stream.stream.own.sls.rows.value_or(512), rows);
        EXPECT_EQ(stream.complete, 2U);
        EXPECT_EQ(stream.sources.size(), static_cast<std::size_t>(interfaces));
        EXPECT_EQ(config::parse_config(propose(findings, ""), "t.toml").streams.front().own, stream.stream.own);
    }
}

TEST(Find, WhatAMirrorHasPutAroundPacketsIsTakenOff) {
    for (const bool cut : {false, true}) {
        PacketSample sample;
        for (std::uint64_t frame = 1; frame < 3; ++frame)
            for (std::uint32_t packet = 0; packet < 128; ++packet) {
                Bytes payload(8);
                payload[0] = std::byte{8};
                const Bytes inside = udp_frame(jungfrau(frame, packet), 50001);
                payload.insert(payload.end(), inside.begin(), inside.end());
                const Bytes outside = udp_frame(payload, wire::vxlan_port, 77);
                const auto bytes = static_cast<std::uint32_t>(outside.size());
                sample.add(std::span(outside).first(cut ? 160 : bytes), bytes, 0);
            }
        const Findings findings = found_in(sample);
        ASSERT_TRUE(findings.recognised());
        EXPECT_EQ(findings.streams.front().stream.format, "jungfrau");
        EXPECT_EQ(findings.streams.front().complete, 2U);
        ASSERT_EQ(findings.flows.size(), 1U);
        EXPECT_EQ(findings.flows[0].src, "10.1.0.10");
        const config::RunConfig run = config::parse_config(propose(findings, "net_memif0"), "t.toml");
        EXPECT_TRUE(run.ports[0].decapsulate.has(wire::Tunnel::vxlan));
        EXPECT_FALSE(run.ports[0].decapsulate.has(wire::Tunnel::gre));
        EXPECT_TRUE(run.ports[0].address.empty()) << "the one inside is somebody else's";
        EXPECT_EQ(run.ports[0].mtu, 9100);
        EXPECT_EQ(findings_json(findings)["flows"][0]["decapsulated"], nlohmann::json({"vxlan"}));
    }
}

TEST(Find, SourcesThatShareAPortAreToldByAddress) {
    PacketSample sample;
    for (std::uint64_t frame = 1; frame < 4; ++frame)
        for (std::uint32_t packet = 0; packet < 128; ++packet)
            for (const std::uint8_t host : {11, 12}) add(sample, udp_frame(jungfrau(frame, packet), 50001, host));
    const Findings findings = found_in(sample);
    ASSERT_TRUE(findings.recognised());
    EXPECT_EQ(findings.streams.front().stream.source_by, config::SourceBy::address);
    EXPECT_EQ(findings.streams.front().complete, 3U);
}

TEST(Find, SeveralPortsOfOneSourceAreNoSources) {
    // Round robin: each frame to the next port.
    PacketSample sample;
    for (std::uint64_t frame = 1; frame < 9; ++frame)
        for (std::uint32_t packet = 0; packet < 128; ++packet)
            for (const std::uint8_t host : {11, 12})
                add(sample, udp_frame(jungfrau(frame, packet), static_cast<std::uint16_t>(50001 + frame % 4), host));
    const Findings findings = found_in(sample);
    ASSERT_TRUE(findings.recognised());
    EXPECT_EQ(findings.streams.front().sources.size(), 2U);
    EXPECT_EQ(findings.streams.front().stream.udp_dst.size(), 4U);
    EXPECT_EQ(findings.streams.front().complete, 8U);
}

Bytes numbered(std::uint32_t mark, std::uint64_t number, std::size_t bytes) {
    Bytes out;
    test::put_be(out, mark, 4);
    test::put_be(out, number, 4);
    out.resize(bytes, std::byte{0x55});
    for (std::size_t i = 8; i < bytes; ++i) out[i] = static_cast<std::byte>(number * 131 + i * i);
    return out;
}

/// Event and index, and nothing else: no format can be made of it, and that is no error.
TEST(Find, PacketsThatAreAllHeader) {
    for (const std::size_t bytes : {8, 9, 10, 16}) {
        PacketSample sample;
        for (std::uint32_t i = 0; i < 200; ++i) {
            Bytes packet;
            test::put_be(packet, 1000 + i / 4, 4);
            test::put_be(packet, i % 4, 4);
            packet.resize(bytes, std::byte{7});
            add(sample, udp_frame(packet, 7001));
        }
        const Findings findings = found_in(sample);
        if (findings.recognised()) {
            EXPECT_NO_THROW(static_cast<void>(propose(findings, ""))) << bytes;
        }
    }
}

/// Streams that share a port have addresses that tell them apart, or one of them is left out.
TEST(Find, OnePortInTwoStreams) {
    for (const std::uint8_t second : {10, 11}) {
        PacketSample sample;
        for (std::uint32_t i = 0; i < 100; ++i) {
            add(sample, udp_frame(numbered(0x12345678, i, 300), 7001, 10));
            Bytes other = numbered(0x9abcdef0, i, 100);
            std::ranges::reverse(std::span(other).subspan(4, 4));
            add(sample, udp_frame(other, 7001, second));
        }
        const Findings findings = found_in(sample);
        if (findings.recognised()) {
            EXPECT_NO_THROW(static_cast<void>(propose(findings, "")));
        }
        if (second == 11) {
            ASSERT_EQ(findings.streams.size(), 2U);
            EXPECT_EQ(findings.streams[0].stream.src.size(), 1U);
            EXPECT_EQ(findings.streams[1].stream.src.size(), 1U);
        }
    }
}

TEST(Find, AConversationIsNoDetector) {
    PacketSample sample;
    for (std::uint32_t i = 0; i < 100; ++i) {
        add(sample, udp_frame(numbered(0x12345678, i, 300), 7001));
        Bytes back = udp_frame(numbered(0x12345678, i, 60), 7000);
        std::swap_ranges(back.begin() + 26, back.begin() + 30, back.begin() + 30);  // the addresses
        add(sample, back);
    }
    EXPECT_FALSE(found_in(sample).recognised());
}

TEST(Find, APortGetsTheAddressAndTheMtuThatWereSeen) {
    PacketSample sample;
    for (std::uint32_t i = 0; i < 40; ++i) add(sample, udp_frame(numbered(0x12345678, i, 9700), 7001));
    const Findings findings = found_in(sample);
    ASSERT_TRUE(findings.recognised());
    const config::RunConfig live = config::parse_config(propose(findings, "0000:3b:00.0"), "t.toml");
    EXPECT_EQ(live.ports.front().address, "10.1.0.2/24");
    EXPECT_EQ(live.ports.front().mtu, 9728);
    EXPECT_EQ(config::parse_config(propose(findings, ""), "t.toml").ports.front().address, "");
}

TEST(Find, AFrameThatWasCutIsReadAsFarAsItGoes) {
    PacketSample sample;
    for (std::uint64_t frame = 1; frame < 4; ++frame)
        for (std::uint32_t packet = 0; packet < 128; ++packet) {
            const Bytes whole = udp_frame(jungfrau(frame, packet), 50001);
            sample.add(std::span(whole).first(96), static_cast<std::uint32_t>(whole.size()), 0);
        }
    const Findings findings = found_in(sample);
    ASSERT_TRUE(findings.recognised());
    EXPECT_EQ(findings.cut_frames, 384U);
    EXPECT_EQ(findings.streams.front().complete, 3U);
    EXPECT_EQ(findings.streams.front().rejected, 0U);
    // Not even the UDP header: nothing to read.
    PacketSample shorter;
    const Bytes whole = udp_frame(jungfrau(1, 1), 50001);
    for (std::size_t bytes = 0; bytes < 42; ++bytes)
        shorter.add(std::span(whole).first(bytes), static_cast<std::uint32_t>(whole.size()), 0);
    EXPECT_EQ(shorter.datagrams().size(), 0U);
}

/// What weir ships it also tries: every description of formats/.
TEST(Find, AllShippedFormatsAreTried) {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(weir::test::source_root() / "formats"))
        files += entry.path().extension() == ".toml" ? 1 : 0;
    EXPECT_EQ(shipped_files().size(), files);
    std::set<std::string> names;
    for (const wire::DeclaredSpec& spec : shipped_formats()) names.insert(spec.name);
    EXPECT_TRUE(names.contains("srs"));
    EXPECT_TRUE(names.contains("hexitec-2x6"));
    EXPECT_EQ(names.size(), shipped_formats().size());
}

TEST(Find, ChanceIsNoConfidence) {
    wire::Recognition one;
    one.share = 1;
    one.mark_bits = 8;
    EXPECT_LT(wire::confidence_of(one, 1), 0.5);
    EXPECT_EQ(wire::confidence_of(one, 3), 1.0);
    one.share = 0.5;
    EXPECT_EQ(wire::confidence_of(one, 100), 0.5);
}

TEST(Find, TheSampleIsBounded) {
    PacketSample sample({.packets = 10, .flows = 2});
    for (std::uint8_t host = 0; host < 20; ++host) add(sample, udp_frame(Bytes(50), 7000, host));
    EXPECT_TRUE(sample.full());
    EXPECT_EQ(sample.packets(), 10U);
    EXPECT_EQ(sample.flows().size(), 2U);
    EXPECT_EQ(sample.unfollowed(), 8U);
}

/// Every layer's bytes, turned over and cut anywhere: nothing but text comes out.
TEST(Find, HostileBytesMakeText) {
    std::mt19937 random(11);
    for (int round = 0; round < 60; ++round) {
        PacketSample sample;
        Bytes last;
        for (std::uint32_t packet = 0; packet < 40; ++packet) {
            Bytes frame = udp_frame(jungfrau(1 + packet / 8, packet % 8), round % 3 == 0 ? 4791 : 50001);
            for (std::uint32_t i = random() % 6; i-- > 0;) frame[random() % 120] = static_cast<std::byte>(random());
            if (random() % 4 == 0) frame.resize(random() % frame.size());
            add(sample, frame, packet);
            last = frame;
        }
        const Findings findings = found_in(sample);
        EXPECT_FALSE(findings_text(findings).empty());
        EXPECT_FALSE(findings_json(findings).empty());
        if (findings.recognised()) {
            EXPECT_FALSE(propose(findings, "").empty());
        }
        (void)view_text(view_packet(last, static_cast<std::uint32_t>(last.size()), sample, findings));
    }
}

}  // namespace
}  // namespace weir::probe
