// This frame -> this counter, for every way in which a frame can end in the network layers.
#include "wire/network.hpp"

#include <functional>
#include <random>

#include "wire_support.hpp"

namespace weir::wire {
namespace {

using test::Bytes;
using test::Exact;
using test::parse;
using test::pattern;

constexpr std::size_t ip_at = 14;   // in an untagged frame
constexpr std::size_t udp_at = 34;  // without IP options

Bytes good_frame(std::size_t payload_bytes = 40) {
    return make_udp_frame({}, pattern(payload_bytes));
}

/// After an edit of the IP header, so that the checksum is not what is found.
void repair_checksum(Bytes& frame) {
    store_le(frame.data() + ip_at + 10, std::uint16_t{0});
    const std::uint32_t header_bytes = (std::to_integer<std::uint32_t>(frame[ip_at]) & 0xf) * 4;
    store_le(frame.data() + ip_at + 10,
             static_cast<std::uint16_t>(~ipv4_header_sum(frame.data() + ip_at, header_bytes)));
}

/// A good frame, changed, its IP checksum made right again.
Verdict verdict_of(const std::function<void(Bytes&)>& change) {
    Bytes frame = good_frame();
    change(frame);
    if (frame.size() >= udp_at) repair_checksum(frame);
    return parse(frame);
}

TEST(Network, GoodFrame) {
    FrameSpec spec;
    spec.src = 0xc0a80101;
    spec.dst = 0xc0a80102;
    spec.sport = 7;
    spec.dport = 65535;
    const Bytes payload = pattern(8240);
    const Bytes frame = make_udp_frame(spec, payload);
    Datagram out;
    ASSERT_EQ(parse_frame(frame.data(), static_cast<std::uint32_t>(frame.size()),
                          static_cast<std::uint32_t>(frame.size()), out),
              ok);
    EXPECT_EQ(out.payload_bytes, payload.size());
    EXPECT_TRUE(test::same(out.payload, payload));
    EXPECT_EQ(out.ip, frame.data() + ip_at);
    EXPECT_EQ(out.ip_bytes, payload.size() + 28);
    EXPECT_EQ(out.src, spec.src);
    EXPECT_EQ(out.dst, spec.dst);
    EXPECT_EQ(out.sport, spec.sport);
    EXPECT_EQ(out.dport, spec.dport);
}

TEST(Network, EmptyDatagramAndLargestDatagram) {
    Datagram out;
    EXPECT_EQ(parse(good_frame(0), out), ok);
    EXPECT_EQ(out.payload_bytes, 0U);
    EXPECT_EQ(parse(good_frame(65507), out), ok);
    EXPECT_EQ(out.payload_bytes, 65507U);
    EXPECT_TRUE(good_frame(65508).empty());  // does not fit into the IP length
}

TEST(Network, VlanTag) {
    FrameSpec spec;
    spec.vlan = 100;
    Bytes frame = make_udp_frame(spec, pattern(40));
    Datagram out;
    EXPECT_EQ(parse(frame, out), ok);
    EXPECT_EQ(out.payload_bytes, 40U);
    store_be(frame.data() + 12, ethertype_service_vlan);
    EXPECT_EQ(parse(frame), ok);
    frame.resize(17);
    EXPECT_EQ(parse(frame), Verdict::malformed_ethernet);
}

TEST(Network, TwoVlanTagsOfAnyKindAndNoThird) {
    FrameSpec spec;
    spec.service_vlan = 7;
    spec.vlan = 100;
    for (const std::uint16_t outer : {ethertype_vlan, ethertype_service_vlan})
        for (const std::uint16_t inner : {ethertype_vlan, ethertype_service_vlan}) {
            Bytes frame = make_udp_frame(spec, pattern(40));
            store_be(frame.data() + 12, outer);
            store_be(frame.data() + 16, inner);
            Datagram out;
            EXPECT_EQ(parse(frame, out), ok);
            EXPECT_EQ(out.payload_bytes, 40U);
            const Bytes tag(frame.begin() + 12, frame.begin() + 16);
            frame.insert(frame.begin() + 12, tag.begin(), tag.end());
            EXPECT_EQ(parse(frame), Verdict::malformed_ethernet);
        }
}

TEST(Network, EveryCutOfATaggedFrameIsCounted) {
    FrameSpec spec;
    spec.service_vlan = 7;
    spec.vlan = 100;
    const Bytes frame = make_udp_frame(spec, pattern(40));
    for (std::size_t bytes = 0; bytes < frame.size(); ++bytes) {
        const Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(bytes));
        Datagram out;
        EXPECT_EQ(parse(cut, out, static_cast<std::uint32_t>(frame.size())), Verdict::malformed_truncated) << bytes;
        const Verdict expected = bytes < 22   ? Verdict::malformed_ethernet
                                 : bytes < 42 ? Verdict::malformed_ip_header
                                              : Verdict::malformed_ip_length;
        EXPECT_EQ(parse(cut), expected) << bytes;
    }
}

TEST(Network, EthernetPaddingIsNotPayload) {
    Bytes frame = good_frame(2);
    frame.resize(60, std::byte{0xee});
    Datagram out;
    EXPECT_EQ(parse(frame, out), ok);
    EXPECT_EQ(out.payload_bytes, 2U);
    EXPECT_EQ(out.ip_bytes, 30U);
}

TEST(Network, BytesBehindTheUdpDatagramAreNotPayload) {
    Bytes frame = good_frame(40);
    store_be(frame.data() + udp_at + 4, std::uint16_t{8 + 30});
    Datagram out;
    EXPECT_EQ(parse(frame, out), ok);
    EXPECT_EQ(out.payload_bytes, 30U);
}

TEST(Network, IpOptionsAreSkipped) {
    Bytes frame = good_frame(40);
    frame.insert(frame.begin() + udp_at, 8, std::byte{1});  // no-operation options
    frame[ip_at] = std::byte{0x47};
    store_be(frame.data() + ip_at + 2, std::uint16_t{28 + 8 + 40});
    repair_checksum(frame);
    Datagram out;
    EXPECT_EQ(parse(frame, out), ok);
    EXPECT_EQ(out.payload_bytes, 40U);
    frame.resize(ip_at + 24);  // ends inside the options
    EXPECT_EQ(parse(frame), Verdict::malformed_ip_header);
}

TEST(Network, NotForUs) {
    const auto ethertype = [](std::uint16_t type) {
        return verdict_of([type](Bytes& frame) { store_be(frame.data() + 12, type); });
    };
    EXPECT_EQ(ethertype(0x0806), Verdict::not_for_us_arp);
    EXPECT_EQ(ethertype(0x8915), Verdict::not_for_us_roce_v1);
    EXPECT_EQ(ethertype(0x88cc), Verdict::not_for_us_ethertype);
    EXPECT_EQ(ethertype(0x0026), Verdict::not_for_us_ethertype);  // an 802.3 length
    const auto protocol = [](std::uint8_t number) {
        return verdict_of([number](Bytes& frame) { frame[ip_at + 9] = static_cast<std::byte>(number); });
    };
    EXPECT_EQ(protocol(1), Verdict::not_for_us_icmp);
    EXPECT_EQ(protocol(6), Verdict::not_for_us_ip_protocol);
}

TEST(Network, ArpRequestOfSixtyBytes) {
    Bytes frame(60);
    store_be(frame.data() + 12, ethertype_arp);
    EXPECT_EQ(parse(frame), Verdict::not_for_us_arp);
}

TEST(Network, IpHeader) {
    EXPECT_EQ(verdict_of([](Bytes& frame) { frame[ip_at] = std::byte{0x65}; }), Verdict::malformed_ip_header);
    EXPECT_EQ(verdict_of([](Bytes& frame) { frame[ip_at] = std::byte{0x44}; }), Verdict::malformed_ip_header);
    EXPECT_EQ(verdict_of([](Bytes& frame) { frame.resize(ip_at + 19); }), Verdict::malformed_ip_header);
}

TEST(Network, IpChecksum) {
    Bytes frame = good_frame();
    frame[ip_at + 8] ^= std::byte{1};
    EXPECT_EQ(parse(frame), Verdict::malformed_ip_checksum);
    store_be(frame.data() + ip_at + 10, std::uint16_t{0});  // the NIC was to fill it in
    EXPECT_EQ(parse(frame), ok);
}

/// The quick way and the way of every case say the same of any frame.
TEST(Network, PlainFramesAreReadAsAnyFrame) {
    std::mt19937 random(17);
    const auto below = [&random](std::size_t limit) { return random() % limit; };
    std::size_t plain = 0;
    std::size_t other = 0;
    for (int trial = 0; trial < 200'000; ++trial) {
        Bytes frame = good_frame(below(30));
        for (std::size_t edits = below(4); edits > 0; --edits) {
            std::byte& byte = frame[12 + below(30)];  // ethertype, IP and UDP headers
            byte ^= static_cast<std::byte>(1U << below(8));
        }
        const bool repair = below(4) != 0 && (std::to_integer<unsigned>(frame[ip_at]) & 0xf) == 5;
        if (repair) repair_checksum(frame);
        if (below(8) == 0) store_be(frame.data() + ip_at + 10, std::uint16_t{0});
        const auto captured = static_cast<std::uint32_t>(below(8) == 0 ? below(frame.size() + 1) : frame.size());
        const auto bytes = static_cast<std::uint32_t>(frame.size());
        const Exact exact(std::span<const std::byte>(frame).first(captured));
        Datagram quick;
        Datagram any;
        const bool read = parse_plain(exact.data(), captured, quick);
        const Verdict verdict = parse_any_frame(exact.data(), captured, bytes, any);
        ++(read ? plain : other);
        if (!read) continue;
        ASSERT_EQ(verdict, ok);
        ASSERT_EQ(quick.payload, any.payload);
        ASSERT_EQ(quick.ip, any.ip);
        ASSERT_EQ(quick.payload_bytes, any.payload_bytes);
        ASSERT_EQ(quick.ip_bytes, any.ip_bytes);
        ASSERT_EQ(quick.src, any.src);
        ASSERT_EQ(quick.dst, any.dst);
        ASSERT_EQ(quick.sport, any.sport);
        ASSERT_EQ(quick.dport, any.dport);
        ASSERT_EQ(quick.ipv6, any.ipv6);
        ASSERT_EQ(quick.fragment, any.fragment);
    }
    EXPECT_GT(plain, 20'000U);
    EXPECT_GT(other, 20'000U);
}

TEST(Network, ChecksumOfTheRfcExample) {
    // The header of RFC 1071's kind, worked by hand: 4500 0073 0000 4000 4011 b861 c0a8 0001 c0a8 00c7.
    const std::array<std::uint8_t, 20> header{0x45, 0,    0,    0x73, 0, 0, 0x40, 0,    0x40, 0x11,
                                              0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0,    0xc7};
    EXPECT_EQ(ipv4_header_sum(test::bytes_of(header).data(), 20), 0xffffU);
}

TEST(Network, IpLength) {
    const auto length = [](std::uint16_t bytes) {
        return verdict_of([bytes](Bytes& frame) { store_be(frame.data() + ip_at + 2, bytes); });
    };
    EXPECT_EQ(length(28 + 40 + 1), Verdict::malformed_ip_length);
    EXPECT_EQ(length(19), Verdict::malformed_ip_length);
    EXPECT_EQ(length(20), Verdict::malformed_udp_length);  // no room for a UDP header
    EXPECT_EQ(length(28 + 39), Verdict::malformed_udp_length);
}

TEST(Network, IpFragment) {
    const auto fragment = [](std::uint16_t field) {
        return verdict_of([field](Bytes& frame) { store_be(frame.data() + ip_at + 6, field); });
    };
    EXPECT_EQ(fragment(0x2000), Verdict::malformed_ip_fragment);  // more follow
    EXPECT_EQ(fragment(0x0001), Verdict::malformed_ip_fragment);  // the last of several
    EXPECT_EQ(fragment(0x4000), ok);
    EXPECT_EQ(fragment(0x8000), ok);  // the reserved bit says nothing about fragments
}

TEST(Network, APieceOfADatagramIsDescribed) {
    Bytes frame = good_frame(40);  // 48 bytes after the IP header
    store_be(frame.data() + ip_at + 6, std::uint16_t{0x2000 | 185});
    repair_checksum(frame);
    Datagram out;
    EXPECT_EQ(parse_frame(frame.data(), 82, 82, out), Verdict::malformed_ip_fragment);
    EXPECT_TRUE(out.fragment);
    EXPECT_FALSE(out.ipv6);
    EXPECT_EQ(out.ip, frame.data() + ip_at);
    EXPECT_EQ(out.ip_bytes, 68U);
    EXPECT_EQ(out.ip_header_bytes(), 20U);
    EXPECT_EQ(out.payload, frame.data() + udp_at);
    EXPECT_EQ(out.payload_bytes, 48U);
    EXPECT_EQ(out.src, FrameSpec{}.src);
    EXPECT_EQ(out.dst, FrameSpec{}.dst);
}

TEST(Network, APieceThatCannotBePartOfAnythingIsNone) {
    const auto possible = [](std::size_t payload_bytes, std::uint16_t field) {
        Bytes frame = good_frame(payload_bytes);
        store_be(frame.data() + ip_at + 6, field);
        repair_checksum(frame);
        Datagram out;
        EXPECT_EQ(parse_frame(frame.data(), static_cast<std::uint32_t>(frame.size()),
                              static_cast<std::uint32_t>(frame.size()), out),
                  Verdict::malformed_ip_fragment);
        return out.fragment;
    };
    EXPECT_TRUE(possible(0, 0x2000));  // 8 bytes, the UDP header
    EXPECT_TRUE(possible(8, 0x2001));
    EXPECT_TRUE(possible(9, 0x0001));   // the last may have any length
    EXPECT_FALSE(possible(9, 0x2001));  // the others are multiples of 8
    EXPECT_TRUE(possible(11, 8187));    // ends at byte 65515, so the IP length is 65535
    EXPECT_FALSE(possible(12, 8187));
    Bytes empty = good_frame(0);
    empty.resize(udp_at);
    store_be(empty.data() + ip_at + 2, std::uint16_t{20});
    store_be(empty.data() + ip_at + 6, std::uint16_t{0x2000});
    repair_checksum(empty);
    Datagram out;
    EXPECT_EQ(parse_frame(empty.data(), udp_at, udp_at, out), Verdict::malformed_ip_fragment);
    EXPECT_FALSE(out.fragment);
}

TEST(Network, UdpLength) {
    const auto length = [](std::uint16_t bytes) {
        return verdict_of([bytes](Bytes& frame) { store_be(frame.data() + udp_at + 4, bytes); });
    };
    EXPECT_EQ(length(7), Verdict::malformed_udp_length);
    EXPECT_EQ(length(0), Verdict::malformed_udp_length);
    EXPECT_EQ(length(49), Verdict::malformed_udp_length);
    EXPECT_EQ(length(8), ok);
}

TEST(Network, EveryTruncationIsCounted) {
    const Bytes frame = good_frame();
    for (std::size_t bytes = 0; bytes < frame.size(); ++bytes) {
        const Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(bytes));
        Datagram out;
        EXPECT_EQ(parse(cut, out, static_cast<std::uint32_t>(frame.size())), Verdict::malformed_truncated) << bytes;
        const Verdict expected = bytes < 14   ? Verdict::malformed_ethernet
                                 : bytes < 34 ? Verdict::malformed_ip_header
                                              : Verdict::malformed_ip_length;
        EXPECT_EQ(parse(cut), expected) << bytes;
    }
}

TEST(Network, CutPaddingIsNoTruncation) {
    const Bytes frame = good_frame(2);  // 44 bytes of which 60 were on the wire
    Datagram out;
    EXPECT_EQ(parse(frame, out, 60), ok);
}

TEST(Network, RandomFramesStayInside) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    for (int i = 0; i < 20000; ++i) {
        Bytes frame = good_frame(random() % 64);
        for (unsigned flips = random() % 4; flips > 0; --flips)
            frame[12 + random() % (frame.size() - 12)] ^= static_cast<std::byte>(1U << random() % 8);
        if (random() % 2 != 0) store_be(frame.data() + ip_at + 10, std::uint16_t{0});  // let the flips through
        if (random() % 4 == 0) frame.resize(random() % (frame.size() + 1));
        parse(frame);
    }
}

}  // namespace
}  // namespace weir::wire
