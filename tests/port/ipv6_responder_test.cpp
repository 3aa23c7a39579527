// Neighbour solicitations and pings over IPv6 are answered, and nothing else is. The frames and their checksums were
// worked out apart from the code under test.
#include "port/ipv6_responder.hpp"
#include "hex.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace weir::port {
namespace {

using Bytes = std::vector<std::uint8_t>;

PortAddress own_address() {
    PortAddress own{{2, 0, 0, 0, 0, 2}, 0, {}, true};
    const Bytes address = from_hex("fd000000000000000000000000000002");
    std::copy(address.begin(), address.end(), own.ipv6.begin());
    return own;
}

constexpr std::string_view our_address = "fd000000000000000000000000000002";
constexpr std::string_view their_address = "fd000000000000000000000000000009";

/// Ethernet, IPv6 and an ICMPv6 message whose checksum is put in.
Bytes icmpv6_frame(std::string_view macs, std::string_view tags, std::string_view source, std::string_view target,
                   unsigned hop_limit, std::string_view message) {
    Bytes icmp = from_hex(message);
    Bytes ip = from_hex("60000000");
    ip.insert(ip.end(), {static_cast<std::uint8_t>(icmp.size() >> 8), static_cast<std::uint8_t>(icmp.size()), 58,
                         static_cast<std::uint8_t>(hop_limit)});
    for (const std::string_view address : {source, target})
        for (const std::uint8_t byte : from_hex(address)) ip.push_back(byte);
    std::uint32_t sum = static_cast<std::uint32_t>(icmp.size()) + 58;
    const auto add = [&sum](const Bytes& bytes, std::size_t from) {
        for (std::size_t i = from; i < bytes.size(); ++i)
            sum += static_cast<std::uint32_t>(bytes[i]) << ((i - from) % 2 == 0 ? 8 : 0);
    };
    add(ip, 8);
    add(icmp, 0);
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    icmp[2] = static_cast<std::uint8_t>(~sum >> 8);
    icmp[3] = static_cast<std::uint8_t>(~sum);
    Bytes frame = from_hex(macs);
    for (const Bytes& part : {from_hex(tags), from_hex("86dd"), ip, icmp})
        frame.insert(frame.end(), part.begin(), part.end());
    return frame;
}

// From RFC 4861 section 4.3: type 135, target, source link-layer address.
constexpr std::string_view solicitation = "87000000 00000000 fd000000000000000000000000000002 0101020000000001";
constexpr std::string_view group_macs = "3333ff000002 020000000001";
constexpr std::string_view group = "ff0200000000000000000001ff000002";
// Section 4.4: type 136, solicited and override, target, target link-layer address.
constexpr std::string_view advertisement = "88000000 60000000 fd000000000000000000000000000002 0201020000000002";
constexpr std::string_view reply_macs = "020000000001 020000000002";
constexpr std::string_view echo = "80000000 1234 0001 68656c6c6f20776f726c64";
constexpr std::string_view echoed = "81000000 1234 0001 68656c6c6f20776f726c64";
constexpr std::string_view unicast_macs = "020000000002 020000000001";

Bytes icmpv6_reply(const Bytes& frame, std::size_t room = 9000) {
    Bytes reply(room, 0xcc);
    reply.resize(answer(std::as_bytes(std::span(frame)), own_address(), std::as_writable_bytes(std::span(reply))));
    return reply;
}

TEST(Ipv6Responder, AnswersASolicitation) {
    EXPECT_EQ(icmpv6_reply(icmpv6_frame(group_macs, "", their_address, group, 255, solicitation)),
              icmpv6_frame(reply_macs, "", our_address, their_address, 255, advertisement));
    EXPECT_EQ(icmpv6_reply(icmpv6_frame(unicast_macs, "", their_address, our_address, 255, solicitation)),
              icmpv6_frame(reply_macs, "", our_address, their_address, 255, advertisement));
}

TEST(Ipv6Responder, KeepsTwoTags) {
    EXPECT_EQ(icmpv6_reply(icmpv6_frame(group_macs, "88a80005 81000006", their_address, group, 255, solicitation)),
              icmpv6_frame(reply_macs, "88a80005 81000006", our_address, their_address, 255, advertisement));
}

TEST(Ipv6Responder, DefendsItsAddressAgainstOneWhoHasNoneYet) {
    constexpr std::string_view probe = "87000000 00000000 fd000000000000000000000000000002";
    constexpr std::string_view nobody = "00000000000000000000000000000000";
    constexpr std::string_view everybody = "ff020000000000000000000000000001";
    EXPECT_EQ(icmpv6_reply(icmpv6_frame(group_macs, "", nobody, group, 255, probe)),
              icmpv6_frame("333300000001 020000000002", "", our_address, everybody, 255,
                           "88000000 20000000 fd000000000000000000000000000002 0201020000000002"));
    EXPECT_TRUE(icmpv6_reply(icmpv6_frame(group_macs, "", nobody, group, 255, solicitation)).empty());
    EXPECT_TRUE(icmpv6_reply(icmpv6_frame(unicast_macs, "", nobody, our_address, 255, probe)).empty());
}

TEST(Ipv6Responder, AnswersPing) {
    EXPECT_EQ(icmpv6_reply(icmpv6_frame(unicast_macs, "", their_address, our_address, 3, echo)),
              icmpv6_frame(reply_macs, "", our_address, their_address, 64, echoed));
}

TEST(Ipv6Responder, StaysSilentOtherwise) {
    const auto silent = [](std::string_view macs, std::string_view source, std::string_view target, unsigned hop_limit,
                           std::string_view message) {
        return icmpv6_reply(icmpv6_frame(macs, "", source, target, hop_limit, message)).empty();
    };
    constexpr std::string_view other = "fd000000000000000000000000000003";
    constexpr std::string_view other_wanted = "87000000 00000000 fd000000000000000000000000000003 0101020000000001";
    EXPECT_TRUE(silent(group_macs, their_address, group, 254, solicitation));  // it came through a router
    EXPECT_TRUE(silent(group_macs, their_address, group, 255, other_wanted));
    EXPECT_TRUE(silent(group_macs, their_address, "ff0200000000000000000001ff000003", 255, solicitation));
    EXPECT_TRUE(silent(group_macs, our_address, group, 255, solicitation));  // our own coming back
    EXPECT_TRUE(silent(group_macs, group, group, 255, solicitation));
    EXPECT_TRUE(silent("3333ff000002 030000000001", their_address, group, 255, solicitation));
    EXPECT_TRUE(silent(group_macs, their_address, group, 255,
                       "87000000 00000000 fd000000000000000000000000000002 0100020000000001"));  // an empty option
    EXPECT_TRUE(silent(group_macs, their_address, group, 255,
                       "87000000 00000000 fd000000000000000000000000000002 0102020000000001"));  // beyond the end
    EXPECT_TRUE(silent(group_macs, their_address, group, 255, "87010000 00000000 fd000000000000000000000000000002"));
    EXPECT_TRUE(silent(unicast_macs, their_address, other, 64, echo));
    EXPECT_TRUE(silent("020000000003 020000000001", their_address, our_address, 64, echo));
    EXPECT_TRUE(silent(unicast_macs, their_address, our_address, 64, echoed));
    Bytes damaged = icmpv6_frame(unicast_macs, "", their_address, our_address, 64, echo);
    damaged.back() ^= 1;
    EXPECT_TRUE(icmpv6_reply(damaged).empty());
    EXPECT_TRUE(icmpv6_reply(icmpv6_frame(group_macs, "", their_address, group, 255, solicitation), 85).empty());
    PortAddress none = own_address();
    none.has_ipv6 = false;
    const Bytes request = icmpv6_frame(unicast_macs, "", their_address, our_address, 64, echo);
    Bytes reply(200);
    EXPECT_EQ(answer(std::as_bytes(std::span(request)), none, std::as_writable_bytes(std::span(reply))), 0U);
}

TEST(Ipv6Responder, EveryCutAndManyFlipsAreSurvived) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    for (const Bytes& frame : {icmpv6_frame(group_macs, "88a80005", their_address, group, 255, solicitation),
                               icmpv6_frame(unicast_macs, "", their_address, our_address, 64, echo)}) {
        for (std::size_t bytes = 0; bytes < frame.size(); ++bytes) {
            const Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(bytes));
            EXPECT_TRUE(icmpv6_reply(cut).empty()) << bytes;
        }
        for (int i = 0; i < 5000; ++i) {
            Bytes flipped = frame;
            for (unsigned flips = 1 + random() % 3; flips > 0; --flips)
                flipped[random() % flipped.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
            EXPECT_LE(icmpv6_reply(flipped).size(), 100U);
        }
    }
}

}  // namespace
}  // namespace weir::port
