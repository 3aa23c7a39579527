// What an rx lcore makes of packets, good and bad: every one ends in exactly one counter, and every buffer comes back.
// With one lcore, and with two of which one steers to the other.
#include <gtest/gtest.h>

#include <functional>

#include "topology.hpp"

namespace weir::stages::test {
namespace {

constexpr Part good{.source = 0, .number = 7, .time = 1 * ms};

Shape one_source() {
    Shape shape;
    shape.sources = 1;
    return shape;
}

/// Sources are told apart by what their headers say; the second one is a queue pair besides.
Shape with_roce() {
    Shape shape;
    shape.sources_needed = 1;
    shape.source_in_header = true;
    shape.with_rx = [](RxStage::Config& config) {
        config.listener.sources = {{.source = 1}};
        config.listener.timeout_ns = 100 * ms;
    };
    return shape;
}

/// A frame that is wrong in one way, and where it ends.
struct Fault {
    const char* name;
    PacketCounter counter;
    std::function<Bytes()> frame;
    std::size_t cut_bytes = 0;  ///< of the frame, that the capture left out
};

void PrintTo(const Fault& fault, std::ostream* to) {
    *to << fault.name;
}

Bytes changed(const Part& part, std::size_t at, std::uint8_t value) {
    Bytes frame = frame_of(part);
    frame.at(at) = std::byte{value};
    return frame;
}
/// The same, with the checksum of the IP header as it should be.
Bytes changed_ip(const Part& part, std::size_t at, std::uint8_t value) {
    Bytes frame = changed(part, at, value);
    std::byte* const ip = frame.data() + wire::ethernet_header_bytes;
    wire::store_be(ip + 10, std::uint16_t{0});
    wire::store_le(ip + 10, static_cast<std::uint16_t>(~wire::ipv4_header_sum(ip, wire::ipv4_header_bytes)));
    return frame;
}
constexpr std::size_t ip_at = wire::ethernet_header_bytes;
constexpr std::size_t udp_at = ip_at + wire::ipv4_header_bytes;
constexpr std::size_t ejfat_at = udp_at + wire::udp_header_bytes;

Bytes to_port(std::uint16_t port) {
    wire::FrameSpec spec = spec_of(0);
    spec.dport = port;
    return wire::make_udp_frame(spec, ejfat_of(good));
}

Bytes synchronisation() {
    Bytes payload(28);
    payload[0] = std::byte{'L'};
    payload[1] = std::byte{'C'};
    payload[2] = std::byte{2};
    return wire::make_udp_frame(spec_of(0), payload);
}

Bytes roce_changed(std::size_t from_end) {
    Bytes frame = roce_frames_of(1, 7, 100, 0).front();
    frame.at(frame.size() - from_end) ^= std::byte{1};
    return frame;
}

std::vector<Fault> faults() {
    using enum PacketCounter;
    return {
        {"cut_off_by_the_capture", malformed_truncated, [] { return frame_of(good); }, 40},
        {"shorter_than_its_ip_length", malformed_ip_length,
         [] {
             Bytes frame = frame_of(good);
             frame.pop_back();
             return frame;
         }},
        {"wrong_ip_checksum", malformed_ip_checksum, [] { return changed(good, ip_at + 8, 63); }},
        {"wrong_ip_version", malformed_ip_header, [] { return changed(good, ip_at, 0x65); }},
        {"udp_longer_than_ip", malformed_udp_length, [] { return changed(good, udp_at + 4, 0x7f); }},
        {"udp_shorter_than_its_header", malformed_udp_length,
         [] {
             Bytes frame = changed(good, udp_at + 4, 0);
             frame[udp_at + 5] = std::byte{7};
             return frame;
         }},
        {"tcp", not_for_us_ip_protocol, [] { return changed_ip(good, ip_at + 9, 6); }},
        {"icmp", not_for_us_icmp, [] { return changed_ip(good, ip_at + 9, 1); }},
        {"arp", not_for_us_arp,
         [] {
             Bytes frame(60);
             wire::store_be(frame.data() + 12, wire::ethertype_arp);
             return frame;
         }},
        {"unknown_ethertype", not_for_us_ethertype, [] { return changed(good, 12, 0x12); }},
        {"port_of_no_stream", unsteered, [] { return to_port(40'000); }},
        {"unknown_source", malformed_source,
         [] {
             Bytes frame = frame_of(good);
             wire::store_be(frame.data() + ejfat_at + 2, std::uint16_t{99});
             return frame;
         }},
        {"malformed_header", malformed_header, [] { return changed(good, ejfat_at, 0x55); }},
        {"no_header", malformed_header, [] { return wire::make_udp_frame(spec_of(0), Bytes(10)); }},
        {"control", control, [] { return synchronisation(); }},
        {"range_beyond_its_message", malformed_range,
         [] {
             return frame_of({0, 7, 50, 100, 100, 1 * ms});
         }},
        {"message_larger_than_allowed", malformed_message_size,
         [] {
             return frame_of({0, 7, 0, 100, 1U << 21U, 1 * ms});
         }},
        {"empty_part_of_a_message", malformed_payload_length,
         [] {
             return frame_of({0, 7, 0, 0, 100, 1 * ms});
         }},
        {"roce_with_wrong_icrc", malformed_bad_icrc, [] { return roce_changed(1); }},
        {"roce_damaged", malformed_bad_icrc, [] { return roce_changed(30); }},
        {"roce_of_another_queue_pair", unsteered, [] { return roce_frames_of(1, 7, 100, 0, roce_qp + 1).front(); }},
    };
}

class RxFaultTest : public StagesTest, public testing::WithParamInterface<Fault> {};

TEST_P(RxFaultTest, EndsInThatCounterAndInNoOther) {
    const Fault& fault = GetParam();
    Topology all(with_roce());
    // Between good packets, in one burst: what is wrong with one is no matter to its neighbours.
    all.feed(make_.make({.source = 0, .number = 6, .time = 1 * ms}));
    port::Packet packet = make_.make(fault.frame(), 1 * ms);
    packet.captured_bytes = static_cast<std::uint16_t>(packet.captured_bytes - fault.cut_bytes);
    all.feed(packet);
    all.feed(make_.make({.source = 0, .number = 8, .time = 1 * ms}));
    finish(all);
    EXPECT_EQ(all.count(fault.counter), 1U);
    EXPECT_EQ(all.count(PacketCounter::placed), 2U);
    EXPECT_EQ(all.events().size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Every, RxFaultTest, testing::ValuesIn(faults()),
                         [](const auto& instance) { return std::string(instance.param.name); });

class RxStageTest : public StagesTest {
protected:
    /// What one lcore with one source has counted after these packets.
    void run(const std::vector<Part>& parts, Shape shape = one_source()) {
        all_ = std::make_unique<Topology>(shape);
        for (const Part& part : parts) {
            all_->feed(make_.make(part));
            all_->turn();
        }
        finish(*all_);
    }
    std::uint64_t count(PacketCounter counter) const { return all_->count(counter); }
    std::unique_ptr<Topology> all_;
};

TEST_F(RxStageTest, ASecondPacketOfAnOpenMessageIsADuplicate) {
    run({part_of(0, 7, 0, 2, 1), part_of(0, 7, 0, 2, 2), part_of(0, 7, 1, 2, 3)});
    EXPECT_EQ(count(PacketCounter::duplicate), 1U);
    EXPECT_EQ(count(PacketCounter::placed), 2U);
}

TEST_F(RxStageTest, APacketOfAMessageThatWasDeliveredWholeIsADuplicate) {
    run({part_of(0, 7, 0, 2, 1), part_of(0, 7, 1, 2, 3), part_of(0, 7, 1, 2, 4)});
    EXPECT_EQ(count(PacketCounter::duplicate), 1U);
    EXPECT_EQ(count(PacketCounter::placed), 2U);
}

TEST_F(RxStageTest, APacketOneNanosecondBeforeTheTimeOutIsInTimeAndOneAtItIsLate) {
    const TimeNs timeout = one_source().timeout_ns;
    run({part_of(0, 7, 0, 3, 0), part_of(0, 7, 1, 3, timeout - 1), part_of(0, 7, 2, 3, timeout)});
    EXPECT_EQ(count(PacketCounter::placed), 2U);
    EXPECT_EQ(count(PacketCounter::late), 1U);
    EXPECT_EQ(all_->count(EventCounter::incomplete_timeout), 1U);
}

TEST_F(RxStageTest, ADifferentTotalIsAConflict) {
    run({part_of(0, 7, 0, 2, 1), {0, 7, 100, 50, 150, 2}, part_of(0, 7, 1, 2, 3)});
    EXPECT_EQ(count(PacketCounter::conflict), 1U);
    EXPECT_EQ(count(PacketCounter::placed), 2U);
    EXPECT_EQ(all_->count(EventCounter::complete), 1U);
}

TEST_F(RxStageTest, ARangeThatOverlapsInPartIsAConflict) {
    run({{0, 7, 0, 100, 300, 1}, {0, 7, 50, 100, 300, 2}, {0, 7, 100, 200, 300, 3}});
    EXPECT_EQ(count(PacketCounter::conflict), 1U);
    EXPECT_EQ(count(PacketCounter::placed), 2U);
}

TEST_F(RxStageTest, MoreRangesThanThereIsRoomForAreTooFragmented) {
    Shape shape = one_source();
    shape.with_rx = [](RxStage::Config& config) { config.table.range_blocks = 0; };
    std::vector<Part> parts;
    constexpr std::uint32_t step = 10;
    // Parts of unequal size with gaps between them: each is a range of its own.
    for (std::uint32_t i = 0; i < 8; ++i) parts.push_back({0, 7, 2 * i * step, 1 + i, 1000, 1 + i});
    run(parts, shape);
    EXPECT_EQ(count(PacketCounter::placed), assemble::Message::inline_ranges);
    EXPECT_EQ(count(PacketCounter::too_fragmented), 8U - assemble::Message::inline_ranges);
}

TEST_F(RxStageTest, WithoutWaitingWhatFindsNoMessageIsRefused) {
    Shape shape = one_source();
    shape.wait = false;
    shape.messages_max = 4;
    Topology all(shape);
    // No message of them is whole, so none is given back before the end.
    for (std::uint64_t number = 0; number < 10; ++number) all.feed(make_.make(part_of(0, number, 0, 2, 1)));
    all.drain();
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::placed), 4U);
    EXPECT_EQ(all.count(PacketCounter::no_room), 6U);
}

TEST_F(RxStageTest, PiecesOfAnIpDatagramAreOnePacketEachAndMakeTheirMessage) {
    Topology all(one_source());
    for (const Bytes& piece : fragments_of(frame_of({0, 7, 0, 1500, 1500, 0}), 512, 3)) all.feed(make_.make(piece, 1));
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::placed), 3U);
    EXPECT_EQ(all.count(EventCounter::complete), 1U);
}

TEST_F(RxStageTest, PiecesWhoseRestNeverComesTimeOut) {
    Topology all(one_source());
    const std::vector<Bytes> pieces = fragments_of(frame_of({0, 7, 0, 1500, 1500, 0}), 512, 3);
    all.feed(make_.make(pieces[0], 1));
    all.feed(make_.make(pieces[1], 2));
    all.drain();
    EXPECT_EQ(all.count(PacketCounter::in_flight), 2U);
    all.feed(make_.make({.source = 0, .number = 8, .time = 90 * ms}));
    all.drain();
    EXPECT_EQ(all.count(PacketCounter::ip_fragment_timeout), 2U);
    finish(all);
}

TEST_F(RxStageTest, PiecesThatWaitAtTheEndAreGivenUp) {
    Topology all(one_source());
    all.feed(make_.make(fragments_of(frame_of({0, 7, 0, 1500, 1500, 0}), 512, 3).front(), 1));
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::ip_fragment_timeout), 1U);
}

// All headers lie in several buffers then, and one of them carries nothing but headers.
TEST_F(RxStageTest, HeadersOfADatagramMayLieInSeveralPieces) {
    for (const std::uint32_t step : {8U, 16U, 24U, 552U}) {
        Topology all(one_source());
        const std::vector<Bytes> pieces = fragments_of(frame_of({0, 7, 0, 900, 900, 0}), step, 3);
        for (const Bytes& piece : pieces) all.feed(make_.make(piece, 1));
        finish(all);
        EXPECT_EQ(all.count(PacketCounter::placed), pieces.size()) << step;
        EXPECT_EQ(all.count(EventCounter::complete), 1U) << step;
    }
}

TEST_F(RxStageTest, APieceOfTooManyEndsThemAll) {
    Topology all(one_source());
    const std::vector<Bytes> pieces = fragments_of(frame_of({0, 7, 0, 1500, 1500, 0}), 8, 3);
    ASSERT_GT(pieces.size(), port::IpReassembly::pieces_max);
    for (const Bytes& piece : pieces) all.feed(make_.make(piece, 1));
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::ip_fragment_too_many), pieces.size());
}

TEST_F(RxStageTest, AFrameInSeveralBuffersIsOnePacketWithAllItsBytes) {
    const Part part{0, 7, 0, 1400, 1400, 1};
    const std::size_t bytes = frame_of(part).size();
    // Headers in one buffer, in two, payload in many; the last one with a single byte.
    for (const std::size_t segment : {std::size_t{1000}, bytes - 1, std::size_t{62}, std::size_t{20}}) {
        Topology all(one_source());
        all.feed(make_.make(frame_of(part), 1, segment));
        finish(all);
        EXPECT_EQ(all.count(PacketCounter::placed), 1U) << segment;
        EXPECT_EQ(all.count(EventCounter::complete), 1U) << segment;
    }
}

TEST_F(RxStageTest, AFrameInMoreBuffersThanAFrameCanHaveIsTruncated) {
    Topology all(one_source());
    all.feed(make_.make(frame_of({0, 7, 0, 1400, 1400, 1}), 1, 8));
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::malformed_truncated), 1U);
}

TEST_F(RxStageTest, NeighboursOfUdpAndRoceGoTheirOwnWays) {
    Topology all(with_roce());
    constexpr std::uint64_t events = 5;
    for (std::uint64_t number = 0; number < events; ++number) {
        const auto psn = static_cast<std::uint32_t>(4 * number);
        for (const Bytes& frame : roce_frames_of(1, static_cast<std::uint32_t>(100 + number), 1000, psn))
            all.feed(make_.make(frame, 1));
        for (std::uint32_t i = 0; i < 3; ++i) all.feed(make_.make(part_of(0, number, i, 3, 1)));
    }
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::placed), 7 * events);
    EXPECT_EQ(all.count(EventCounter::complete), 2 * events);
}

TEST_F(RxStageTest, FaultsOfAFrameInSeveralBuffersAreCountedOnce) {
    Topology all(with_roce());
    wire::FrameSpec nobody = spec_of(0);
    nobody.dport = 40'000;
    const Part part{0, 7, 0, 1000, 1000, 1};
    all.feed(make_.make(wire::make_udp_frame(nobody, ejfat_of(part)), 1, 300));
    all.feed(make_.make(changed(part, ejfat_at, 0x55), 1, 300));
    all.feed(make_.make(changed(part, ip_at + 8, 63), 1, 300));
    for (const Bytes& frame : roce_frames_of(1, 9, 200, 0)) all.feed(make_.make(frame, 1, 100));
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::unsteered), 1U);
    EXPECT_EQ(all.count(PacketCounter::malformed_header), 1U);
    EXPECT_EQ(all.count(PacketCounter::malformed_ip_checksum), 1U);
    EXPECT_EQ(all.count(PacketCounter::placed), 1U) << "a RoCE packet is copied together";
}

Shape with_decapsulation() {
    Shape shape = one_source();
    shape.with_rx = [](RxStage::Config& config) { config.decapsulate = {wire::Tunnels::all()}; };
    return shape;
}
/// As a mirror sends it: in VXLAN.
Bytes mirrored(const Bytes& frame) {
    wire::FrameSpec spec = spec_of(0);
    spec.dport = wire::vxlan_port;
    Bytes payload(8);
    payload[0] = std::byte{8};
    payload.insert(payload.end(), frame.begin(), frame.end());
    return wire::make_udp_frame(spec, payload);
}

TEST_F(RxStageTest, WhatAMirrorHasPutAroundPacketsIsTakenOff) {
    Topology all(with_decapsulation());
    all.feed(make_.make(mirrored(frame_of({0, 7, 0, 500, 500, 0})), 1));
    all.feed(make_.make(frame_of({0, 8, 0, 500, 500, 0}), 2));  // as it is
    all.feed(make_.make(mirrored(mirrored(frame_of({0, 9, 0, 500, 500, 0}))), 3));
    const std::vector<Bytes> pieces = fragments_of(frame_of({0, 10, 0, 1500, 1500, 0}), 512, 3);
    for (const Bytes& piece : pieces) all.feed(make_.make(mirrored(piece), 4));
    all.feed(make_.make(mirrored(mirrored(mirrored(frame_of(good)))), 5));
    all.feed(make_.make(mirrored(changed(good, ip_at + 8, 63)), 6));
    all.feed(make_.make(mirrored(Bytes(4)), 7));
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::placed), 3 + pieces.size());
    EXPECT_EQ(all.count(PacketCounter::malformed_nested), 1U);
    EXPECT_EQ(all.count(PacketCounter::malformed_ip_checksum), 1U);
    EXPECT_EQ(all.count(PacketCounter::malformed_ethernet), 1U);
    EXPECT_EQ(all.count(EventCounter::complete), 4U);
    EXPECT_EQ(all.rx().decapsulation().taken(0, wire::Tunnel::vxlan), 1 + 2 + pieces.size() + 2 + 1 + 1);
    EXPECT_EQ(all.rx().decapsulation().taken(0, wire::Tunnel::erspan), 0U);
}

TEST_F(RxStageTest, NothingIsTakenOffWhereNobodyAsks) {
    Topology all(one_source());
    all.feed(make_.make(mirrored(frame_of(good)), 1));
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::unsteered), 1U);
    EXPECT_EQ(all.rx().decapsulation().taken(0, wire::Tunnel::vxlan), 0U);
}

// Outer headers in the first buffer, or in several; the frame inside in one, or in several; and more buffers than it
// has bytes.
TEST_F(RxStageTest, ItIsTakenOffAFrameInSeveralBuffers) {
    const Bytes frame = mirrored(frame_of({0, 7, 0, 1400, 1400, 1}));
    for (const std::size_t segment : {std::size_t{1000}, std::size_t{62}, std::size_t{20}}) {
        Topology all(with_decapsulation());
        all.feed(make_.make(frame, 1, segment));
        finish(all);
        EXPECT_EQ(all.count(PacketCounter::placed), 1U) << segment;
        EXPECT_EQ(all.count(EventCounter::complete), 1U) << segment;
    }
    const Bytes large = mirrored(frame_of({0, 8, 0, 5000, 5000, 1}));
    Bytes padded = frame;
    padded.resize(5000);
    for (const Bytes& one : {large, padded}) {
        Topology all(with_decapsulation());
        all.feed(make_.make(one, 1, wire::decapsulation_reads_max));
        finish(all);
        EXPECT_EQ(all.count(PacketCounter::placed), 1U);
        EXPECT_EQ(all.count(EventCounter::complete), 1U);
        EXPECT_EQ(all.rx().decapsulation().taken(0, wire::Tunnel::vxlan), 1U);
    }
}

TEST_F(RxStageTest, OfOuterPacketsInPiecesItSaysWhere) {
    Topology all(with_decapsulation());
    const std::vector<Bytes> pieces = fragments_of(mirrored(frame_of({0, 7, 0, 1400, 1400, 1})), 512, 3);
    for (const Bytes& piece : pieces) all.feed(make_.make(piece, 1));
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::ip_fragment_encapsulated), pieces.size());
}

TEST_F(RxStageTest, WaitsWhereDescriptorsFindNoRoomAndLosesNothing) {
    Shape shape = one_source();
    shape.descriptor_ring = 8;
    Topology all(shape);
    for (std::uint64_t number = 0; number < 200; ++number)
        ASSERT_TRUE(all.try_feed(make_.make({.source = 0, .number = number, .time = 1})));
    for (int i = 0; i < 5; ++i) all.poll_rx();
    EXPECT_GT(all.blocked(all.rx(), Blocked::descriptors), 0U);
    EXPECT_EQ(all.input().count(), 200U - 64U) << "no second burst is taken";
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::placed), 200U);
    EXPECT_EQ(all.count(EventCounter::complete), 200U);
}

TEST_F(RxStageTest, WaitsWhereItsBuffersAreAllHeldAndLosesNothing) {
    Shape shape = one_source();
    shape.buffers_max = 128;
    Topology all(shape);
    for (std::uint64_t number = 0; number < 400; ++number)
        ASSERT_TRUE(all.try_feed(make_.make({.source = 0, .number = number, .time = 1})));
    for (int i = 0; i < 5; ++i) {
        all.poll_rx();
        all.poll_build();
    }
    EXPECT_GT(all.blocked(all.rx(), Blocked::memory), 0U);
    EXPECT_LE(all.rx().buffers_held(), 128U);
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::placed), 400U);
}

TEST_F(RxStageTest, CopiedPayloadGivesBuffersBackAtOnceAndCellsComeBack) {
    Shape shape = one_source();
    shape.with_rx = [](RxStage::Config& config) {
        config.table.copies.at_once_bytes = 256;
        config.table.copies.cells = 8;
    };
    Topology all(shape);
    // Many times more than there are cells; if one stayed away, the last messages would hold buffers.
    for (std::uint64_t number = 0; number < 200; ++number) {
        all.feed(make_.make(part_of(0, number, 0, 2, static_cast<TimeNs>(number))));
        all.poll_rx();
        EXPECT_EQ(pool_.in_use(), 0U);
        all.feed(make_.make(part_of(0, number, 1, 2, static_cast<TimeNs>(number))));
        all.drain();
    }
    finish(all);
    EXPECT_EQ(all.count(EventCounter::complete), 200U);
}

/// Two rx lcores. All packets arrive at the first, as in a replay, or each lcore has an input of its own.
class TwoRxTest : public StagesTest {
protected:
    static Shape two() {
        Shape shape;
        shape.rx = 2;
        return shape;
    }
};

TEST_F(TwoRxTest, SteeredPacketsAreCountedOnceAndJoinTheirEvents) {
    Topology all(two());
    for (std::uint64_t number = 0; number < 100; ++number)
        for (std::uint32_t source = 0; source < 2; ++source)
            all.feed(make_.make({.source = source, .number = number, .time = static_cast<TimeNs>(number)}));
    finish(all);
    EXPECT_EQ(all.rx(0).packets().get(PacketCounter::in_flight) + all.rx(1).packets().get(PacketCounter::in_flight) +
                  all.build().packets().get(PacketCounter::in_flight),
              0U);
    EXPECT_EQ(all.rx(0).received_packets(), 200U);
    EXPECT_EQ(all.rx(1).received_packets(), 0U) << "what is steered is not received again";
    EXPECT_EQ(all.rx(1).source_packets(1), 100U);
    EXPECT_EQ(all.count(EventCounter::complete), 100U);
}

TEST_F(TwoRxTest, WaitsWhereTheRingToTheOtherIsFullAndLosesNothing) {
    Shape shape = two();
    shape.steer_ring = 8;
    Topology all(shape);
    for (std::uint64_t number = 0; number < 200; ++number)
        ASSERT_TRUE(all.try_feed(make_.make({.source = 1, .number = number, .time = 1})));
    for (int i = 0; i < 5; ++i) all.poll_rx(0);
    EXPECT_GT(all.blocked(all.rx(0), Blocked::steer), 0U);
    EXPECT_EQ(all.count(PacketCounter::ring_full_steer), 0U);
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::placed), 200U);
}

TEST_F(TwoRxTest, WithoutWaitingWhatFindsTheRingFullIsCounted) {
    Shape shape = two();
    shape.steer_ring = 8;
    shape.wait = false;
    Topology all(shape);
    for (std::uint64_t number = 0; number < 64; ++number)
        ASSERT_TRUE(all.try_feed(make_.make({.source = 1, .number = number, .time = 1})));
    all.poll_rx(0);
    EXPECT_EQ(all.count(PacketCounter::ring_full_steer), 64U - 8U);
    EXPECT_EQ(all.steered(0, 1).dropped(), 64U - 8U);
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::placed), 8U);
}

TEST_F(TwoRxTest, DatagramsInPiecesAreSteeredWhole) {
    Topology all(two());
    for (const Bytes& piece : fragments_of(frame_of({1, 7, 0, 1500, 1500, 0}), 512, 3)) all.feed(make_.make(piece, 1));
    all.feed(make_.make({.source = 0, .number = 7, .time = 1}));
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::placed), 4U);
    EXPECT_EQ(all.count(EventCounter::complete), 1U);
}

// Where room is for a few of them, the other lcore takes what it has room for, and nobody waits for ever.
TEST_F(TwoRxTest, DatagramsInManyPiecesAreSteeredThroughLittleRoom) {
    Topology all(two());
    constexpr std::uint64_t events = 60;
    std::size_t packets = 0;
    for (std::uint64_t number = 0; number < events; ++number) {
        const Part part{1, number, 0, 900, 900, static_cast<TimeNs>(number)};
        for (const Bytes& piece : fragments_of(frame_of(part), 8, static_cast<std::uint16_t>(number))) {
            all.feed(make_.make(piece, part.time));
            ++packets;
        }
        all.feed(make_.make({.source = 0, .number = number, .time = part.time}));
        ++packets;
    }
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::placed), packets);
    EXPECT_EQ(all.count(EventCounter::complete), events);
}

TEST_F(TwoRxTest, OneThatRunsAheadInTimeClosesNothingOfTheOther) {
    Shape shape = two();
    shape.replay = false;
    Topology all(shape);
    // The first lcore has packets of three time-outs, and is polled until it has taken them all, before the second has
    // been polled at all: its packets of the same events came at the same times.
    for (std::uint64_t number = 0; number < 30; ++number)
        ASSERT_TRUE(all.try_feed(
            make_.make({.source = 0, .number = number, .time = 10 * ms * static_cast<TimeNs>(number)}), 0));
    for (int i = 0; i < 10; ++i) {
        all.poll_rx(0);
        all.poll_build();
        all.poll_work();
    }
    EXPECT_EQ(all.input(0).count(), 0U);
    EXPECT_EQ(all.count(EventCounter::incomplete_timeout), 0U);
    for (std::uint64_t number = 0; number < 30; ++number)
        ASSERT_TRUE(all.try_feed(
            make_.make({.source = 1, .number = number, .time = 10 * ms * static_cast<TimeNs>(number)}), 1));
    finish(all);
    EXPECT_EQ(all.count(EventCounter::complete), 30U);
    EXPECT_EQ(all.count(PacketCounter::placed), 60U);
}

TEST_F(TwoRxTest, ABacklogLongerThanTheTimeOutClosesNoEventEarly) {
    Topology all(two());
    // 300 ms of packets wait in the ring to the second lcore, while the first has its own part of the same events.
    constexpr std::uint64_t events = 150;
    for (std::uint64_t number = 0; number < events; ++number) {
        const TimeNs time = 2 * ms * static_cast<TimeNs>(number);
        for (std::uint32_t source = 0; source < 2; ++source)
            ASSERT_TRUE(all.try_feed(make_.make({.source = source, .number = number, .time = time})));
    }
    for (int i = 0; i < 20; ++i) {
        all.poll_rx(0);
        all.poll_build();
        all.poll_work();
        all.poll_sink();
    }
    EXPECT_EQ(all.steered(0, 1).count(), events);
    EXPECT_EQ(all.count(EventCounter::opened), 0U) << "the builder waits for the second lcore's part";
    // It comes back and takes a burst per poll, so between polls a part of the backlog is still there.
    for (int i = 0; i < 2; ++i) {
        all.poll_rx(1);
        all.poll_build();
        EXPECT_GT(all.steered(0, 1).count(), 0U);
        EXPECT_EQ(all.count(EventCounter::incomplete_timeout), 0U);
    }
    finish(all);
    EXPECT_EQ(all.count(EventCounter::complete), events);
    EXPECT_EQ(all.count(PacketCounter::late), 0U);
}

TEST_F(TwoRxTest, InABacklogWhatIsReallyLateIsLateAllTheSame) {
    Topology all(two());
    const TimeNs timeout = all.shape().timeout_ns;
    all.feed(make_.make({.source = 0, .number = 1, .time = 0}));
    all.feed(make_.make(part_of(1, 1, 0, 2, 1)));
    all.feed(make_.make({.source = 0, .number = 2, .time = timeout - 1}));
    all.feed(make_.make({.source = 1, .number = 2, .time = timeout - 1}));
    all.feed(make_.make(part_of(1, 1, 1, 2, timeout)));
    for (int i = 0; i < 4; ++i) all.poll_rx(0);
    EXPECT_EQ(all.steered(0, 1).count(), 3U);
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::late), 1U);
    EXPECT_EQ(all.count(EventCounter::incomplete_timeout), 1U);
    EXPECT_EQ(all.count(EventCounter::complete), 1U);
}

/// A queue pair that is answered: the packets come at the first lcore, the second one owns it.
class RxResponderTest : public StagesTest {
protected:
    Shape shape() {
        Shape shape;
        shape.rx = 2;
        shape.sources_needed = 1;
        shape.with_rx = [this](RxStage::Config& config) {
            if (config.index != 1) return;
            config.listener.sources = {{.source = 1}};
            config.responder.sources = {{.source = 1, .queue_pair = {.peer_qp = 0x77, .psn = 100}}};
            config.table.keeps = true;
            config.answer_log = &answers_;
        };
        return shape;
    }
    void feed(Topology& all, std::uint32_t number, std::uint32_t bytes, std::uint32_t psn) {
        for (const Bytes& frame : roce_frames_of(1, number, bytes, psn)) all.feed(make_.make(frame, 1));
    }
    AnswerRing answers_;
};

TEST_F(RxResponderTest, WhatComesInOrderIsAcknowledgedAndMakesEvents) {
    Topology all(shape());
    feed(all, 5, 1000, 100);
    feed(all, 6, 100, 104);
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::placed), 5U);
    EXPECT_EQ(all.count(EventCounter::complete), 2U);
    EXPECT_EQ(all.rx(1).answers().get(roce::AnswerCounter::ack), 2U);
    EXPECT_EQ(all.rx(1).queue_pair(1).psn, 105U);
    EXPECT_NE(answers_.front(), nullptr);
}

/// Nobody said at which PSN its peer begins.
class RxStartTest : public RxResponderTest {
protected:
    Topology topology(bool answers = true) {
        Shape with = shape();
        with.with_rx = [answers, base = with.with_rx](RxStage::Config& config) {
            base(config);
            for (auto& source : config.responder.sources) {
                source.queue_pair.psn.reset();
                if (!answers) source.queue_pair.peer_qp.reset();
            }
        };
        return Topology(with);
    }
    void expect(Topology& all, std::uint64_t events, std::uint64_t refused) {
        finish(all);
        EXPECT_EQ(all.count(EventCounter::complete), events);
        EXPECT_EQ(all.count(PacketCounter::roce_sequence), refused);
    }
};

TEST_F(RxStartTest, TwoPacketsInARowAreItsBeginning) {
    Topology all = topology();
    feed(all, 5, 1000, 0xfffffe);
    feed(all, 6, 100, 2);
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::placed), 5U);
    EXPECT_EQ(all.count(EventCounter::complete), 2U);
    EXPECT_EQ(all.rx(1).answers().get(roce::AnswerCounter::ack), 2U);
    EXPECT_EQ(all.rx(1).queue_pair(1).psn, 3U);
}

/// Before the fix its PSN was believed: all that followed was refused.
TEST_F(RxStartTest, AStrangersPacketIsNoBeginning) {
    for (const std::uint32_t psn : {5000U, 0x700000U, 50U, 0xf00000U}) {
        const bool is_ahead = psn == 5000 || psn == 0x700000;
        Topology all = topology();
        feed(all, 99, 100, psn);
        for (std::uint32_t i = 0; i < 10; ++i) feed(all, 5 + i, 100, 100 + i);
        expect(all, 10, is_ahead ? 1 : 0);
        EXPECT_EQ(all.count(PacketCounter::placed), 10U) << psn;
        EXPECT_EQ(all.rx(1).answers().get(roce::AnswerCounter::ack), 10U + (is_ahead ? 0U : 1U)) << psn;
    }
}

TEST_F(RxStartTest, StrangersBetweenTheFirstTwoDoNoHarm) {
    Topology all = topology();
    feed(all, 5, 100, 100);
    for (const std::uint32_t psn : {7000U, 8000U, 9000U}) feed(all, 99, 100, psn);
    for (std::uint32_t i = 1; i < 5; ++i) feed(all, 5 + i, 100, 100 + i);
    expect(all, 5, 3);
    EXPECT_EQ(all.rx(1).queue_pair(1).psn, 105U);
}

TEST_F(RxStartTest, OneMessageIsTakenWhenItComesAgain) {
    Topology all = topology();
    feed(all, 5, 100, 100);
    for (int i = 0; i < 3; ++i) all.poll_rx(0), all.poll_rx(1);
    EXPECT_EQ(all.rx(1).answers().get(roce::AnswerCounter::ack), 0U) << "what is acknowledged does not come again";
    feed(all, 5, 100, 100);
    expect(all, 1, 0);
    EXPECT_EQ(all.count(PacketCounter::placed), 1U);
    EXPECT_EQ(all.count(PacketCounter::duplicate), 1U);
    EXPECT_EQ(all.rx(1).answers().get(roce::AnswerCounter::ack), 2U);
}

TEST_F(RxStartTest, OneMessageIsTakenAtTheEnd) {
    Topology all = topology();
    feed(all, 5, 100, 100);
    expect(all, 1, 0);
    EXPECT_EQ(all.count(PacketCounter::placed), 1U);
}

TEST_F(RxStartTest, TheFirstPacketsMayComeInAnyOrder) {
    Topology all = topology();
    for (const std::uint32_t i : {2U, 1U, 0U, 3U, 4U}) feed(all, 5 + i, 100, 100 + i);
    expect(all, 5, 0);
    EXPECT_EQ(all.count(PacketCounter::placed), 5U);
}

/// Where nothing is answered, it may begin earlier for a long time.
TEST_F(RxStartTest, AStrangersEarlierPacketIsNoBeginningEither) {
    Topology all = topology(false);
    for (std::uint32_t i = 0; i < 3; ++i) feed(all, 5 + i, 100, 100 + i);
    feed(all, 99, 100, 50);
    for (std::uint32_t i = 3; i < 10; ++i) feed(all, 5 + i, 100, 100 + i);
    finish(all);
    EXPECT_EQ(all.rx(1).queue_pair(1).psn, 110U);
    EXPECT_EQ(all.count(PacketCounter::unbound), 1U);
    EXPECT_EQ(all.count(PacketCounter::placed), 10U);
    EXPECT_EQ(all.count(EventCounter::complete), 10U);
}

TEST_F(RxStartTest, ItBeginsEarlierIfTwoPacketsSaySo) {
    Topology all = topology(false);
    for (std::uint32_t i = 2; i < 4; ++i) feed(all, 5 + i, 100, 100 + i);
    for (std::uint32_t i = 0; i < 6; ++i) feed(all, 5 + i, 100, 100 + i);
    expect(all, 6, 0);
    EXPECT_EQ(all.count(PacketCounter::duplicate), 2U);
}

TEST_F(RxResponderTest, WhatIsAheadOfTheSequenceIsRefusedAndAskedForAgain) {
    Topology all(shape());
    feed(all, 5, 100, 100);
    feed(all, 7, 100, 102);
    feed(all, 8, 100, 103);
    feed(all, 5, 100, 100);  // acknowledged once more
    feed(all, 6, 100, 101);
    feed(all, 7, 100, 102);
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::roce_sequence), 2U);
    EXPECT_EQ(all.count(PacketCounter::duplicate), 1U);
    EXPECT_EQ(all.count(PacketCounter::placed), 3U);
    EXPECT_EQ(all.rx(1).answers().get(roce::AnswerCounter::nak_sequence), 1U);
    EXPECT_EQ(all.count(EventCounter::complete), 3U);
}

}  // namespace
}  // namespace weir::stages::test
