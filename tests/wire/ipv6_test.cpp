// IPv6 and its extension headers: this frame -> this counter, and what a good one says of itself.
#include <functional>

#include "wire/network.hpp"
#include "wire_support.hpp"

namespace weir::wire {
namespace {

using test::Bytes;
using test::Exact;
using test::parse;
using test::pattern;

constexpr std::size_t ipv6_at = 14;
constexpr std::uint32_t payload_bytes = 40;

FrameSpec over_ipv6() {
    FrameSpec spec;
    spec.ipv6.emplace();
    spec.ipv6->src = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    spec.ipv6->dst = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
    return spec;
}

struct Extension {
    std::uint8_t kind = 0;
    Bytes bytes;  ///< of the header; the first says what follows and is filled in
};

/// As RFC 8200 lays them out: `units` of 8 bytes after the first 8.
Extension options(std::uint8_t kind, std::uint8_t units = 0) {
    Extension extension{kind, Bytes(8 + 8 * units)};
    extension.bytes[1] = static_cast<std::byte>(units);
    return extension;
}
/// RFC 4302: the length counts 4-byte words, less 2.
Extension authentication(std::uint8_t words = 6) {
    Extension extension{ipv6_authentication, Bytes(4 * words)};
    extension.bytes[1] = static_cast<std::byte>(words - 2);
    return extension;
}
Extension fragment(std::uint16_t offset, bool more) {
    Extension extension{ipv6_fragment, Bytes(8)};
    store_be(extension.bytes.data() + 2, static_cast<std::uint16_t>(offset | (more ? 1U : 0U)));
    return extension;
}

/// A frame with these extension headers, the last of which says that `last` follows.
Bytes frame_with(const std::vector<Extension>& extensions, std::uint8_t last = ip_protocol_udp) {
    Bytes frame = make_udp_frame(over_ipv6(), pattern(payload_bytes));
    Bytes between;
    std::size_t next_at = 6;  // in what lies before UDP
    Bytes headers(frame.begin() + ipv6_at, frame.begin() + ipv6_at + ipv6_header_bytes);
    for (const Extension& extension : extensions) {
        headers[next_at] = static_cast<std::byte>(extension.kind);
        next_at = headers.size();
        headers.insert(headers.end(), extension.bytes.begin(), extension.bytes.end());
    }
    headers[next_at] = static_cast<std::byte>(last);
    store_be(headers.data() + 4,
             static_cast<std::uint16_t>(headers.size() - ipv6_header_bytes + udp_header_bytes + payload_bytes));
    Bytes made(frame.begin(), frame.begin() + ipv6_at);
    made.insert(made.end(), headers.begin(), headers.end());
    made.insert(made.end(), frame.begin() + ipv6_at + ipv6_header_bytes, frame.end());
    return made;
}

TEST(Ipv6, GoodFrame) {
    FrameSpec spec = over_ipv6();
    spec.sport = 7;
    spec.dport = 65535;
    const Bytes payload = pattern(8240);
    const Bytes frame = make_udp_frame(spec, payload);
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    Datagram out;
    ASSERT_EQ(parse_frame(frame.data(), bytes, bytes, out), ok);
    EXPECT_TRUE(out.ipv6);
    EXPECT_TRUE(test::same(out.payload, payload));
    EXPECT_EQ(out.payload_bytes, payload.size());
    EXPECT_EQ(out.ip, frame.data() + ipv6_at);
    EXPECT_EQ(out.ip_bytes, payload.size() + 48);
    EXPECT_EQ(out.ip_header_bytes(), 40U);
    EXPECT_EQ(std::memcmp(out.ipv6_src(), spec.ipv6->src.data(), 16), 0);
    EXPECT_EQ(std::memcmp(out.ipv6_dst(), spec.ipv6->dst.data(), 16), 0);
    EXPECT_EQ(out.src, 0U);
    EXPECT_EQ(out.dst, 0U);
    EXPECT_EQ(out.sport, 7);
    EXPECT_EQ(out.dport, 65535);
}

TEST(Ipv6, IPv4AfterIPv6IsNotTakenForIt) {
    Datagram out;
    ASSERT_EQ(parse(frame_with({}), out), ok);
    ASSERT_EQ(parse(make_udp_frame({}, pattern(40)), out), ok);
    EXPECT_FALSE(out.ipv6);
    EXPECT_EQ(out.src, FrameSpec{}.src);
    EXPECT_EQ(out.ip_header_bytes(), 20U);
}

TEST(Ipv6, BehindVlanTagsAndWithPadding) {
    FrameSpec spec = over_ipv6();
    spec.service_vlan = 3;
    spec.vlan = 4;
    Bytes frame = make_udp_frame(spec, pattern(2));
    frame.resize(frame.size() + 20, std::byte{0xee});
    Datagram out;
    EXPECT_EQ(parse(frame, out), ok);
    EXPECT_EQ(out.payload_bytes, 2U);
    EXPECT_EQ(out.ip_bytes, 50U);
}

// RFC 8200 section 8.1, worked by another way: all 16-bit words of the pseudo header and the datagram sum to FFFF.
TEST(Ipv6, TheEncoderFillsInTheUdpChecksum) {
    for (const std::size_t bytes : {0U, 1U, 40U, 1001U}) {
        const Bytes frame = make_udp_frame(over_ipv6(), pattern(bytes));
        Bytes words(frame.begin() + ipv6_at + 8, frame.end());
        words.resize((words.size() + 1) / 2 * 2);
        words.insert(words.end(), frame.begin() + ipv6_at + 4, frame.begin() + ipv6_at + 6);
        words.insert(words.end(), {std::byte{0}, std::byte{17}});
        std::uint32_t sum = 0;
        for (std::size_t at = 0; at < words.size(); at += 2) {
            sum += load_be<std::uint16_t>(words.data() + at);
            sum = (sum & 0xffff) + (sum >> 16);
        }
        EXPECT_EQ(sum, 0xffffU) << bytes;
    }
}

TEST(Ipv6, ExtensionHeadersAreSkippedByTheirLengths) {
    const std::vector<std::pair<std::vector<Extension>, std::uint32_t>> cases{
        {{options(ipv6_hop_by_hop)}, 8},
        {{options(ipv6_routing, 2)}, 24},
        {{options(ipv6_destination_options, 31)}, 256},
        {{authentication()}, 24},
        {{authentication(3)}, 12},
        {{fragment(0, false)}, 8},  // on a whole datagram
        {{options(ipv6_hop_by_hop), options(ipv6_routing), fragment(0, false), authentication(),
          options(ipv6_destination_options)},
         8 + 8 + 8 + 24 + 8},
        {std::vector<Extension>(8, options(ipv6_destination_options)), 64},
        {{options(ipv6_hop_by_hop, 63)}, 512},
    };
    for (const auto& [extensions, bytes] : cases) {
        const Bytes frame = frame_with(extensions);
        Datagram out;
        EXPECT_EQ(parse(frame, out), ok) << bytes;
        EXPECT_EQ(out.ip_header_bytes(), 40 + bytes);
        EXPECT_EQ(out.payload_bytes, payload_bytes);
        EXPECT_EQ(out.ip_bytes, 40 + bytes + 8 + payload_bytes);
    }
}

TEST(Ipv6, TheWalkAlongExtensionHeadersIsBounded) {
    EXPECT_EQ(parse(frame_with(std::vector<Extension>(9, options(ipv6_destination_options)))),
              Verdict::malformed_ip_header);
    EXPECT_EQ(parse(frame_with({options(ipv6_hop_by_hop, 64)})), Verdict::malformed_ip_header);
    Bytes beyond = frame_with({options(ipv6_hop_by_hop)});
    beyond[ipv6_at + 41] = std::byte{40};  // longer than the packet
    EXPECT_EQ(parse(beyond), Verdict::malformed_ip_header);
    Bytes headers_only = frame_with({options(ipv6_hop_by_hop), options(ipv6_routing)});
    headers_only.resize(ipv6_at + 40 + 12);
    store_be(headers_only.data() + ipv6_at + 4, std::uint16_t{12});
    EXPECT_EQ(parse(headers_only), Verdict::malformed_ip_header);
}

TEST(Ipv6, NotForUs) {
    EXPECT_EQ(parse(frame_with({}, 58)), Verdict::not_for_us_icmp);
    EXPECT_EQ(parse(frame_with({options(ipv6_hop_by_hop)}, 58)), Verdict::not_for_us_icmp);
    for (const std::uint8_t next : {6, 50, 59, 1, 135, 255}) {  // TCP, ESP, none, ICMPv4, mobility, reserved
        EXPECT_EQ(parse(frame_with({}, next)), Verdict::not_for_us_ip_protocol) << int{next};
        EXPECT_EQ(parse(frame_with({fragment(8, true)}, next)), Verdict::not_for_us_ip_protocol) << int{next};
    }
}

TEST(Ipv6, Header) {
    Bytes frame = frame_with({});
    frame[ipv6_at] = std::byte{0x45};
    EXPECT_EQ(parse(frame), Verdict::malformed_ip_header);
    const auto length = [](std::uint16_t bytes) {
        Bytes changed = frame_with({});
        store_be(changed.data() + ipv6_at + 4, bytes);
        return parse(changed);
    };
    EXPECT_EQ(length(48), ok);
    EXPECT_EQ(length(49), Verdict::malformed_ip_length);
    EXPECT_EQ(length(47), Verdict::malformed_udp_length);
    EXPECT_EQ(length(0), Verdict::malformed_udp_length);  // a jumbogram, if anything
}

TEST(Ipv6, APieceOfADatagramIsDescribed) {
    const Bytes frame = frame_with({options(ipv6_hop_by_hop), fragment(1448, true)});
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    Datagram out;
    EXPECT_EQ(parse_frame(frame.data(), bytes, bytes, out), Verdict::malformed_ip_fragment);
    EXPECT_TRUE(out.fragment);
    EXPECT_TRUE(out.ipv6);
    EXPECT_EQ(out.ip, frame.data() + ipv6_at);
    EXPECT_EQ(out.ip_header_bytes(), 56U);
    EXPECT_EQ(out.payload, frame.data() + ipv6_at + 56);
    EXPECT_EQ(out.payload_bytes, 48U);
    EXPECT_EQ(std::memcmp(out.ipv6_src(), over_ipv6().ipv6->src.data(), 16), 0);
    // What follows the fragment header lies in the first piece.
    EXPECT_EQ(parse(frame_with({fragment(0, true), options(ipv6_destination_options)}), out),
              Verdict::malformed_ip_fragment);
    EXPECT_TRUE(out.fragment);
}

TEST(Ipv6, EveryTruncationIsCounted) {
    const Bytes frame = frame_with({options(ipv6_hop_by_hop), authentication()});
    for (std::size_t bytes = 0; bytes < frame.size(); ++bytes) {
        const Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(bytes));
        Datagram out;
        EXPECT_EQ(parse(cut, out, static_cast<std::uint32_t>(frame.size())), Verdict::malformed_truncated) << bytes;
        const Verdict expected = bytes < 14   ? Verdict::malformed_ethernet
                                 : bytes < 54 ? Verdict::malformed_ip_header
                                              : Verdict::malformed_ip_length;
        EXPECT_EQ(parse(cut), expected) << bytes;
    }
}

// Cut where the IP length says so too, every header is found missing or short, and nothing is read beyond the end.
TEST(Ipv6, EveryShorterPacketIsRefused) {
    const Bytes frame = frame_with({options(ipv6_hop_by_hop), authentication(), options(ipv6_routing)});
    for (std::size_t bytes = ipv6_at + 40; bytes < frame.size(); ++bytes) {
        Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(bytes));
        store_be(cut.data() + ipv6_at + 4, static_cast<std::uint16_t>(bytes - ipv6_at - 40));
        EXPECT_EQ(parse(cut), bytes < ipv6_at + 80 ? Verdict::malformed_ip_header : Verdict::malformed_udp_length)
            << bytes;
    }
}

TEST(Ipv6, RandomFramesStayInside) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    constexpr std::array<std::uint8_t, 6> kinds{0, 43, 44, 51, 60, 17};
    for (int i = 0; i < 20000; ++i) {
        std::vector<Extension> extensions;
        for (unsigned count = random() % 5; count > 0; --count)
            extensions.push_back(options(kinds[random() % kinds.size()], static_cast<std::uint8_t>(random() % 4)));
        Bytes frame = frame_with(extensions, kinds[random() % kinds.size()]);
        for (unsigned flips = random() % 4; flips > 0; --flips)
            frame[12 + random() % (frame.size() - 12)] ^= static_cast<std::byte>(1U << random() % 8);
        if (random() % 4 == 0) frame.resize(random() % (frame.size() + 1));
        parse(frame);
    }
}

}  // namespace
}  // namespace weir::wire
