// RoCEv2: this packet -> this counter, round trips through the encoder, and the iCRC against its definition.
#include "wire/roce.hpp"

#include "wire_support.hpp"

namespace weir::wire {
namespace {

using test::Bytes;
using test::Exact;
using test::pattern;

constexpr std::size_t bth_at = 42;  // in an untagged frame without IP options

FrameSpec roce_spec() {
    FrameSpec spec;
    spec.sport = 50000;
    spec.dport = roce_port;
    return spec;
}

/// The iCRC from its definition, bit by bit and over the whole masked packet: nothing in common with the code under
/// test.
std::uint32_t icrc_by_definition(std::span<const std::byte> from_ip) {
    Bytes masked(8 + from_ip.size(), std::byte{0xff});
    std::memcpy(masked.data() + 8, from_ip.data(), from_ip.size());
    for (const std::size_t at : {1, 8, 10, 11, 26, 27, 32}) masked[8 + at] = std::byte{0xff};
    std::uint32_t crc = 0xffffffff;
    for (const std::byte value : masked) {
        crc ^= std::to_integer<std::uint32_t>(value);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
    }
    return ~crc;
}

void repair_icrc(Bytes& frame) {
    const std::span<const std::byte> covered = std::span(frame).subspan(14, frame.size() - 18);
    store_le(frame.data() + frame.size() - 4, icrc_by_definition(covered));
}

Verdict decode(const Bytes& frame, RocePacket& out, bool check_icrc = true) {
    const Exact exact(frame);
    Datagram datagram;
    EXPECT_EQ(parse_frame(exact.data(), exact.size(), exact.size(), datagram), ok);
    const Verdict verdict = decode_roce(datagram, check_icrc, out);
    if (verdict == ok) {
        EXPECT_GE(out.payload, exact.data());
        EXPECT_LE(out.payload + out.bytes + 4, exact.data() + exact.size());
    }
    EXPECT_TRUE(test::same(exact.data(), frame)) << "the packet was modified";
    return verdict;
}

Verdict verdict_of(const Bytes& frame, bool check_icrc = true) {
    RocePacket packet;
    return decode(frame, packet, check_icrc);
}

RocePacket packet_of(std::uint8_t opcode, const Bytes& payload) {
    RocePacket packet;
    packet.opcode = opcode;
    packet.qp = 0x11;
    packet.psn = 0xfffffe;
    packet.payload = payload.data();
    packet.bytes = static_cast<std::uint32_t>(payload.size());
    packet.dma_length = packet.bytes;
    return packet;
}

Verdict verdict_of(std::uint8_t opcode, std::size_t payload_bytes, std::uint32_t dma_length = 0) {
    const Bytes payload = pattern(payload_bytes);
    RocePacket packet = packet_of(opcode, payload);
    packet.dma_length = dma_length;
    return verdict_of(make_roce_frame(roce_spec(), packet));
}

/// A frame with this opcode and these bytes after the base transport header, whatever they mean.
Bytes raw_frame(std::uint8_t opcode, std::size_t rest_bytes, std::uint32_t qp = 0x11) {
    Bytes udp_payload(12 + rest_bytes + 4);
    udp_payload[0] = static_cast<std::byte>(opcode);
    store_be24(udp_payload.data() + 5, qp);
    Bytes frame = make_udp_frame(roce_spec(), udp_payload);
    repair_icrc(frame);
    return frame;
}

TEST(Roce, IcrcAgreesWithItsDefinitionAtEveryLength) {
    const Bytes bytes = pattern(40 + 300, 7);
    for (std::uint32_t length = 40; length <= bytes.size(); ++length)
        ASSERT_EQ(roce_icrc(bytes.data(), length), icrc_by_definition(std::span(bytes).first(length))) << length;
}

TEST(Roce, IcrcCoversWhatItMustAndNothingElse) {
    const Bytes frame = make_roce_frame(roce_spec(), packet_of(0x24, pattern(8)));
    ASSERT_EQ(verdict_of(frame), ok);
    for (std::size_t at = 14; at < frame.size(); ++at) {
        const std::size_t in_ip = at - 14;
        if (in_ip == 0 || in_ip == 2 || in_ip == 3 || in_ip == 6 || in_ip == 7 || in_ip == 9 || in_ip == 24 ||
            in_ip == 25)
            continue;  // these end in the network layers
        Bytes changed = frame;
        changed[at] ^= std::byte{0x10};
        store_be(changed.data() + 24, std::uint16_t{0});  // no IP checksum, so that the change gets through
        const bool masked =
            in_ip == 1 || in_ip == 8 || in_ip == 10 || in_ip == 11 || in_ip == 26 || in_ip == 27 || in_ip == 32;
        EXPECT_EQ(verdict_of(changed), masked ? ok : Verdict::malformed_bad_icrc) << in_ip;
    }
}

TEST(Roce, IcrcOverIpv6CoversWhatItMustAndNothingElse) {
    FrameSpec spec = roce_spec();
    spec.ipv6 = Ipv6Addresses{{0xfd, 0, 0, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
                              {0xfd, 0, 0, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};
    const Bytes frame = make_roce_frame(spec, packet_of(0x24, pattern(8)));
    const auto verdict = [](const Bytes& bytes) {  // without the network layers, which would refuse some of the changes
        const Exact exact{std::span<const std::byte>(bytes).subspan(14)};
        Datagram datagram;
        datagram.ip = exact.data();
        datagram.ipv6 = true;
        datagram.payload = exact.data() + ipv6_header_bytes + udp_header_bytes;
        datagram.payload_bytes = exact.size() - ipv6_header_bytes - udp_header_bytes;
        RocePacket packet;
        return decode_roce(datagram, true, packet);
    };
    ASSERT_EQ(verdict_of(frame), ok);
    for (std::size_t in_ip = 0; in_ip < frame.size() - 14; ++in_ip) {
        for (const std::byte bit : {std::byte{0x01}, std::byte{0x80}}) {
            if (in_ip == 0 && bit == std::byte{0x80}) continue;  // the version
            Bytes changed = frame;
            changed[14 + in_ip] ^= bit;
            const bool masked = in_ip <= 3 || in_ip == 7 || in_ip == 46 || in_ip == 47 || in_ip == 52;
            EXPECT_EQ(verdict(changed), masked ? ok : Verdict::malformed_bad_icrc) << in_ip;
        }
    }
}

TEST(Roce, WhoSendsToWhomIsToldApart) {
    RocePacket a, b;
    FrameSpec spec = roce_spec();
    EXPECT_EQ(decode(make_roce_frame(spec, packet_of(0x24, pattern(8))), a), ok);
    EXPECT_EQ(decode(make_roce_frame(spec, packet_of(0x24, pattern(8))), b), ok);
    EXPECT_EQ(a.address_pair, b.address_pair);
    std::swap(spec.src, spec.dst);
    EXPECT_EQ(decode(make_roce_frame(spec, packet_of(0x24, pattern(8))), b), ok);
    EXPECT_NE(a.address_pair, b.address_pair);
    spec.ipv6 = Ipv6Addresses{{1}, {2}};
    EXPECT_EQ(decode(make_roce_frame(spec, packet_of(0x24, pattern(8))), a), ok);
    std::swap(spec.ipv6->src, spec.ipv6->dst);
    EXPECT_EQ(decode(make_roce_frame(spec, packet_of(0x24, pattern(8))), b), ok);
    EXPECT_NE(a.address_pair, b.address_pair);
}

TEST(Roce, DamagedPacketIsAlwaysBadIcrc) {
    // Unknown opcode, wrong version, pad larger than the payload: not believed before the iCRC.
    for (const auto& [at, value] : {std::pair{0, 0xff}, {0, 0x11}, {1, 0x4f}, {1, 0x70}, {7, 0x01}, {5, 0x77}}) {
        Bytes frame = make_roce_frame(roce_spec(), packet_of(0x24, {}));
        frame[bth_at + static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
        EXPECT_EQ(verdict_of(frame), Verdict::malformed_bad_icrc) << at;
    }
    Bytes frame = make_roce_frame(roce_spec(), packet_of(0x24, pattern(8)));
    frame.back() ^= std::byte{1};
    EXPECT_EQ(verdict_of(frame), Verdict::malformed_bad_icrc);
    EXPECT_EQ(verdict_of(frame, false), ok);
}

TEST(Roce, EveryDataOpcodeRoundTrips) {
    for (const RoceTransport transport : {RoceTransport::rc, RoceTransport::uc})
        for (const bool is_write : {false, true})
            for (const bool immediate : {false, true})
                for (const std::uint32_t bytes : {1U, 2U, 3U, 255U, 256U, 257U, 511U, 512U, 1000U}) {
                    RoceMessage message{.transport = transport, .is_write = is_write, .qp = 0xabcdef};
                    message.psn = 0xffffff;
                    message.mtu = 256;
                    message.va = 0x0102030405060708;
                    message.rkey = 0x1234;
                    if (immediate) message.immediate = 0xc0de0001;
                    const Bytes payload = pattern(bytes);
                    const std::uint32_t count = roce_packet_count(message, bytes);
                    EXPECT_EQ(count, (bytes + 255) / 256);
                    Bytes together;
                    for (std::uint32_t i = 0; i < count; ++i) {
                        const RocePacket sent = roce_packet_of(message, payload, i);
                        const Exact frame(make_roce_frame(roce_spec(), sent));
                        Datagram datagram;
                        ASSERT_EQ(parse_frame(frame.data(), frame.size(), frame.size(), datagram), ok);
                        RocePacket got;
                        ASSERT_EQ(decode_roce(datagram, true, got), ok);
                        EXPECT_EQ(got.opcode, sent.opcode);
                        EXPECT_EQ(got.transport, transport);
                        EXPECT_EQ(got.place, sent.place);
                        EXPECT_EQ(got.is_write, is_write);
                        EXPECT_EQ(got.has_immediate, immediate && i + 1 == count);
                        EXPECT_EQ(got.immediate, got.has_immediate ? 0xc0de0001 : 0);
                        EXPECT_EQ(got.qp, 0xabcdefU);
                        EXPECT_EQ(got.psn, (0xffffff + i) & 0xffffff);
                        EXPECT_EQ(got.ack_request, sent.ack_request);
                        EXPECT_EQ(got.va, is_write && i == 0 ? message.va : 0);
                        EXPECT_EQ(got.rkey, is_write && i == 0 ? message.rkey : 0);
                        EXPECT_EQ(got.dma_length, is_write && i == 0 ? bytes : 0);
                        together.insert(together.end(), got.payload, got.payload + got.bytes);
                    }
                    EXPECT_EQ(together, payload);
                }
}

TEST(Roce, EmptyMessages) {
    for (const std::uint8_t opcode : {0x04, 0x05, 0x0a, 0x0b, 0x24, 0x25, 0x2a, 0x2b, 0x64, 0x65})
        EXPECT_EQ(verdict_of(opcode, 0), ok) << int{opcode};
}

TEST(Roce, UnreliableDatagram) {
    const Bytes payload = pattern(5);
    RocePacket packet = packet_of(0x65, payload);
    packet.qkey = 0x80010000;
    packet.source_qp = 0x123456;
    packet.immediate = 7;
    packet.solicited = true;
    RocePacket got;
    const Bytes frame = make_roce_frame(roce_spec(), packet);
    ASSERT_EQ(decode(frame, got), ok);
    EXPECT_EQ(got.transport, RoceTransport::ud);
    EXPECT_EQ(got.place, RocePlace::only);
    EXPECT_EQ(got.qkey, 0x80010000U);
    EXPECT_EQ(got.source_qp, 0x123456U);
    EXPECT_TRUE(got.has_immediate);
    EXPECT_EQ(got.immediate, 7U);
    EXPECT_TRUE(got.solicited);
    EXPECT_EQ(got.bytes, 5U);
}

TEST(Roce, SendWithInvalidate) {
    EXPECT_EQ(verdict_of(raw_frame(0x17, 4)), ok);
    EXPECT_EQ(verdict_of(raw_frame(0x16, 4 + 8)), ok);
    EXPECT_EQ(verdict_of(raw_frame(0x16, 4)), Verdict::malformed_roce_length);  // an empty LAST
    EXPECT_EQ(verdict_of(raw_frame(0x37, 4)), Verdict::malformed_roce_header);  // UC has none
    RocePacket got;
    const Bytes frame = raw_frame(0x16, 4 + 8);
    ASSERT_EQ(decode(frame, got), ok);
    EXPECT_EQ(got.bytes, 8U);
    EXPECT_EQ(got.place, RocePlace::last);
}

TEST(Roce, NotForUs) {
    for (const std::uint8_t response : {0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12})
        EXPECT_EQ(verdict_of(raw_frame(response, 12)), Verdict::not_for_us_roce_response) << int{response};
    for (const std::uint8_t request : {0x0c, 0x13, 0x14, 0x1c, 0x1d}) {
        RocePacket got;
        EXPECT_EQ(decode(raw_frame(request, 28, 0x77), got), Verdict::not_for_us_roce_request) << int{request};
        EXPECT_EQ(got.qp, 0x77U);
    }
    EXPECT_EQ(verdict_of(raw_frame(0x81, 16)), Verdict::not_for_us_roce_management);  // congestion notification
    EXPECT_EQ(verdict_of(raw_frame(0x64, 8 + 256, 1)), Verdict::not_for_us_roce_management);
    EXPECT_EQ(verdict_of(raw_frame(0x64, 8 + 256, 0)), Verdict::not_for_us_roce_management);
    EXPECT_EQ(verdict_of(raw_frame(0x64, 8 + 256, 2)), ok);
}

TEST(Roce, Header) {
    for (const std::uint8_t unknown :
         {0x15, 0x18, 0x1b, 0x1e, 0x1f, 0x2c, 0x31, 0x40, 0x44, 0x5f, 0x60, 0x66, 0x80, 0x82, 0xff})
        EXPECT_EQ(verdict_of(raw_frame(unknown, 64)), Verdict::malformed_roce_header) << int{unknown};
    Bytes frame = make_roce_frame(roce_spec(), packet_of(0x24, {}));
    frame[bth_at + 1] |= std::byte{1};  // transport header version 1
    repair_icrc(frame);
    EXPECT_EQ(verdict_of(frame), Verdict::malformed_roce_header);
}

TEST(Roce, IpOptions) {
    Bytes frame = make_roce_frame(roce_spec(), packet_of(0x24, pattern(8)));
    frame.insert(frame.begin() + 34, 4, std::byte{1});
    frame[14] = std::byte{0x46};
    store_be(frame.data() + 16, static_cast<std::uint16_t>(load_be<std::uint16_t>(frame.data() + 16) + 4));
    store_be(frame.data() + 24, std::uint16_t{0});
    EXPECT_EQ(verdict_of(frame, false), Verdict::malformed_roce_header);
}

TEST(Roce, TooShortForItsHeaders) {
    for (std::size_t bytes = 0; bytes < 16; ++bytes)
        EXPECT_EQ(verdict_of(make_udp_frame(roce_spec(), Bytes(bytes))), Verdict::malformed_roce_length) << bytes;
    const auto needs = [](std::uint8_t opcode, std::size_t extension_bytes) {
        EXPECT_EQ(verdict_of(raw_frame(opcode, extension_bytes - 1)), Verdict::malformed_roce_length) << int{opcode};
    };
    needs(0x05, 4);
    needs(0x0a, 16);
    needs(0x0b, 20);
    needs(0x64, 8);
    needs(0x65, 12);
    needs(0x0c, 16);
    needs(0x11, 4);
    needs(0x17, 4);
    needs(0x81, 16);
}

TEST(Roce, Lengths) {
    for (const std::uint8_t first_or_middle : {0x00, 0x01, 0x07, 0x20, 0x21, 0x27}) {
        for (const std::size_t mtu : {256, 512, 1024, 2048, 4096}) EXPECT_EQ(verdict_of(first_or_middle, mtu), ok);
        for (const std::size_t bytes : {0, 4, 128, 255, 260, 1020, 1028, 4100, 8192})
            EXPECT_EQ(verdict_of(first_or_middle, bytes), Verdict::malformed_roce_length) << bytes;
    }
    for (const std::uint8_t last : {0x02, 0x03, 0x08, 0x09, 0x22, 0x29}) {
        EXPECT_EQ(verdict_of(last, 1), ok);
        EXPECT_EQ(verdict_of(last, 4096), ok);
        EXPECT_EQ(verdict_of(last, 0), Verdict::malformed_roce_length);
        EXPECT_EQ(verdict_of(last, 4097), Verdict::malformed_roce_length);
    }
    EXPECT_EQ(verdict_of(0x24, 4097), Verdict::malformed_roce_length);
    // WRITE: the length in the first packet is that of the message.
    EXPECT_EQ(verdict_of(0x26, 1024, 1025), ok);
    EXPECT_EQ(verdict_of(0x26, 1024, 1024), Verdict::malformed_roce_length);
    EXPECT_EQ(verdict_of(0x26, 1024, 0), Verdict::malformed_roce_length);
    EXPECT_EQ(verdict_of(0x2a, 1000, 1000), ok);
    EXPECT_EQ(verdict_of(0x2a, 1000, 1001), Verdict::malformed_roce_length);
    EXPECT_EQ(verdict_of(0x2b, 0, 1), Verdict::malformed_roce_length);
}

TEST(Roce, Padding) {
    Bytes frame = make_roce_frame(roce_spec(), packet_of(0x24, {}));
    frame[bth_at + 1] |= std::byte{0x10};  // one pad byte of no bytes
    repair_icrc(frame);
    EXPECT_EQ(verdict_of(frame), Verdict::malformed_roce_length);
    frame = make_roce_frame(roce_spec(), packet_of(0x21, pattern(1024)));
    frame[bth_at + 1] |= std::byte{0x10};
    repair_icrc(frame);
    EXPECT_EQ(verdict_of(frame), Verdict::malformed_roce_length);
    // 257 bytes and 3 pad bytes would leave a path MTU in FIRST only if padding were believed there.
    frame = raw_frame(0x20, 257);
    frame[bth_at + 1] |= std::byte{0x10};
    repair_icrc(frame);
    EXPECT_EQ(verdict_of(frame), Verdict::malformed_roce_length);
}

TEST(Roce, RandomDamageNeverPasses) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    for (int i = 0; i < 5000; ++i) {
        const Bytes payload = pattern(random() % 600, random());
        RocePacket sent = packet_of(0x2b, payload);
        sent.immediate = random();
        Bytes frame = make_roce_frame(roce_spec(), sent);
        // After the bytes that the iCRC masks, one flip is always found.
        frame[bth_at + 5 + random() % (frame.size() - bth_at - 5)] ^= static_cast<std::byte>(1U << random() % 8);
        ASSERT_EQ(verdict_of(frame), Verdict::malformed_bad_icrc);
        RocePacket got;
        decode(frame, got, false);  // anything may come out, nothing outside is read
    }
}

}  // namespace
}  // namespace weir::wire
