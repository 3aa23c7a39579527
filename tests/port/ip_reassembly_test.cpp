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
        mbuf->buf_len = static_cast<std::uint16_t>(mbuf->data_off + frame.size());  // as in a capture: no tailroom
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

TEST_F(IpReassemblyTest, TheFirstPieceMayBeAsSmallAsAPieceCanBe) {
    const Bytes payload = pattern(1200, 4);
    std::uint32_t identification = 0;
    for (const bool ipv6 : {false, true})
        for (const std::uint32_t first : {8U, 16U, 104U, 552U, 1200U}) {
            const wire::FrameSpec spec = spec_of(ipv6);
            const Bytes frame = wire::make_udp_frame(spec, payload);
            EXPECT_EQ(give(frame, spec, {{0, first, false}, {first, 1208, true}}, ++identification), payload);
            EXPECT_EQ(give(frame, spec, {{first, 1208, true}, {0, first, false}}, ++identification), payload);
        }
    EXPECT_EQ(joined_, 40U);
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

TEST_F(IpReassemblyTest, MorePiecesThanTheBoundAreTooManyAndAllOfThemSaySo) {
    constexpr std::uint32_t most = IpReassembly::pieces_max;
    for (const bool ipv6 : {false, true}) {
        const wire::FrameSpec spec = spec_of(ipv6);
        const Bytes payload = pattern(most * 104 - 8, 7);
        EXPECT_EQ(give(wire::make_udp_frame(spec, payload), spec, cuts_of(most * 104, 104), 1), payload);
        const Bytes larger = wire::make_udp_frame(spec, pattern((most + 4) * 104 - 8, 8));
        EXPECT_FALSE(give(larger, spec, cuts_of((most + 4) * 104, 104), 2));
        EXPECT_EQ(reassembly_->held(), 0U);
    }
    expect_ended({{PacketCounter::ip_fragment_too_many, 2 * (most + 4)}});
}

TEST_F(IpReassemblyTest, TheLargestDatagramsAreTakenAtEveryUsualMtu) {
    for (const bool ipv6 : {false, true}) {
        const wire::FrameSpec spec = spec_of(ipv6);
        const std::uint32_t bytes = 65535 - (ipv6 ? 0 : 20);  // the length of IPv4 is with the header
        const Bytes payload = pattern(bytes - 8, 12);
        const Bytes frame = wire::make_udp_frame(spec, payload);
        std::uint32_t identification = 0;
        for (const std::uint32_t step : {512U, 552U, 1232U, 1448U, 1480U, 1976U}) {
            std::vector<Cut> cuts = cuts_of(bytes, step);
            EXPECT_EQ(give(frame, spec, cuts, ++identification), payload) << step;
            std::ranges::reverse(cuts);
            EXPECT_EQ(give(frame, spec, cuts, ++identification), payload) << step;
        }
    }
    expect_ended({});
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
    // Overlaps, though the bytes agree: no network makes them of one datagram.
    conflicts({{0, 1000, false}, {992, 2000, false}, {2000, 3008, true}});
    conflicts({{1000, 2000, false}, {0, 1008, false}, {2000, 3008, true}});
    conflicts({{1000, 1504, false}, {0, 2000, false}});
    // Two ends, or something behind the end.
    conflicts({{2504, 3008, false}, {2000, 2504, true}, {0, 2000, false}});
    conflicts({{2000, 2504, true}, {2504, 3008, false}});
    conflicts({{2000, 2504, true}, {2504, 3008, true}});
    conflicts({{2000, 3008, true}, {2000, 2504, true}});
    conflicts({{2000, 2504, false}, {2000, 2504, true}});
    conflicts({{2000, 2504, true}, {2000, 2504, false}});
}

TEST_F(IpReassemblyTest, APieceThatCameTwiceIsADuplicateWhereverItComesAgain) {
    for (const bool ipv6 : {false, true}) {
        const wire::FrameSpec spec = spec_of(ipv6);
        const Bytes payload = pattern(3000, 9);
        const Bytes frame = wire::make_udp_frame(spec, payload);
        const std::vector<Cut> cuts = cuts_of(3008, 1000);
        std::uint32_t identification = 0;
        for (std::size_t twice = 0; twice < cuts.size(); ++twice)
            for (std::size_t after = twice; after + 1 < cuts.size(); ++after) {
                ended_.clear();
                std::vector<Cut> given = cuts;
                given.insert(given.begin() + static_cast<std::ptrdiff_t>(after) + 1, cuts[twice]);
                EXPECT_EQ(give(frame, spec, given, ++identification), payload);
                expect_ended({{PacketCounter::duplicate, 1}});
            }
        // A part of what is there, as on the way over another path.
        ended_.clear();
        EXPECT_EQ(give(frame, spec, {cuts[0], cuts[1], {904, 1104, false}, cuts[2], cuts[3]}, ++identification),
                  payload);
        expect_ended({{PacketCounter::duplicate, 1}});
    }
    EXPECT_EQ(reassembly_->held(), 0U);
}

TEST_F(IpReassemblyTest, TheSamePlaceWithOtherBytesIsAContradiction) {
    const wire::FrameSpec spec = spec_of(false);
    const Bytes frame = wire::make_udp_frame(spec, pattern(3000, 9));
    const std::vector<Cut> cuts = cuts_of(3008, 1000);
    for (std::size_t changed = 0; changed < 3; ++changed) {
        ended_.clear();
        Bytes other = frame;
        other[34 + cuts[changed].end - 1] ^= std::byte{1};  // one bit, at the piece's end
        give(frame, spec, {cuts.begin(), cuts.begin() + 3}, 7, start_ns + static_cast<TimeNs>(changed) * 100 * ms);
        EXPECT_FALSE(give(other, spec, {cuts[changed]}, 7, start_ns + static_cast<TimeNs>(changed) * 100 * ms));
        // Its rest must not be joined with another.
        EXPECT_FALSE(give(frame, spec, cuts, 7, start_ns + static_cast<TimeNs>(changed) * 100 * ms));
        expect_ended({{PacketCounter::ip_fragment_conflict, 8}});
    }
    EXPECT_FALSE(give(frame, spec, {cuts[0], cuts[1], cuts[2]}, 7, start_ns + 221 * ms));
    EXPECT_TRUE(give(frame, spec, {cuts[3]}, 7, start_ns + 221 * ms)) << "after the time-out it is another one";
}

// On a mirrored link every packet comes twice: the copy of a datagram's last piece comes when it is whole.
TEST_F(IpReassemblyTest, WhatComesTwiceAfterItsDatagramIsWholeIsADuplicate) {
    for (const bool ipv6 : {false, true}) {
        ended_.clear();
        make({.datagrams_max = 4, .buffers_max = 8});
        const wire::FrameSpec spec = spec_of(ipv6);
        std::uint32_t whole = 0;
        for (std::uint32_t identification = 0; identification < 50; ++identification) {
            const Bytes payload = pattern(3000, identification);
            const Bytes frame = wire::make_udp_frame(spec, payload);
            for (const Cut& cut : cuts_of(3008, 1000))
                for (int copy = 0; copy < 2; ++copy)
                    if (const auto made = give(piece_of(frame, spec, cut, identification))) {
                        EXPECT_EQ(*made, payload);
                        ++whole;
                    }
        }
        EXPECT_EQ(whole, 50U) << "copies take nobody's place";
        reassembly_->expire(start_ns + 100 * ms);
        take_ended();
        expect_ended({{PacketCounter::duplicate, 200}});
        EXPECT_EQ(reassembly_->counts().reused_identification, 0U);
    }
}

TEST_F(IpReassemblyTest, CopiesOfADatagramDoNotMixIntoTheNextOfThatIdentification) {
    const wire::FrameSpec spec = spec_of(false);
    const Bytes first = pattern(1600, 20);
    const Bytes second = pattern(1600, 21);
    const Bytes frame = wire::make_udp_frame(spec, first);
    const Bytes next = wire::make_udp_frame(spec, second);
    const std::vector<Cut> cuts = cuts_of(1608, 1000);
    EXPECT_EQ(give(frame, spec, cuts, 7), first);
    EXPECT_FALSE(give(frame, spec, {cuts[1]}, 7));  // once more
    EXPECT_EQ(give(next, spec, cuts, 7), second);
    expect_ended({{PacketCounter::duplicate, 1}});
    // All of it once more: what becomes of that is decided where event numbers are known.
    EXPECT_EQ(give(next, spec, cuts, 7), second);
    EXPECT_EQ(reassembly_->counts().reused_identification, 1U);
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
    const std::vector<Cut> cuts = cuts_of(1608, 1000);
    wire::FrameSpec good = spec_of(false);
    wire::FrameSpec bad = good;
    bad.src = 0x0a010063;
    EXPECT_EQ(reassembly_->reusing_source(), "");
    for (std::uint32_t i = 0; i < 5; ++i) {
        const Bytes payload = pattern(1600, i);
        EXPECT_EQ(give(wire::make_udp_frame(good, payload), good, cuts, i), payload);
        EXPECT_EQ(give(wire::make_udp_frame(bad, payload), bad, cuts, 219), payload);
    }
    EXPECT_EQ(reassembly_->counts().reused_identification, 4U);
    EXPECT_EQ(reassembly_->reusing_source(), "10.1.0.99");
    const wire::FrameSpec ipv6 = spec_of(true);
    make({});
    for (std::uint32_t i = 0; i < 2; ++i) give(wire::make_udp_frame(ipv6, pattern(1600, i)), ipv6, cuts, 0xabcdef01);
    EXPECT_EQ(reassembly_->reusing_source(), "fd00::1");
}

/// What has to become of the pieces of one datagram, by the simplest account that there is.
class ExpectedDatagram {
public:
    explicit ExpectedDatagram(std::uint32_t bytes) : bytes_(bytes) {}

    /// Where the piece ends at once, if it does; in_flight: it waits, or makes the datagram whole.
    void add(const Cut& cut, bool other_bytes) {
        if (contradicted_) return tell(PacketCounter::ip_fragment_conflict, 1);
        const auto [at, fresh] = pieces_.try_emplace(cut.begin, other_bytes);
        if (!fresh && at->second != other_bytes) {
            contradicted_ = true;
            return tell(PacketCounter::ip_fragment_conflict, std::exchange(waiting_, 0) + 1);
        }
        if (!fresh) return tell(PacketCounter::duplicate, 1);
        ++waiting_;
        there_ += cut.end - cut.begin;
        if (there_ < bytes_) return;
        ++whole;
        joined += std::exchange(waiting_, 0);
        there_ = 0;
        pieces_.clear();
    }
    void end() { tell(whole > 0 ? PacketCounter::duplicate : PacketCounter::ip_fragment_timeout, waiting_); }

    std::map<PacketCounter, std::uint32_t> ended;
    std::uint32_t whole = 0;
    std::uint32_t joined = 0;

private:
    void tell(PacketCounter counter, std::uint32_t packets) {
        if (packets > 0) ended[counter] += packets;
    }

    std::uint32_t bytes_;
    std::map<std::uint32_t, bool> pieces_;
    std::uint32_t there_ = 0;
    std::uint32_t waiting_ = 0;
    bool contradicted_ = false;
};

struct SentPiece {
    std::size_t datagram = 0;
    Cut cut;
    bool other_bytes = false;
};

struct SentDatagram {
    wire::FrameSpec spec;
    Bytes payload;
    Bytes frame;
    std::uint32_t identification = 0;
};

/// Its pieces, some twice, some not at all; of one in five a piece comes with other bytes, and then never all of it.
void send(std::vector<SentPiece>& out, std::size_t datagram, std::uint32_t bytes, std::mt19937& random) {
    const auto step =
        std::max<std::uint32_t>(8 * (1 + (random() % 240)), (bytes / IpReassembly::pieces_max + 8) / 8 * 8);
    const std::vector<Cut> cuts = cuts_of(bytes, std::min(step, (bytes - 1) / 8 * 8));
    const bool contradicts = random() % 5 == 0 && cuts.size() > 2;
    const std::size_t lost = contradicts || random() % 6 == 0 ? random() % cuts.size() : cuts.size();
    for (std::size_t i = 0; i < cuts.size(); ++i)
        for (unsigned copies = i == lost ? 0 : random() % 12 == 0 ? 2 : 1; copies > 0; --copies)
            out.push_back({datagram, cuts[i], false});
    if (contradicts) out.push_back({datagram, cuts[(lost + 1) % cuts.size()], true});
}

TEST_F(IpReassemblyTest, DoesWhatASimpleAccountSays) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    make({.datagrams_max = 64, .buffers_max = 1500});
    TimeNs now = start_ns;
    std::map<PacketCounter, std::uint32_t> expected;
    std::uint32_t whole = 0;
    std::uint32_t joined = 0;
    for (std::uint32_t round = 0; round < 60; ++round) {
        std::vector<SentDatagram> sent;
        std::vector<ExpectedDatagram> accounts;
        std::vector<SentPiece> pieces;
        for (std::uint32_t i = 0; i < 1 + random() % 8; ++i) {
            SentDatagram one{spec_of(random() % 2 == 0),
                             pattern(9 + random() % (i % 3 == 0 ? 65'400 : 3000), random()),
                             {},
                             round * 16 + i};
            one.frame = wire::make_udp_frame(one.spec, one.payload);
            const auto bytes = static_cast<std::uint32_t>(one.payload.size() + 8);
            send(pieces, i, bytes, random);
            sent.push_back(std::move(one));
            accounts.emplace_back(bytes);
        }
        if (round % 4 != 0) std::ranges::shuffle(pieces, random);
        for (const SentPiece& piece : pieces) {
            const SentDatagram& of = sent[piece.datagram];
            Bytes frame = piece_of(of.frame, of.spec, piece.cut, of.identification);
            if (piece.other_bytes) frame.back() ^= std::byte{1};
            const auto made = give(frame, now);
            if (made) {
                EXPECT_EQ(*made, of.payload);
            }
            whole += made ? 1 : 0;
            accounts[piece.datagram].add(piece.cut, piece.other_bytes);
        }
        now += 30 * ms;
        reassembly_->expire(now);
        take_ended();
        for (ExpectedDatagram& account : accounts) {
            account.end();
            for (const auto& [counter, count] : account.ended) expected[counter] += count;
            whole -= account.whole;
            joined += account.joined;
        }
        ASSERT_EQ(whole, 0U);
        ASSERT_EQ(joined_, joined);
        ASSERT_EQ(ended_, expected);
        ASSERT_EQ(reassembly_->held(), 0U);
    }
    EXPECT_GT(joined_, 1000U);
    EXPECT_EQ(expected.size(), 3U) << "duplicate, conflict, timeout";
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
