// Other addresses in frames: what was right stays right, for every kind of packet that has a checksum over addresses;
// and nothing outside of the frame is touched, whatever is in it.
#include "wire/rewrite.hpp"

#include <random>

#include "wire_support.hpp"

namespace weir::wire {
namespace {

using test::Bytes;
using test::pattern;

const Rewrite everything{.dst_mac = {{2, 0, 0, 0, 9, 1}},
                         .src_mac = {{2, 0, 0, 0, 9, 2}},
                         .dst_ipv4 = {{192, 168, 7, 255}},
                         .src_ipv4 = {{172, 16, 0, 1}},
                         .dst_ipv6 = {{0xfd, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}},
                         .src_ipv6 = {{0xfd, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
                         .dst_ports = {{50001, 60001}}};

/// The sum of RFC 1071 over bytes from even places; an odd last one counts as the upper half of a word.
std::uint32_t ones_sum(std::span<const std::byte> bytes, std::uint32_t sum = 0) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
        sum += std::to_integer<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

/// Of a transport that starts at `at`, with the addresses of the IP header at 14: 0xffff if its checksum is right.
std::uint32_t transport_sum(const Bytes& frame, std::size_t at, std::uint8_t protocol) {
    const bool ipv6 = std::to_integer<unsigned>(frame[14]) >> 4U == 6;
    const std::span<const std::byte> all(frame);
    const auto length = static_cast<std::uint32_t>(frame.size() - at);
    const std::uint32_t addresses = ipv6 ? ones_sum(all.subspan(14 + 8, 32)) : ones_sum(all.subspan(14 + 12, 8));
    return ones_sum(all.subspan(at), addresses + length + protocol);
}

void set_checksum(Bytes& frame, std::size_t at, std::size_t checksum_at, std::uint8_t protocol) {
    store_be(frame.data() + checksum_at, std::uint16_t{0});
    store_be(frame.data() + checksum_at, static_cast<std::uint16_t>(~transport_sum(frame, at, protocol)));
}

FrameSpec ipv6_spec() {
    FrameSpec spec;
    spec.ipv6 = Ipv6Addresses{{0xfd, 0, 1}, {0xfd, 0, 2}};
    return spec;
}

Datagram parsed(const Bytes& frame) {
    Datagram out;
    EXPECT_EQ(parse_frame(frame.data(), static_cast<std::uint32_t>(frame.size()),
                          static_cast<std::uint32_t>(frame.size()), out),
              ok);
    return out;
}

TEST(Rewrite, AUdpFrameHasTheNewAddressesAndIsRight) {
    for (const std::size_t bytes : {0U, 1U, 40U, 8241U}) {
        Bytes frame = make_udp_frame({}, pattern(bytes));
        set_checksum(frame, 34, 40, ip_protocol_udp);
        const Rewritten result = rewrite_frame(everything, frame);
        EXPECT_TRUE(result.changed);
        const Datagram out = parsed(frame);
        EXPECT_EQ(out.dst, 0xc0a807ffU);
        EXPECT_EQ(out.src, 0xac100001U);
        EXPECT_EQ(out.dport, 60001);
        EXPECT_EQ(ipv4_header_sum(frame.data() + 14, 20), 0xffffU);
        EXPECT_EQ(transport_sum(frame, 34, ip_protocol_udp), 0xffffU);
        EXPECT_EQ(frame[5], std::byte{1});
        EXPECT_EQ(frame[11], std::byte{2});
        EXPECT_TRUE(test::same(out.payload, pattern(bytes)));
    }
}

TEST(Rewrite, Ipv6AndVlanTags) {
    FrameSpec spec = ipv6_spec();
    Bytes frame = make_udp_frame(spec, pattern(99));
    rewrite_frame(everything, frame);
    EXPECT_EQ(parsed(frame).dport, 60001);
    EXPECT_EQ(transport_sum(frame, 54, ip_protocol_udp), 0xffffU);

    spec.vlan = 7;
    spec.service_vlan = 9;
    Bytes tagged = make_udp_frame(spec, pattern(99));
    const Bytes before = tagged;
    rewrite_frame(everything, tagged);
    EXPECT_EQ(parsed(tagged).dport, 60001);
    EXPECT_TRUE(std::equal(before.begin() + 12, before.begin() + 22, tagged.begin() + 12));
    EXPECT_TRUE(std::equal(tagged.begin() + 22, tagged.end(), frame.begin() + 14));
}

TEST(Rewrite, NoChecksumStaysNone) {
    Bytes frame = make_udp_frame({}, pattern(64));
    ASSERT_EQ(load_be<std::uint16_t>(frame.data() + 40), 0);
    rewrite_frame(everything, frame);
    EXPECT_EQ(load_be<std::uint16_t>(frame.data() + 40), 0);
    // As a capture on the sending host shows it, before the NIC fills it in.
    Bytes unfilled = make_udp_frame({}, pattern(64));
    store_be(unfilled.data() + 24, std::uint16_t{0});
    rewrite_frame(everything, unfilled);
    EXPECT_EQ(load_be<std::uint16_t>(unfilled.data() + 24), 0);
}

TEST(Rewrite, WhatWasWrongStaysWrong) {
    Bytes frame = make_udp_frame({}, pattern(64));
    set_checksum(frame, 34, 40, ip_protocol_udp);
    frame[50] ^= std::byte{1};
    frame[24] ^= std::byte{4};
    rewrite_frame(everything, frame);
    EXPECT_NE(ipv4_header_sum(frame.data() + 14, 20), 0xffffU);
    EXPECT_NE(transport_sum(frame, 34, ip_protocol_udp), 0xffffU);
}

TEST(Rewrite, AChecksumThatBecomesZeroIsWrittenAsOnes) {
    // A payload word is chosen so that the sum with the new addresses is all ones.
    Bytes wanted = make_udp_frame({}, pattern(64));
    rewrite_frame(everything, wanted);
    Bytes frame = make_udp_frame({}, pattern(64));
    store_be(wanted.data() + 42, std::uint16_t{0});
    store_be(wanted.data() + 40, std::uint16_t{0});
    const auto word = static_cast<std::uint16_t>(~transport_sum(wanted, 34, ip_protocol_udp));
    store_be(frame.data() + 42, word);
    set_checksum(frame, 34, 40, ip_protocol_udp);
    rewrite_frame(everything, frame);
    EXPECT_EQ(load_be<std::uint16_t>(frame.data() + 40), 0xffff);
}

TEST(Rewrite, TcpAndIcmpv6ChecksumsFollow) {
    Bytes tcp = make_udp_frame({}, pattern(41));
    tcp[14 + 9] = std::byte{6};
    store_le(tcp.data() + 24, std::uint16_t{0});
    store_le(tcp.data() + 24, static_cast<std::uint16_t>(~ipv4_header_sum(tcp.data() + 14, 20)));
    set_checksum(tcp, 34, 34 + 16, 6);
    rewrite_frame(everything, tcp);
    EXPECT_EQ(transport_sum(tcp, 34, 6), 0xffffU);

    Bytes icmp = make_udp_frame(ipv6_spec(), pattern(40));
    icmp[14 + 6] = std::byte{ip_protocol_icmpv6};
    set_checksum(icmp, 54, 54 + 2, ip_protocol_icmpv6);
    rewrite_frame(everything, icmp);
    EXPECT_EQ(transport_sum(icmp, 54, ip_protocol_icmpv6), 0xffffU);
}

Bytes roce_frame(const FrameSpec& given) {
    FrameSpec spec = given;
    spec.dport = roce_port;
    const Bytes payload = pattern(128);
    const RoceMessage message;
    return make_roce_frame(spec, roce_packet_of(message, payload, 0));
}

TEST(Rewrite, TheIcrcIsMadeAgainWhereItWasRight) {
    for (const FrameSpec& spec : {FrameSpec{}, ipv6_spec()}) {
        Rewrite rewrite = everything;
        for (const bool other_port : {false, true}) {
            if (other_port) rewrite.dst_ports = {{0, 4792}};
            Bytes frame = roce_frame(spec);
            const std::size_t udp_at = spec.ipv6 ? 54 : 34;
            set_checksum(frame, udp_at, udp_at + 6, ip_protocol_udp);  // nothing of it is in the iCRC
            const Rewritten result = rewrite_frame(rewrite, frame);
            EXPECT_TRUE(result.icrc);
            RocePacket packet;
            EXPECT_EQ(decode_roce(parsed(frame), true, packet), ok);
            EXPECT_EQ(transport_sum(frame, udp_at, ip_protocol_udp), 0xffffU);
        }
        Bytes wrong = roce_frame(spec);
        wrong.back() ^= std::byte{1};
        const Rewritten result = rewrite_frame(everything, wrong);
        EXPECT_FALSE(result.icrc);
        EXPECT_TRUE(result.icrc_wrong);
        RocePacket packet;
        EXPECT_EQ(decode_roce(parsed(wrong), true, packet), Verdict::malformed_bad_icrc);
    }
}

TEST(Rewrite, LaterFragmentsHaveAddressesAndNoPorts) {
    Bytes frame = make_udp_frame({}, pattern(64));
    store_be(frame.data() + 14 + 6, std::uint16_t{0x2000 | 8});  // more follow, at 64
    store_be(frame.data() + 34 + 2, std::uint16_t{50001});       // what would be a port and a checksum is payload
    store_be(frame.data() + 34 + 6, std::uint16_t{0x1234});
    store_le(frame.data() + 24, std::uint16_t{0});
    store_le(frame.data() + 24, static_cast<std::uint16_t>(~ipv4_header_sum(frame.data() + 14, 20)));
    const Bytes before = frame;
    rewrite_frame(everything, frame);
    EXPECT_EQ(ipv4_header_sum(frame.data() + 14, 20), 0xffffU);
    EXPECT_TRUE(std::equal(before.begin() + 34, before.end(), frame.begin() + 34));
    EXPECT_FALSE(std::equal(before.begin() + 26, before.begin() + 34, frame.begin() + 26));
}

TEST(Rewrite, PortsInTheOrderOfTheRules) {
    const Rewrite rewrite{.dst_ports = {{50002, 7}, {0, 9}}};
    EXPECT_EQ(rewrite.port_for(50002), 7);
    EXPECT_EQ(rewrite.port_for(50003), 9);
    EXPECT_EQ(Rewrite{}.port_for(50003), 50003);
}

TEST(Rewrite, AddressesOfTheOtherFamilyAreLeftAlone) {
    Rewrite only_ipv6;
    only_ipv6.dst_ipv6 = everything.dst_ipv6;
    Bytes frame = make_udp_frame({}, pattern(20));
    const Bytes before = frame;
    EXPECT_FALSE(rewrite_frame(only_ipv6, frame).changed);
    EXPECT_EQ(frame, before);
}

TEST(Rewrite, AnythingMayBeInAFrame) {
    const std::uint64_t seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const std::vector<Bytes> good{make_udp_frame({}, pattern(40)), make_udp_frame(ipv6_spec(), pattern(40)),
                                  roce_frame({}), roce_frame(ipv6_spec())};
    for (int round = 0; round < 20'000; ++round) {
        Bytes frame = good[random() % good.size()];
        for (int i = static_cast<int>(random() % 6); i > 0; --i)
            frame[random() % std::min<std::size_t>(frame.size(), 70)] = static_cast<std::byte>(random());
        frame.resize(random() % (frame.size() + 1));
        // On the heap with no byte more, so that the sanitizers see what is outside.
        const auto exact = std::make_unique<std::byte[]>(frame.size());
        std::ranges::copy(frame, exact.get());
        rewrite_frame(everything, {exact.get(), frame.size()});
    }
}

}  // namespace
}  // namespace weir::wire
