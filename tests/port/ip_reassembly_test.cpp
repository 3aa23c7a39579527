// IP fragments become datagrams or end in a counter. Datagrams are cut by this test itself, into every shape that a
// network or a bad sender makes of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include "core/hot_thread.hpp"
#include "port/eal.hpp"
#include "port/ip_reassembly.hpp"
#include "wire/encode.hpp"
#include "wire/network.hpp"

namespace weir::port {
namespace {

using core::TimeNs;
using wire::PacketCounter;
using Bytes = std::vector<std::byte>;

constexpr TimeNs ms = core::ns_per_ms;
constexpr TimeNs start_ns = 1'700'000'000 * core::ns_per_s;

Bytes pattern(std::size_t bytes, std::uint32_t seed) {
    std::mt19937 random(seed);
    Bytes out(bytes);
    for (std::byte& value : out) value = static_cast<std::byte>(random());
    return out;
}

wire::FrameSpec spec_of(bool ipv6) {
    wire::FrameSpec spec;
    spec.dont_fragment = false;
    if (ipv6) {
        spec.ipv6.emplace();
        spec.ipv6->src = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
        spec.ipv6->dst = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
    }
    return spec;
}

struct Cut {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    bool last = false;
};

/// What `cut` of the datagram's IP payload looks like as a frame.
Bytes piece_of(const Bytes& frame, const wire::FrameSpec& spec, const Cut& cut, std::uint32_t identification) {
    const std::size_t link = wire::frame_header_bytes(spec) - wire::ip_header_bytes(spec) - wire::udp_header_bytes;
    const std::size_t header = link + wire::ip_header_bytes(spec);
    Bytes out(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(header));
    std::byte* ip = out.data() + link;
    const auto bytes = static_cast<std::uint16_t>(cut.end - cut.begin);
    if (spec.ipv6) {
        wire::store_be(ip + 4, static_cast<std::uint16_t>(bytes + 8));
        const std::byte next = std::exchange(ip[6], std::byte{44});
        std::array<std::byte, 8> extension{next};
        wire::store_be(extension.data() + 2, static_cast<std::uint16_t>(cut.begin | (cut.last ? 0U : 1U)));
        wire::store_be(extension.data() + 4, identification);
        out.insert(out.end(), extension.begin(), extension.end());
    } else {
        wire::store_be(ip + 2, static_cast<std::uint16_t>(20 + bytes));
        wire::store_be(ip + 4, static_cast<std::uint16_t>(identification));
        wire::store_be(ip + 6, static_cast<std::uint16_t>(cut.begin / 8 | (cut.last ? 0U : 0x2000U)));
        wire::store_be(ip + 10, std::uint16_t{0});
        wire::store_le(ip + 10, static_cast<std::uint16_t>(~wire::ipv4_header_sum(ip, 20)));
    }
    const auto payload = frame.begin() + static_cast<std::ptrdiff_t>(header);
    out.insert(out.end(), payload + cut.begin, payload + cut.end);
    return out;
}

std::vector<Cut> cuts_of(std::uint32_t ip_payload_bytes, std::uint32_t step) {
    std::vector<Cut> cuts;
    for (std::uint32_t at = 0; at < ip_payload_bytes; at += step)
        cuts.push_back({at, std::min(at + step, ip_payload_bytes), at + step >= ip_payload_bytes});
    return cuts;
}

class IpReassemblyTest : public testing::Test {
protected:
    void make(IpReassembly::Config config) { reassembly_.emplace(config); }
    void SetUp() override {
        pool_.emplace("pieces", BufferPoolConfig{2048, 2048});
        make({});
    }
    void TearDown() override {
        while (reassembly_->held() > 0) {
            reassembly_->flush();
            take_ended();
        }
        reassembly_.reset();
        EXPECT_EQ(rte_mempool_avail_count(pool_->get()), 2048U) << "every buffer was given back";
        pool_.reset();
    }

    /// One packet; the payload of the datagram that it completes.
    std::optional<Bytes> give(const Bytes& frame, TimeNs now = start_ns) {
        rte_mbuf* mbuf = pool_->allocate();
        std::memcpy(rte_pktmbuf_mtod(mbuf, void*), frame.data(), frame.size());
        mbuf->data_len = static_cast<std::uint16_t>(frame.size());
        mbuf->pkt_len = static_cast<std::uint32_t>(frame.size());
        const auto bytes = static_cast<std::uint32_t>(frame.size());
        wire::Datagram piece;
        EXPECT_EQ(wire::parse_frame(rte_pktmbuf_mtod(mbuf, const std::byte*), bytes, bytes, piece),
                  PacketCounter::malformed_ip_fragment);
        ++given_;
        core::hot_thread(true);
        rte_mbuf* whole = reassembly_->add({mbuf, now, bytes, static_cast<std::uint16_t>(bytes), 0, 0}, piece, now);
        core::hot_thread(false);
        take_ended();
        return whole == nullptr ? std::nullopt : std::optional(take(whole));
    }
    std::optional<Bytes> give(const Bytes& frame, const wire::FrameSpec& spec, const std::vector<Cut>& cuts,
                              std::uint32_t identification = 7, TimeNs now = start_ns) {
        std::optional<Bytes> whole;
        for (const Cut& cut : cuts)
            if (auto made = give(piece_of(frame, spec, cut, identification), now)) whole = std::move(made);
        return whole;
    }
    void take_ended() {
        for (const IpReassembly::Ended& ended : reassembly_->ended()) {
            EXPECT_EQ(ended.mbuf->nb_segs, 1);
            ++ended_[ended.counter];
            rte_pktmbuf_free(ended.mbuf);
        }
    }
    Bytes take(rte_mbuf* whole) {
        std::uint32_t segments = 0;
        Bytes linear;
        for (const rte_mbuf* at = whole; at != nullptr; at = at->next, ++segments)
            linear.insert(linear.end(), rte_pktmbuf_mtod(at, const std::byte*),
                          rte_pktmbuf_mtod(at, const std::byte*) + at->data_len);
        EXPECT_EQ(segments, whole->nb_segs);
        EXPECT_EQ(linear.size(), whole->pkt_len);
        first_bytes_ = whole->data_len;
        joined_ += segments;
        rte_pktmbuf_free(whole);
        wire::Datagram datagram;
        const auto bytes = static_cast<std::uint32_t>(linear.size());
        EXPECT_EQ(wire::parse_frame(linear.data(), bytes, bytes, datagram), wire::ok);
        return {datagram.payload, datagram.payload + datagram.payload_bytes};
    }
    void expect_ended(const std::map<PacketCounter, std::uint32_t>& expected) {
        EXPECT_EQ(ended_.size(), expected.size());
        for (const auto& [counter, count] : expected)
            EXPECT_EQ(ended_[counter], count) << wire::packet_counters[static_cast<std::size_t>(counter)].name;
    }

    std::optional<BufferPool> pool_;
    std::optional<IpReassembly> reassembly_;
    std::map<PacketCounter, std::uint32_t> ended_;
    std::uint32_t given_ = 0;
    std::uint32_t joined_ = 0;
    std::uint32_t first_bytes_ = 0;
};

TEST_F(IpReassemblyTest, PutsPiecesTogetherInEveryOrder) {
    for (const bool ipv6 : {false, true}) {
        const wire::FrameSpec spec = spec_of(ipv6);
        const Bytes payload = pattern(4093, 1);
        const Bytes frame = wire::make_udp_frame(spec, payload);
        std::vector<Cut> cuts = cuts_of(4101, 1024);
        ASSERT_EQ(cuts.size(), 5U);
        std::array<std::size_t, 5> order{0, 1, 2, 3, 4};
        std::uint32_t identification = 0;
        do {
            std::vector<Cut> turned;
            for (const std::size_t i : order) turned.push_back(cuts[i]);
            ASSERT_EQ(give(frame, spec, turned, ++identification), payload);
        } while (std::next_permutation(order.begin(), order.end()));
        EXPECT_EQ(reassembly_->held(), 0U);
    }
    EXPECT_EQ(joined_, given_);
    EXPECT_EQ(reassembly_->counts().datagrams, 240U);
    EXPECT_EQ(reassembly_->counts().fragments, 1200U);
    EXPECT_EQ(reassembly_->counts().reused_identification, 0U);
}

TEST_F(IpReassemblyTest, TagsOptionsAndPaddingStayOutOfThePayload) {
    wire::FrameSpec spec = spec_of(false);
    spec.service_vlan = 1;
    spec.vlan = 2;
    const Bytes payload = pattern(300, 2);
    Bytes frame = wire::make_udp_frame(spec, payload);
    std::optional<Bytes> whole;
    for (const Cut& cut : cuts_of(308, 104)) {
        Bytes piece = piece_of(frame, spec, cut, 7);
        piece.insert(piece.begin() + 42, 4, std::byte{1});  // no-operation options
        piece[22] = std::byte{0x46};
        wire::store_be(piece.data() + 24, static_cast<std::uint16_t>(24 + cut.end - cut.begin));
        wire::store_be(piece.data() + 32, std::uint16_t{0});
        piece.resize(piece.size() + 11, std::byte{0xee});
        if (auto made = give(piece)) whole = std::move(made);
    }
    EXPECT_EQ(whole, payload);
}

TEST_F(IpReassemblyTest, IPv6ExtensionHeadersBeforeTheFragmentHeaderAreTakenOut) {
    const wire::FrameSpec spec = spec_of(true);
    const Bytes payload = pattern(300, 3);
    const Bytes frame = wire::make_udp_frame(spec, payload);
    std::optional<Bytes> whole;
    for (const Cut& cut : cuts_of(308, 104)) {
        Bytes piece = piece_of(frame, spec, cut, 7);
        piece[20] = std::byte{0};  // hop-by-hop options, then the fragment header
        piece.insert(piece.begin() + 54, 16, std::byte{0});
        piece[54] = std::byte{44};
        piece[55] = std::byte{1};
        wire::store_be(piece.data() + 18, static_cast<std::uint16_t>(16 + 8 + cut.end - cut.begin));
        if (auto made = give(piece)) whole = std::move(made);
    }
    EXPECT_EQ(whole, payload);
}

TEST_F(IpReassemblyTest, HeadersLieInTheFirstBufferHoweverSmallTheFirstPieceIs) {
    const wire::FrameSpec spec = spec_of(false);
    const Bytes payload = pattern(1200, 4);
    EXPECT_EQ(give(wire::make_udp_frame(spec, payload), spec,
                   {{0, 8, false}, {8, 16, false}, {16, 608, false}, {608, 1208, true}}),
              payload);
    EXPECT_EQ(first_bytes_, 640U);
    EXPECT_EQ(joined_, 4U);  // an emptied buffer is a packet all the same
}

TEST_F(IpReassemblyTest, WhatStaysWithoutItsRestTimesOut) {
    const wire::FrameSpec spec = spec_of(false);
    const Bytes frame = wire::make_udp_frame(spec, pattern(3000, 5));
    const std::vector<Cut> cuts = cuts_of(3008, 1000);
    give(frame, spec, {cuts[0], cuts[1]}, 7);
    reassembly_->expire(start_ns + 20 * ms);
    take_ended();
    expect_ended({});
    EXPECT_EQ(reassembly_->held(), 2U);
    reassembly_->expire(start_ns + 20 * ms + 1);
    take_ended();
    expect_ended({{PacketCounter::ip_fragment_timeout, 2}});
    EXPECT_EQ(reassembly_->held(), 0U);
    // What comes too late has nothing to join any more.
    EXPECT_FALSE(give(frame, spec, {cuts[2], cuts[3]}, 7, start_ns + 21 * ms));
    EXPECT_EQ(reassembly_->held(), 2U);
}

TEST_F(IpReassemblyTest, TheTimeOutDoesNotDependOnWhenItIsLookedFor) {
    const wire::FrameSpec spec = spec_of(false);
    const Bytes payload = pattern(1600, 6);
    const Bytes frame = wire::make_udp_frame(spec, payload);
    const std::vector<Cut> cuts = cuts_of(1608, 1000);
    give(frame, spec, {cuts[0]}, 7);
    EXPECT_FALSE(give(frame, spec, {cuts[1]}, 7, start_ns + 20 * ms + 1));
    expect_ended({{PacketCounter::ip_fragment_timeout, 1}});
    give(frame, spec, {cuts[0]}, 8, start_ns + 30 * ms);
    EXPECT_EQ(give(frame, spec, {cuts[1]}, 8, start_ns + 50 * ms), payload);
}

TEST_F(IpReassemblyTest, MoreThanEightPiecesAreTooManyAndAllOfThemSaySo) {
    for (const bool ipv6 : {false, true}) {
        const wire::FrameSpec spec = spec_of(ipv6);
        const Bytes payload = pattern(8 * 104 - 8, 7);
        EXPECT_EQ(give(wire::make_udp_frame(spec, payload), spec, cuts_of(8 * 104, 104), 1), payload);
        const Bytes larger = wire::make_udp_frame(spec, pattern(12 * 104 - 8, 8));
        EXPECT_FALSE(give(larger, spec, cuts_of(12 * 104, 104), 2));
        EXPECT_EQ(reassembly_->held(), 0U);
    }
    expect_ended({{PacketCounter::ip_fragment_too_many, 24}});
}

TEST_F(IpReassemblyTest, ContradictionsEndTheWholeDatagram) {
    const wire::FrameSpec spec = spec_of(false);
    const Bytes frame = wire::make_udp_frame(spec, pattern(3000, 9));
    const auto conflicts = [&](const std::vector<Cut>& cuts) {
        ended_.clear();
        give(frame, spec, cuts, 7);
        EXPECT_EQ(reassembly_->held(), 0U);
        expect_ended({{PacketCounter::ip_fragment_conflict, static_cast<std::uint32_t>(cuts.size())}});
    };
    conflicts({{0, 1000, false}, {0, 1000, false}});
    conflicts({{2000, 3008, true}, {2000, 3008, true}});
    conflicts({{0, 1000, false}, {1000, 2000, false}, {1000, 2000, false}, {2000, 3008, true}});
    conflicts({{0, 1000, false}, {992, 2000, false}, {2000, 3008, true}});
    conflicts({{1000, 2000, false}, {0, 1000, false}, {0, 1000, false}});
    conflicts({{2504, 3008, false}, {2000, 2504, true}, {0, 2000, false}});
    // A hole where something else came twice: the sum is right, the datagram is not.
    conflicts({{0, 1000, false}, {0 + 1000, 1504, false}, {1000, 1504, false}, {2008, 3008, true}});
}

TEST_F(IpReassemblyTest, AFullTableTakesNothingMoreAndLosesNothing) {
    make({.datagrams_max = 4, .buffers_max = 6});
    const wire::FrameSpec spec = spec_of(false);
    const Bytes payload = pattern(1600, 10);
    const Bytes frame = wire::make_udp_frame(spec, payload);
    const std::vector<Cut> cuts = cuts_of(1608, 1000);
    for (std::uint32_t identification = 0; identification < 6; ++identification)
        give(frame, spec, {cuts[0]}, identification);
    expect_ended({{PacketCounter::ip_fragment_no_room, 2}});
    EXPECT_EQ(reassembly_->held(), 4U);
    for (std::uint32_t identification = 0; identification < 4; ++identification)
        EXPECT_EQ(give(frame, spec, {cuts[1]}, identification), payload);
    EXPECT_EQ(reassembly_->held(), 0U);
    make({.datagrams_max = 64, .buffers_max = 6});
    for (std::uint32_t identification = 0; identification < 8; ++identification)
        give(frame, spec, {cuts[0]}, identification);
    expect_ended({{PacketCounter::ip_fragment_no_room, 4}});
}

TEST_F(IpReassemblyTest, ASourceThatUsesOneIdentificationAgainIsNamed) {
    const Bytes payload = pattern(1600, 11);
    const std::vector<Cut> cuts = cuts_of(1608, 1000);
    wire::FrameSpec good = spec_of(false);
    wire::FrameSpec bad = good;
    bad.src = 0x0a010063;
    EXPECT_EQ(reassembly_->reusing_source(), "");
    for (std::uint32_t i = 0; i < 5; ++i) {
        EXPECT_EQ(give(wire::make_udp_frame(good, payload), good, cuts, i), payload);
        EXPECT_EQ(give(wire::make_udp_frame(bad, payload), bad, cuts, 219), payload);
    }
    EXPECT_EQ(reassembly_->counts().reused_identification, 4U);
    EXPECT_EQ(reassembly_->reusing_source(), "10.1.0.99");
    const wire::FrameSpec ipv6 = spec_of(true);
    make({});
    for (int i = 0; i < 2; ++i) give(wire::make_udp_frame(ipv6, payload), ipv6, cuts, 0xabcdef01);
    EXPECT_EQ(reassembly_->reusing_source(), "fd00::1");
}

// Random storms: cut at random, reordered, lost, repeated, of two kinds, with too few identifications. Every packet
// ends once, and a datagram that comes out is one that was sent.
TEST_F(IpReassemblyTest, StormsOfFragmentsBalance) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    make({.datagrams_max = 32, .buffers_max = 100});
    std::uint32_t whole = 0;
    TimeNs now = start_ns;
    for (int round = 0; round < 300; ++round) {
        struct Waiting {
            Bytes frame;
            Bytes payload;
        };
        std::vector<Waiting> waiting;
        for (std::uint32_t i = 0; i < 1 + random() % 12; ++i) {
            const wire::FrameSpec spec = spec_of(random() % 2 == 0);
            const std::uint32_t bytes = 100 + random() % 900;
            const Bytes payload = pattern(bytes, random());
            const Bytes frame = wire::make_udp_frame(spec, payload);
            const std::uint32_t identification = i * 1000 + static_cast<std::uint32_t>(round);
            for (const Cut& cut : cuts_of(bytes + 8, 8 * (1 + (random() % 40)))) {
                if (cut.begin == 0 && cut.last) continue;
                if (random() % 30 == 0) continue;
                for (unsigned copies = random() % 40 == 0 ? 2 : 1; copies > 0; --copies)
                    waiting.push_back({piece_of(frame, spec, cut, identification), payload});
            }
        }
        std::ranges::shuffle(waiting, random);
        for (const Waiting& one : waiting) {
            now += static_cast<TimeNs>(random() % 1000) * 1000;
            if (const auto made = give(one.frame, now)) {
                ++whole;
                EXPECT_EQ(*made, one.payload);
            }
            if (random() % 8 == 0) {
                reassembly_->expire(now);
                take_ended();
            }
        }
    }
    while (reassembly_->held() > 0) {
        reassembly_->flush();
        take_ended();
    }
    std::uint32_t ended = 0;
    for (const auto& [counter, count] : ended_) ended += count;
    EXPECT_EQ(joined_ + ended, given_);
    EXPECT_GT(whole, 100U);
}

}  // namespace
}  // namespace weir::port
