// What mirrors and switches put around a frame, byte by byte, and what is left when it is taken off.
#include "wire/decapsulation.hpp"

#include <functional>
#include <string>

#include "wire_support.hpp"

namespace weir::wire {
namespace {

using test::Bytes;
using test::pattern;

Bytes hex(std::string_view text) {
    Bytes out;
    for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
        while (text[at] == ' ') ++at;
        out.push_back(static_cast<std::byte>(std::stoul(std::string(text.substr(at, 2)), nullptr, 16)));
    }
    return out;
}
Bytes operator+(Bytes first, const Bytes& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}
Bytes rest_of(const Bytes& frame, std::size_t from) {
    return {frame.begin() + static_cast<std::ptrdiff_t>(from), frame.end()};
}

Bytes ethernet(std::uint16_t type) {
    Bytes out = hex("02000000aa02 02000000aa01");
    out.resize(14);
    store_be(out.data() + 12, type);
    return out;
}
/// With a right checksum. `fragment`: flags and offset.
Bytes ipv4(std::uint8_t protocol, const Bytes& payload, std::uint16_t fragment = 0) {
    Bytes out = hex("45000000 12340000 40000000 0a0a0a0b 0a0a0a0a");
    store_be(out.data() + 2, static_cast<std::uint16_t>(20 + payload.size()));
    store_be(out.data() + 6, fragment);
    out[9] = std::byte{protocol};
    store_le(out.data() + 10, static_cast<std::uint16_t>(~ipv4_header_sum(out.data(), 20)));
    return out + payload;
}
Bytes ipv6(std::uint8_t next, const Bytes& payload) {
    Bytes out = hex("60000000 0000 00 40 fd000000000000000000000000000001 fd000000000000000000000000000002");
    store_be(out.data() + 4, static_cast<std::uint16_t>(payload.size()));
    out[6] = std::byte{next};
    return out + payload;
}
Bytes in_ipv4(std::uint8_t protocol, const Bytes& payload) {
    return ethernet(0x0800) + ipv4(protocol, payload);
}
Bytes gre(std::string_view header, const Bytes& inside) {
    return in_ipv4(47, hex(header) + inside);
}
Bytes vxlan(const Bytes& inside, std::uint16_t port = 4789) {
    FrameSpec spec;
    spec.dport = port;
    return make_udp_frame(spec, hex("08000000 00123400") + inside);
}
Bytes mpls(std::string_view labels, const Bytes& inside) {
    return ethernet(0x8847) + hex(labels) + inside;
}

/// 10.1.0.1 to 10.1.0.2, port 50001.
const Bytes inner = make_udp_frame({}, pattern(60));
const Bytes inner_ip = rest_of(inner, 14);
const Bytes inner_vlan = [] {
    FrameSpec spec;
    spec.vlan = 7;
    return make_udp_frame(spec, pattern(60));
}();
Bytes inner_v6() {
    FrameSpec spec;
    spec.ipv6.emplace();
    spec.ipv6->src[15] = 1;
    spec.ipv6->dst[15] = 2;
    return make_udp_frame(spec, pattern(60));
}

Tunnels only(Tunnel tunnel) {
    Tunnels out;
    out.add(tunnel);
    return out;
}

struct Taken {
    Decapsulated is;
    Bytes inside;
};
/// On a buffer that ends where the frame ends.
Taken take_off(const Bytes& frame, Tunnels tunnels = Tunnels::all(), std::uint32_t cut = 0) {
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    const auto exact = std::make_unique<std::byte[]>(bytes);
    if (bytes > 0) std::memcpy(exact.get(), frame.data(), bytes);
    Taken out{decapsulate(exact.get(), bytes, bytes + cut, tunnels), {}};
    EXPECT_LE(out.is.front_bytes + out.is.captured_bytes, bytes);
    EXPECT_GE(out.is.wire_bytes, out.is.captured_bytes);
    out.inside.assign(exact.get() + out.is.front_bytes, exact.get() + out.is.front_bytes + out.is.captured_bytes);
    if (out.is.layers == 0) {
        EXPECT_EQ(out.inside, frame);
    }
    return out;
}

struct Way {
    const char* name;
    Tunnel by;
    Bytes frame;
    Bytes inside = inner;
    /// Bytes in front: outer headers, and what of the inner Ethernet header is not the detector's but written here.
    std::size_t headers = 0;
};

Bytes with_header(const Bytes& ip, std::uint16_t type = 0x0800) {
    return ethernet(type) + ip;
}

std::vector<Way> ways() {
    const Bytes padding = pattern(6, 9);
    const Bytes inner_6 = inner_v6();
    return {
        {"erspan 1", Tunnel::erspan, gre("000088be", inner), inner, 38},
        {"erspan 2", Tunnel::erspan, gre("100088be 00000001 10070001 00000000", inner), inner, 50},
        {"erspan 2 with a VLAN inside", Tunnel::erspan, gre("100088be 00000001 10070001 00000000", inner_vlan),
         inner_vlan, 50},
        {"erspan 2 with a key", Tunnel::erspan, gre("300088be 00000009 00000001 10070001 00000000", inner), inner, 54},
        {"erspan 2 without a sequence number", Tunnel::erspan, gre("000088be 10070001 00000000", inner), inner, 46},
        {"erspan 3", Tunnel::erspan, gre("100022eb 00000001 20070001 12345678 00000000", inner), inner, 54},
        {"erspan 3 without a sequence number", Tunnel::erspan, gre("000022eb 20070001 12345678 00000000", inner), inner,
         50},
        {"erspan 3 of a platform", Tunnel::erspan,
         gre("100022eb 00000001 20070001 12345678 00000001 aabbccdd eeff0011", inner), inner, 62},
        {"erspan 3 of an IP packet", Tunnel::erspan, gre("100022eb 00000001 20070001 12345678 00000800", inner_ip),
         with_header(inner_ip), 54},
        {"erspan over IPv6", Tunnel::erspan,
         ethernet(0x86dd) + ipv6(47, hex("100088be 00000001 10070001 00000000") + inner), inner, 70},
        {"erspan with padding", Tunnel::erspan, gre("100088be 00000001 10070001 00000000", inner) + padding, inner, 50},
        {"ethernet in gre", Tunnel::gre, gre("00006558", inner), inner, 38},
        {"ethernet in gre with a key", Tunnel::gre, gre("20006558 00012300", inner), inner, 42},
        {"gre with all that there is", Tunnel::gre, gre("b0006558 abcd0000 00000001 00000002", inner), inner, 50},
        {"ipv4 in gre", Tunnel::gre, gre("00000800", inner_ip), with_header(inner_ip), 38},
        {"ipv6 in gre", Tunnel::gre, gre("000086dd", rest_of(inner_6, 14)), with_header(rest_of(inner_6, 14), 0x86dd),
         38},
        {"vxlan", Tunnel::vxlan, vxlan(inner), inner, 50},
        {"vxlan of an old Linux", Tunnel::vxlan, vxlan(inner, 8472), inner, 50},
        {"one label", Tunnel::mpls, mpls("00010140", inner_ip), with_header(inner_ip), 18},
        {"three labels", Tunnel::mpls, mpls("00010040 00020040 00030140", inner_ip), with_header(inner_ip), 26},
        {"a label and a VLAN", Tunnel::mpls, hex("02000000aa02 02000000aa01 8100 0007 8847 00010140") + inner_ip,
         with_header(inner_ip), 22},
        {"ipv6 with a label", Tunnel::mpls, mpls("00010140", rest_of(inner_6, 14)),
         with_header(rest_of(inner_6, 14), 0x86dd), 18},
        {"pseudo-wire", Tunnel::mpls, mpls("00010140", inner), inner, 18},
        {"pseudo-wire with a control word", Tunnel::mpls, mpls("00010140 00000005", inner), inner, 22},
    };
}

TEST(Decapsulation, TakesOffWhatThereIs) {
    for (const Way& way : ways()) {
        SCOPED_TRACE(way.name);
        const Taken taken = take_off(way.frame, only(way.by));
        EXPECT_EQ(taken.is.verdict, ok);
        ASSERT_EQ(taken.is.layers, 1);
        EXPECT_EQ(taken.is.by[0], way.by);
        EXPECT_EQ(taken.inside, way.inside);
        EXPECT_EQ(taken.is.wire_bytes, taken.is.captured_bytes);
        Datagram datagram;
        EXPECT_EQ(parse_frame(taken.inside.data(), taken.is.captured_bytes, taken.is.wire_bytes, datagram), ok);
        EXPECT_EQ(datagram.dport, 50001);
    }
}

TEST(Decapsulation, LeavesWhatNobodyAskedFor) {
    for (const Way& way : ways()) {
        SCOPED_TRACE(way.name);
        Tunnels others;
        for (const Tunnel tunnel : {Tunnel::erspan, Tunnel::vxlan, Tunnel::mpls, Tunnel::gre})
            if (tunnel != way.by) others.add(tunnel);
        const Taken taken = take_off(way.frame, others);
        EXPECT_EQ(taken.is.layers, 0);
        EXPECT_EQ(taken.is.verdict, ok);
    }
    for (const Bytes& plain : {inner, inner_vlan, inner_v6(), in_ipv4(6, pattern(20)), ethernet(0x88cc) + pattern(40),
                               in_ipv4(1, pattern(20)), gre("00008847", inner), Bytes(), pattern(9)}) {
        const Taken taken = take_off(plain);
        EXPECT_EQ(taken.is.layers, 0);
        EXPECT_EQ(taken.is.verdict, ok);
    }
}

// Every way in which headers can end too early: a frame that was sent so short, with lengths that agree, ends in one
// counter, and nothing behind its end is looked at.
TEST(Decapsulation, OfWhatEndsTooEarlySaysWhichCounterItIs) {
    for (const Way& way : ways()) {
        SCOPED_TRACE(way.name);
        for (std::uint32_t bytes = 0; bytes < way.frame.size(); ++bytes) {
            SCOPED_TRACE(bytes);
            Bytes frame(way.frame.begin(), way.frame.begin() + bytes);
            // As captured: the rest is missing. The lengths of IP say so.
            const auto missing = static_cast<std::uint32_t>(way.frame.size()) - bytes;
            const Taken cut = take_off(frame, Tunnels::all(), missing);
            EXPECT_TRUE(cut.is.verdict == ok || cut.is.verdict == Verdict::malformed_truncated);
            Datagram datagram;
            const Verdict verdict = cut.is.verdict != ok ? cut.is.verdict
                                                         : parse_frame(cut.inside.data(), cut.is.captured_bytes,
                                                                       cut.is.wire_bytes, datagram);
            const bool only_padding = missing <= 6 && std::string_view(way.name).ends_with("padding");
            EXPECT_EQ(verdict, only_padding ? ok : Verdict::malformed_truncated);
            // As sent: IP says that there is no more.
            const bool ip = bytes >= 34 && load_be<std::uint16_t>(frame.data() + 12) == 0x0800;
            if (ip) {
                store_be(frame.data() + 16, static_cast<std::uint16_t>(bytes - 14));
                store_be(frame.data() + 24, std::uint16_t{0});
                if (frame[23] == std::byte{17} && bytes >= 42)
                    store_be(frame.data() + 38, static_cast<std::uint16_t>(bytes - 34));
            }
            const Taken sent = take_off(frame);
            if (sent.is.layers == 0 && sent.is.verdict != ok && ip) {
                EXPECT_EQ(sent.is.verdict, Verdict::malformed_encapsulation);
                EXPECT_LT(bytes, way.headers);
            }
            if (sent.is.layers > 0) {
                EXPECT_GE(bytes, std::min<std::size_t>(way.headers, 38));
            }
        }
    }
}

TEST(Decapsulation, RefusesHeadersThatItDoesNotKnow) {
    const auto verdict = [](const Bytes& frame) { return take_off(frame).is.verdict; };
    EXPECT_EQ(verdict(gre("000188be", inner)), Verdict::malformed_encapsulation);           // another version of GRE
    EXPECT_EQ(verdict(gre("400088be 00000000", inner)), Verdict::malformed_encapsulation);  // routing
    EXPECT_EQ(verdict(gre("100088be 00000001 30070001 00000000", inner)), Verdict::malformed_encapsulation);
    EXPECT_EQ(verdict(gre("100022eb 00000001 10070001 12345678 00000000", inner)), Verdict::malformed_encapsulation);
    // ERSPAN III with frames of another network.
    EXPECT_EQ(verdict(gre("100022eb 00000001 20070001 12345678 00000400", inner)), Verdict::not_for_us_encapsulated);
    FrameSpec spec;
    spec.dport = 4789;
    EXPECT_EQ(verdict(make_udp_frame(spec, hex("00000000 00123400") + inner)), Verdict::malformed_encapsulation);
    EXPECT_EQ(verdict(make_udp_frame(spec, hex("080000"))), Verdict::malformed_encapsulation);
    // A stack without an end.
    Bytes labels;
    for (int i = 0; i < 40; ++i) labels = labels + hex("00010040");
    EXPECT_EQ(verdict(ethernet(0x8847) + labels), Verdict::malformed_encapsulation);
    // What may be this or that, and what is neither.
    EXPECT_EQ(verdict(mpls("00010140 10000000", pattern(60))), Verdict::not_for_us_encapsulated);
    Bytes damaged = inner_ip;
    damaged[10] ^= std::byte{1};
    EXPECT_EQ(verdict(mpls("00010140", damaged)), Verdict::not_for_us_encapsulated);
    // Pieces of an outer packet.
    EXPECT_EQ(verdict(ethernet(0x0800) + ipv4(47, hex("100088be 00000001 10070001 00000000") + inner, 0x2000)),
              Verdict::ip_fragment_encapsulated);
    EXPECT_EQ(verdict(ethernet(0x0800) + ipv4(47, pattern(40), 0x0010)), Verdict::ip_fragment_encapsulated);
}

TEST(Decapsulation, LeavesOuterHeadersThatAreWrongToWhoeverReadsThem) {
    Bytes frame = gre("100088be 00000001 10070001 00000000", inner);
    frame[24] ^= std::byte{1};  // the checksum
    EXPECT_EQ(take_off(frame).is.layers, 0);
    frame = gre("100088be 00000001 10070001 00000000", inner);
    frame.pop_back();
    EXPECT_EQ(take_off(frame).is.layers, 0);
}

TEST(Decapsulation, OfAFrameThatTheMirrorCutSaysSo) {
    Bytes part(inner.begin(), inner.begin() + 50);
    for (const auto& header : {"100088be 00000001 10070401 00000000", "100022eb 00000001 20070401 12345678 00000000"}) {
        const Taken taken = take_off(gre(header, part));
        EXPECT_EQ(taken.is.verdict, ok);
        EXPECT_EQ(taken.inside, part);
        Datagram datagram;
        EXPECT_EQ(parse_frame(taken.inside.data(), taken.is.captured_bytes, taken.is.wire_bytes, datagram),
                  Verdict::malformed_truncated);
        // One that says so and is whole is as good as any.
        const Taken whole = take_off(gre(header, inner));
        EXPECT_EQ(parse_frame(whole.inside.data(), whole.is.captured_bytes, whole.is.wire_bytes, datagram), ok);
    }
}

TEST(Decapsulation, GoesTwoLayersDeepAndNoFurther) {
    const std::string_view erspan = "100088be 00000001 10070001 00000000";
    Taken taken = take_off(gre(erspan, vxlan(inner)));
    EXPECT_EQ(taken.is.verdict, ok);
    EXPECT_EQ(taken.is.layers, 2);
    EXPECT_EQ(taken.is.by[0], Tunnel::erspan);
    EXPECT_EQ(taken.is.by[1], Tunnel::vxlan);
    EXPECT_EQ(taken.inside, inner);
    taken = take_off(gre(erspan, mpls("00010140", inner_ip)));
    EXPECT_EQ(taken.is.layers, 2);
    EXPECT_EQ(taken.inside, with_header(inner_ip));
    taken = take_off(gre(erspan, gre(erspan, gre(erspan, inner))));
    EXPECT_EQ(taken.is.verdict, Verdict::malformed_nested);
    EXPECT_EQ(taken.is.layers, 2);
}

// A mirror of somebody's ARP or ping: nobody is to answer it.
TEST(Decapsulation, EndsWhatOthersAskEachOther) {
    const Bytes arp = ethernet(0x0806) + hex("0001 0800 06 04 0001") + pattern(20);
    const Bytes ping = in_ipv4(1, pattern(20));
    EXPECT_EQ(take_off(arp).is.verdict, ok);
    EXPECT_EQ(take_off(vxlan(arp)).is.verdict, Verdict::not_for_us_arp);
    EXPECT_EQ(take_off(vxlan(ping)).is.verdict, Verdict::not_for_us_icmp);
    EXPECT_EQ(take_off(mpls("00010140", arp)).is.verdict, Verdict::not_for_us_arp);
}

TEST(Decapsulation, PassesPiecesOfInnerDatagramsOn) {
    const Bytes piece = ethernet(0x0800) + ipv4(17, pattern(80), 0x2000);
    const Taken taken = take_off(vxlan(piece));
    EXPECT_EQ(taken.is.verdict, ok);
    EXPECT_EQ(taken.inside, piece);
}

TEST(Decapsulation, OfAnythingReadsNoFurtherThanItSays) {
    // Of a frame in several buffers the first has as much.
    const auto buffer = std::make_unique<std::byte[]>(decapsulation_reads_max);
    std::vector<Bytes> seeds;
    for (const Way& way : ways()) seeds.push_back(way.frame);
    std::mt19937 random(4);
    for (std::uint32_t i = 0; i < 20'000; ++i) {
        const Bytes& seed = seeds[random() % seeds.size()];
        std::fill_n(buffer.get(), decapsulation_reads_max, std::byte{0});
        std::copy(seed.begin(), seed.end(), buffer.get());
        for (std::uint32_t change = random() % 4; change > 0; --change)
            buffer[random() % seed.size()] = static_cast<std::byte>(random());
        store_be(buffer.get() + 24, std::uint16_t{0});  // believed
        store_be(buffer.get() + 16, std::uint16_t{8986});
        const Decapsulated is = decapsulate(buffer.get(), 9000, 9000, Tunnels::all());
        EXPECT_LT(is.front_bytes, decapsulation_reads_max);
        EXPECT_LE(is.front_bytes + is.captured_bytes, 9000u);
    }
}

TEST(Decapsulation, KnowsWhatItWouldTakeOff) {
    EXPECT_EQ(tunnel_of(Encapsulation::erspan_2), Tunnel::erspan);
    EXPECT_EQ(tunnel_of(Encapsulation::ethernet_in_gre), Tunnel::gre);
    EXPECT_EQ(tunnel_of(Encapsulation::vxlan), Tunnel::vxlan);
    EXPECT_EQ(tunnel_of(Encapsulation::mpls), Tunnel::mpls);
    EXPECT_EQ(tunnel_of(Encapsulation::geneve), std::nullopt);
    EXPECT_EQ(name_of(Tunnel::mpls), "mpls");
}

}  // namespace
}  // namespace weir::wire
