#include "port/arp_responder.hpp"
#include "hex.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace weir::port {
namespace {

using Bytes = std::vector<std::uint8_t>;

const PortAddress own{{2, 0, 0, 0, 0, 2}, 0x0a010002};  // 10.1.0.2

// "who has 10.1.0.2? tell 10.1.0.9", to everybody
const Bytes arp_request = from_hex(
    "ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 0a010009 000000000000 0a010002"
    "000000000000000000000000000000000000");
const Bytes arp_reply = from_hex(
    "020000000001 020000000002 0806 0001 0800 06 04 0002 020000000002 0a010002 020000000001 0a010009"
    "000000000000000000000000000000000000");

// ping -s 11 from 10.1.0.9: identifier 0x1234, sequence 1, "hello world"; checksums worked out apart from the code
// under test
const Bytes echo_request = from_hex(
    "020000000002 020000000001 0800 4500 0027 abcd 4000 3f 01 7bfc 0a010009 0a010002"
    "0800 53fc 1234 0001 68656c6c6f20776f726c64");

Bytes reply_to(const Bytes& frame, std::size_t room = 9000) {
    Bytes reply(room, 0xcc);
    reply.resize(answer(std::as_bytes(std::span(frame)), own, std::as_writable_bytes(std::span(reply))));
    return reply;
}

std::uint16_t sum_of(const Bytes& bytes, std::size_t from, std::size_t count) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        sum += static_cast<std::uint32_t>(bytes[from + i]) << (i % 2 == 0 ? 8 : 0);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>((sum & 0xffff) + (sum >> 16));
}

TEST(ArpResponder, AnswersARequestForItsAddress) {
    EXPECT_EQ(reply_to(arp_request), arp_reply);
}

TEST(ArpResponder, AnswersARequestSentToItsMac) {
    Bytes request = arp_request;
    std::copy(own.mac.begin(), own.mac.end(), request.begin());
    EXPECT_EQ(reply_to(request), arp_reply);
}

TEST(ArpResponder, AnswersAProbe) {
    Bytes probe = arp_request;
    std::fill_n(probe.begin() + 28, 4, 0);
    Bytes expected = arp_reply;
    std::fill_n(expected.begin() + 38, 4, 0);
    EXPECT_EQ(reply_to(probe), expected);
}

TEST(ArpResponder, KeepsAVlanTag) {
    const Bytes tag = from_hex("8100 0064");
    Bytes request = arp_request;
    request.insert(request.begin() + 12, tag.begin(), tag.end());
    Bytes expected = arp_reply;
    expected.insert(expected.begin() + 12, tag.begin(), tag.end());
    expected.resize(60);
    EXPECT_EQ(reply_to(request), expected);
}

TEST(ArpResponder, SilentWhereNotMeant) {
    for (const auto& [offset, value] : std::vector<std::pair<std::size_t, std::uint8_t>>{
             {41, 3},     // for another address
             {21, 2},     // a reply
             {15, 6},     // not Ethernet
             {16, 0x86},  // not IPv4
             {18, 8},     // wrong address lengths
             {19, 16},
             {0, 0},      // to another station
             {22, 1},     // from a multicast address
             {31, 2},     // from our own address
             {13, 0x35},  // another protocol
         }) {
        Bytes request = arp_request;
        request[offset] = value;
        EXPECT_TRUE(reply_to(request).empty()) << offset;
    }
    EXPECT_TRUE(reply_to(arp_request, 59).empty()) << "no room";
}

TEST(ArpResponder, AnswersAPing) {
    const Bytes expected = from_hex(
        "020000000001 020000000002 0800 4500 0027 abcd 4000 40 01 7afc 0a010002 0a010009"
        "0000 5bfc 1234 0001 68656c6c6f20776f726c64 00000000000000");
    ASSERT_EQ(sum_of(echo_request, 14, 20), 0xffff);
    EXPECT_EQ(sum_of(echo_request, 34, 19), 0xffff);
    EXPECT_EQ(reply_to(echo_request), expected);
}

TEST(ArpResponder, AnswersAPaddedAndATaggedPing) {
    Bytes padded = echo_request;
    padded.resize(64, 0xaa);
    EXPECT_EQ(reply_to(padded), reply_to(echo_request)) << "the padding is not part of the datagram";
    const Bytes tag = from_hex("8100 0064");
    Bytes tagged = echo_request;
    tagged.insert(tagged.begin() + 12, tag.begin(), tag.end());
    Bytes expected = reply_to(echo_request);
    ASSERT_EQ(expected.size(), 60U);
    expected.insert(expected.begin() + 12, tag.begin(), tag.end());
    expected.resize(60);
    EXPECT_EQ(reply_to(tagged), expected);
}

TEST(ArpResponder, AnswersAPingOfAnySizeWithRightChecksums) {
    for (std::size_t size = 0; size < 1472; size += 7) {
        Bytes request = echo_request;
        request.resize(42);
        for (std::size_t i = 0; i < size; ++i) {
            request.push_back(static_cast<std::uint8_t>(0xff - i));
        }
        const std::size_t total = 28 + size;
        request[16] = static_cast<std::uint8_t>(total >> 8);
        request[17] = static_cast<std::uint8_t>(total & 0xff);
        for (const auto& [from, count, at] : {std::tuple{14UL, 20UL, 24UL}, std::tuple{34UL, 8 + size, 36UL}}) {
            request[at] = request[at + 1] = 0;
            const auto checksum = static_cast<std::uint16_t>(~sum_of(request, from, count));
            request[at] = static_cast<std::uint8_t>(checksum >> 8);
            request[at + 1] = static_cast<std::uint8_t>(checksum & 0xff);
        }
        const Bytes reply = reply_to(request);
        ASSERT_EQ(reply.size(), std::max<std::size_t>(60, 14 + total)) << size;
        EXPECT_EQ(sum_of(reply, 14, 20), 0xffff) << size;
        EXPECT_EQ(sum_of(reply, 34, 8 + size), 0xffff) << size;
        EXPECT_TRUE(std::equal(request.begin() + 38, request.end(), reply.begin() + 38)) << size;
    }
}

TEST(ArpResponder, NoAnswerToADamagedPing) {
    for (std::size_t offset = 0; offset < echo_request.size(); ++offset) {
        if (offset >= 6 && offset < 12) {
            continue;  // any station may ask
        }
        Bytes damaged = echo_request;
        damaged[offset] ^= 1;
        EXPECT_TRUE(reply_to(damaged).empty()) << offset;
        EXPECT_TRUE(reply_to(Bytes(echo_request.begin(), echo_request.begin() + static_cast<int>(offset))).empty())
            << offset;
    }
    EXPECT_TRUE(reply_to(echo_request, 59).empty()) << "no room";
}

TEST(ArpResponder, NoAnswerToAnAddressThatCouldFloodOthers) {
    for (const std::uint8_t network : {0, 127, 224, 255}) {
        Bytes request = echo_request;
        request[26] = network;
        request[24] = request[25] = 0;
        const auto checksum = static_cast<std::uint16_t>(~sum_of(request, 14, 20));
        request[24] = static_cast<std::uint8_t>(checksum >> 8);
        request[25] = static_cast<std::uint8_t>(checksum & 0xff);
        EXPECT_TRUE(reply_to(request).empty()) << int{network};
    }
}

TEST(ArpResponder, AnyBytesAreHarmless) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    for (int i = 0; i < 20000; ++i) {
        Bytes frame = i % 2 == 0 ? arp_request : echo_request;
        frame.resize(random() % (frame.size() + 1));
        for (unsigned flips = random() % 3; flips > 0 && !frame.empty(); --flips) {
            frame[random() % frame.size()] = static_cast<std::uint8_t>(random());
        }
        frame.shrink_to_fit();
        EXPECT_LE(reply_to(frame, 60).size(), 60U);
    }
}

TEST(ArpResponder, Announces) {
    Bytes frame(60, 0xcc);
    EXPECT_EQ(announce(own, std::as_writable_bytes(std::span(frame))), 60U);
    EXPECT_EQ(frame, from_hex("ffffffffffff 020000000002 0806 0001 0800 06 04 0001 020000000002 0a010002"
                              "000000000000 0a010002 000000000000000000000000000000000000"));
    EXPECT_TRUE(reply_to(frame).empty()) << "one's own announcement is not answered";
    EXPECT_EQ(announce(own, std::as_writable_bytes(std::span(frame).first(59))), 0U);
}

}  // namespace
}  // namespace weir::port
