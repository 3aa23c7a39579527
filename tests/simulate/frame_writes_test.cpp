// Frames that go into memory by WRITEs: every byte is written once, and the end is the last.
#include "simulate/frame_writes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "core/error.hpp"
#include "simulate/simulator.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::simulate {
namespace {

TEST(FrameWrites, CoverTheFrameOnceWhateverItIsCutInto) {
    for (const std::uint32_t frame : {8192U, 10000U, 1048576U})
        for (const std::uint32_t write : {256U, 1000U, 4096U, 8191U})
            for (const std::uint32_t chips : {1U, 2U, 4U, 7U, 1000U}) {
                const FrameWrites writes({.header_bytes = 48,
                                          .frame_bytes = frame,
                                          .write_bytes = write,
                                          .readout_chips = chips,
                                          .path_mtu = 1024});
                std::map<std::uint32_t, std::uint32_t> covered;
                for (const FrameWrites::Write& one : writes.writes()) {
                    EXPECT_EQ(one.last, &one == &writes.writes().back());
                    EXPECT_TRUE(covered.emplace(one.offset, one.bytes).second);
                }
                std::uint32_t at = 0;
                for (const auto& [offset, bytes] : covered) {
                    ASSERT_EQ(offset, at) << frame << " " << write << " " << chips;
                    at += bytes;
                }
                EXPECT_EQ(at, 48 + frame);
                EXPECT_EQ(writes.writes().back().offset, 0U);
                std::vector<std::uint32_t> packets(writes.writes().size());
                for (const FrameWrites::Packet& packet : writes.packets()) {
                    EXPECT_EQ(packet.index, packets[packet.write]++);
                    EXPECT_EQ(packet.count, (writes.writes()[packet.write].bytes + 1023) / 1024);
                }
            }
}

TEST(FrameWrites, PartsOfAFrameTakeTurns) {
    const FrameWrites writes({.frame_bytes = 1600, .write_bytes = 200, .readout_chips = 4, .path_mtu = 1024});
    std::vector<std::uint32_t> places;
    for (const FrameWrites::Write& one : writes.writes()) places.push_back(one.offset / 200);
    EXPECT_EQ(places, (std::vector<std::uint32_t>{0, 2, 4, 6, 1, 3, 5, 7, 0}));
    const FrameWrites one({.header_bytes = 48, .frame_bytes = 1600, .write_bytes = 1600});
    ASSERT_EQ(one.writes().size(), 1U);
    EXPECT_EQ(one.writes()[0].bytes, 1648U);
    EXPECT_TRUE(one.writes()[0].last);
}

/// What is in the receiver's memory after each frame.
TEST(FrameWrites, BringHeaderAndImageToTheirPlaces) {
    for (const std::uint32_t write_bytes : {0U, 5000U, 1U << 20U}) {
        const SimulatorConfig config{.transport = SimulatedTransport::roce_write,
                                     .sources = 2,
                                     .events = 4,
                                     .regions = 3,
                                     .region_stride = 2U << 20U,
                                     .write_bytes = write_bytes};
        Simulator simulator(config);
        const std::uint32_t bytes = simulator.rdma_bytes(1, 0);
        ASSERT_EQ(bytes, 48U + (1U << 20U));
        std::map<std::uint64_t, std::vector<std::byte>> buffers;
        std::map<std::uint32_t, std::uint64_t> at;  // where the next packet of a queue pair's WRITE goes
        std::vector<std::byte> frame(simulator.frame_bytes_max());
        Simulator::Frame sent;
        std::uint32_t ends = 0;
        while (simulator.next(frame, sent)) {
            wire::Datagram datagram;
            ASSERT_EQ(wire::parse_frame(frame.data(), sent.bytes, sent.bytes, datagram), wire::ok);
            wire::RocePacket packet;
            ASSERT_EQ(wire::decode_roce(datagram, true, packet), wire::ok);
            if (packet.starts()) at[packet.qp] = packet.va;
            const std::uint64_t base = (at[packet.qp] >> 21U) << 21U;
            std::vector<std::byte>& buffer = buffers[base];
            buffer.resize(bytes);
            std::copy_n(packet.payload, packet.bytes,
                        buffer.begin() + static_cast<std::ptrdiff_t>(at[packet.qp] - base));
            at[packet.qp] += packet.bytes;
            if (!packet.has_immediate) continue;
            ++ends;
            EXPECT_EQ(packet.immediate, sent.event);
            EXPECT_EQ(base, 0x10000000U + 0x10000000U * sent.source + (sent.event - 1) % 3 * (2U << 20U));
            std::vector<std::byte> expected(bytes);
            simulator.rdma_content(sent.event, sent.source, 0, expected);
            EXPECT_TRUE(buffer == expected) << write_bytes << ", event " << sent.event;
            std::vector<std::byte> image(1U << 20U);
            simulator.message_content(sent.event, sent.source, 0, image);
            EXPECT_TRUE(std::equal(image.begin(), image.end(), buffer.begin() + 48));
        }
        EXPECT_EQ(ends, 8U);
    }
}

TEST(FrameWrites, WhatCannotBeIsNamed) {
    const auto said = [](const SimulatorConfig& config) -> std::string {
        try {
            Simulator simulator(config);
        } catch (const core::UsageError& error) {
            return error.what();
        }
        return "";
    };
    constexpr auto write = SimulatedTransport::roce_write;
    EXPECT_NE(said({.format = "ejfat", .transport = write, .write_bytes = 4096}).find("jungfrau"), std::string::npos);
    EXPECT_NE(said({.regions = 2}).find("roce-write"), std::string::npos);
    EXPECT_NE(said({.transport = write, .regions = 0}).find("--regions 0"), std::string::npos);
    EXPECT_NE(said({.transport = write, .regions = 2, .region_stride = 9}).find("1048624"), std::string::npos);
    EXPECT_NE(said({.transport = write, .sources = 2, .regions = 300}).find("next source"), std::string::npos);
    EXPECT_NE(said({.transport = write, .write_bytes = 10}).find("256"), std::string::npos);
    EXPECT_NE(said({.transport = write, .readout_chips = 0}).find("--readout-chips 0"), std::string::npos);
    EXPECT_NE(said({.transport = write, .immediate = false}).find("immediate"), std::string::npos);
    EXPECT_NE(said({.transport = SimulatedTransport::roce_send, .service = wire::RoceTransport::ud}).find("one packet"),
              std::string::npos);
    EXPECT_EQ(said({.transport = write, .immediate = false, .write_bytes = 1U << 20U}), "");
}

}  // namespace
}  // namespace weir::simulate
