// pcapng files that libpcap does not read: interfaces of different kinds, sections in different byte orders; and zeros
// where records should be.
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>

#include "capture_bytes.hpp"
#include "capture_oracle.hpp"
#include "core/error.hpp"
#include "memory_sources.hpp"

namespace weir::store {
namespace {

using test::block;
using test::Bytes;
using test::enhanced;
using test::frame_of;
using test::interface;
using test::join;

constexpr std::uint64_t start_us = 1'700'000'000'000'000;
constexpr unsigned cooked_v1 = 113;
constexpr unsigned wireless = 105;

/// What a reader makes of a file: the first byte of each record, its time after the start, and the rest of its account.
struct Seen {
    std::vector<unsigned> first_bytes;
    std::vector<core::TimeNs> after_ns;
    std::uint64_t other_link = 0;
    std::string text;  ///< why not all was read
    std::string warnings;
};

Seen seen_of(const Bytes& file) {
    Seen seen;
    std::unique_ptr<CaptureReader> reader;
    try {
        reader = std::make_unique<CaptureReader>(std::make_unique<test::PiecesSource>(std::as_bytes(std::span(file))),
                                                 "t.pcapng");
    } catch (const core::RunError& error) {
        seen.text = error.what();
        return seen;
    }
    CaptureReader::Record record;
    while (reader->next(record)) {
        seen.first_bytes.push_back(record.bytes.empty() ? 0 : std::to_integer<unsigned>(record.bytes.front()));
        seen.after_ns.push_back(record.time_ns - static_cast<core::TimeNs>(start_us) * 1000);
    }
    seen.other_link = reader->other_link();
    for (const std::string& line : reader->unread()) seen.text += line + "\n";
    for (const std::string& line : reader->warnings()) seen.warnings += line + "\n";
    return seen;
}

Bytes section(bool big = false) {
    test::Builder out(big);
    out.u32(0x1a2b3c4d).u16(1).u16(0).number(~0ULL, 8);
    return block(big, 0x0a0d0d0a, out.bytes);
}

/// A packet of an interface, `after_us` behind the start.
Bytes packet(std::uint32_t which, std::uint8_t first, std::uint64_t after_us = 0, std::size_t size = 60) {
    return enhanced(false, which, start_us + after_us, frame_of(size, first), {});
}

TEST(CaptureInterfaces, EachHasItsOwnSnapshotLength) {
    test::Builder simple(false);
    simple.u32(500).append(frame_of(64, 4));  // 64 of 500 bytes, by the snapshot length of the first
    const Bytes file = join({section(), interface(false, {}, 1, 64), interface(false, {}, 1, 65535),
                             interface(false, {}, 1, 0), packet(0, 1), packet(1, 2, 1, 1000), packet(2, 3, 2, 200'000),
                             block(false, 3, simple.bytes), packet(0, 5, 3, 65), packet(1, 6)});
    const Seen seen = seen_of(file);
    EXPECT_EQ(seen.first_bytes, (std::vector<unsigned>{1, 2, 3, 4}));
    EXPECT_NE(seen.text.find("65 bytes, beyond the snapshot length"), std::string::npos) << seen.text;
    EXPECT_EQ(seen.other_link, 0U);
}

TEST(CaptureInterfaces, EachHasItsOwnResolutionAndOffset) {
    test::Builder offset(false);
    offset.number(3, 8);
    const Bytes file = join({section(), interface(false, {}, 1, 100), interface(false, {{9, {9}}, {14, offset.bytes}}),
                             packet(0, 1, 7), enhanced(false, 1, start_us * 1000 + 7, frame_of(60, 2), {})});
    EXPECT_EQ(seen_of(file).after_ns, (std::vector<core::TimeNs>{7000, 7 + 3 * core::ns_per_s}));
}

TEST(CaptureInterfaces, WhatIsEthernetIsReadAndTheRestIsCounted) {
    const Bytes ethernet = interface(false, {});
    const Bytes cooked = interface(false, {}, cooked_v1);
    const Bytes radio = interface(false, {}, wireless, 1000);
    const Bytes two = join({packet(0, 1), packet(1, 2), packet(0, 3), packet(1, 4), packet(1, 5)});
    for (const Bytes& other : {cooked, radio}) {
        const Seen behind = seen_of(join({section(), ethernet, other, two}));
        EXPECT_EQ(behind.first_bytes, (std::vector<unsigned>{1, 3}));
        EXPECT_EQ(behind.other_link, 3U);
        EXPECT_EQ(behind.text, "") << "what is left out on purpose is not damage";
        EXPECT_NE(behind.warnings.find("3 packets are left out"), std::string::npos) << behind.warnings;
        const Seen first = seen_of(join({section(), other, ethernet, two}));
        EXPECT_EQ(first.first_bytes, (std::vector<unsigned>{2, 4, 5}));
        EXPECT_EQ(first.other_link, 2U);
    }
    // Described in the middle of the packets, in this section or another one.
    EXPECT_EQ(seen_of(join({section(), ethernet, packet(0, 1), radio, packet(1, 2), packet(0, 3)})).first_bytes,
              (std::vector<unsigned>{1, 3}));
    const Seen later = seen_of(join({section(), radio, packet(0, 1), section(), ethernet, packet(0, 2)}));
    EXPECT_EQ(later.first_bytes, std::vector<unsigned>{2});
    EXPECT_EQ(later.other_link, 1U);
    EXPECT_NE(later.warnings.find("IEEE802_11"), std::string::npos) << later.warnings;
}

TEST(CaptureInterfaces, WithoutEthernetTheFirstKindThatCanBeReadIs) {
    const Bytes raw = interface(false, {}, 101);
    const Bytes cooked = interface(false, {}, cooked_v1);
    const Seen seen =
        seen_of(join({section(), interface(false, {}, wireless), raw, cooked, packet(0, 1), packet(1, 0x45),
                      packet(2, 3), interface(false, {}), packet(3, 0x77), packet(1, 0x46)}));
    EXPECT_EQ(seen.first_bytes, (std::vector<unsigned>{0, 0x77, 0})) << "made Ethernet frames, and one as it was";
    EXPECT_EQ(seen.other_link, 2U);
    EXPECT_NE(seen.warnings.find("; 101 "), std::string::npos) << seen.warnings;
    EXPECT_EQ(seen_of(join({section(), cooked})).text, "") << "a file without a packet";
    EXPECT_NE(seen_of(join({section(), cooked, Bytes{1, 2, 3}})).text.find("inside a block's header"),
              std::string::npos);
}

TEST(CaptureInterfaces, AFileOfOtherKindsAloneIsRefused) {
    const Bytes radio = interface(false, {}, wireless);
    EXPECT_NE(seen_of(join({section(), radio, packet(0, 1)})).text.find("captured on link type 105"),
              std::string::npos);
    EXPECT_NE(seen_of(join({section(), packet(0, 1)})).text.find("before any interface"), std::string::npos);
}

TEST(CaptureInterfaces, APacketOfAnotherKindMayBeOfAnySize) {
    const Bytes large = packet(1, 9, 0, 3U << 20U);
    const Bytes file =
        join({section(), interface(false, {}), interface(false, {}, 220, 0), packet(0, 1), large, packet(0, 2)});
    const Seen seen = seen_of(file);
    EXPECT_EQ(seen.first_bytes, (std::vector<unsigned>{1, 2}));
    EXPECT_EQ(seen.other_link, 1U);
    EXPECT_EQ(seen.text, "");
    EXPECT_NE(seen_of(join({section(), interface(false, {}, 1, 0), large})).text, "") << "no interface of this number";
}

TEST(CaptureInterfaces, SectionsMayHaveDifferentByteOrders) {
    const auto part = [](bool big, std::uint8_t first) {
        return join({section(big), interface(big, {}, 1, big ? 9000 : 1600),
                     enhanced(big, 0, start_us + first, frame_of(60, first), {})});
    };
    for (const bool big : {false, true}) {
        const Seen seen = seen_of(join({part(big, 1), part(!big, 2), part(big, 3)}));
        EXPECT_EQ(seen.first_bytes, (std::vector<unsigned>{1, 2, 3})) << seen.text;
        EXPECT_EQ(seen.after_ns, (std::vector<core::TimeNs>{1000, 2000, 3000}));
    }
}

TEST(CaptureInterfaces, AnyCutAndAnyDamageIsSurvived) {
    const Bytes whole =
        join({section(true), interface(true, {}, cooked_v1, 1000), interface(true, {{9, {9}}}, 1, 2000),
              enhanced(true, 0, 1, frame_of(40, 1), {}), enhanced(true, 1, 2, frame_of(41, 2), Bytes(8, 0)), section(),
              interface(false, {}, wireless), interface(false, {}), packet(0, 3), packet(1, 4)});
    ASSERT_EQ(seen_of(whole).first_bytes, (std::vector<unsigned>{2, 4}));
    for (std::size_t cut = 1; cut < whole.size(); ++cut) {
        const Bytes file(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut));
        ASSERT_EQ(test::disagreement(std::as_bytes(std::span(file))), "") << "cut to " << cut;
        ASSERT_LE(seen_of(file).first_bytes.size(), 1U) << "cut to " << cut;
    }
    for (std::size_t at = 0; at < whole.size(); ++at)
        for (const unsigned flip : {0x01U, 0x80U, 0xffU}) {
            Bytes file = whole;
            file[at] = static_cast<std::uint8_t>(file[at] ^ flip);
            ASSERT_EQ(test::disagreement(std::as_bytes(std::span(file))), "") << "byte " << at << " by " << flip;
            ASSERT_LE(seen_of(file).first_bytes.size(), 4U);
        }
}

TEST(CaptureZeros, ATailOfZerosHasNoPackets) {
    for (const bool big : {false, true})
        for (const std::size_t zeros : std::initializer_list<std::size_t>{16, 17, 31, 65536, 3U << 20U}) {
            const test::PcapOptions options{.big_endian = big};
            const Bytes file =
                join({test::pcap_header(options), test::pcap_record(options, 1, 0, frame_of(60, 7)), Bytes(zeros, 0)});
            const Seen seen = seen_of(file);
            EXPECT_EQ(seen.first_bytes, std::vector<unsigned>{7});
            EXPECT_NE(seen.text.find(std::to_string(zeros) + " bytes behind record 1 are zeros"), std::string::npos)
                << seen.text;
            EXPECT_EQ(test::disagreement(std::as_bytes(std::span(file))), "");
        }
}

TEST(CaptureZeros, AHoleIsPassedOver) {
    const test::PcapOptions options;
    const Bytes file = join({test::pcap_header(options), test::pcap_record(options, 1, 0, frame_of(60, 7)),
                             Bytes(4096, 0), test::pcap_record(options, 2, 0, frame_of(60, 8)),
                             test::pcap_record(options, 0, 0, {}, 60), test::pcap_record(options, 0, 1, {})});
    const Seen seen = seen_of(file);
    EXPECT_EQ(seen.first_bytes, (std::vector<unsigned>{7, 8, 0, 0})) << "a record without bytes is one all the same";
    EXPECT_NE(seen.text.find("4096 bytes behind record 1 are zeros"), std::string::npos) << seen.text;
    EXPECT_EQ(test::disagreement(std::as_bytes(std::span(file))), "");
}

TEST(CaptureZeros, InKindsThatGoThroughTheLibraryAndInPcapng) {
    test::Builder old(false);
    old.u32(0xa1b2c3d4).u16(2).u16(3).u32(0).u32(0).u32(65535).u32(1);
    old.u32(100).u32(7).u32(60).u32(60).append(frame_of(60, 7)).append(Bytes(64, 0));
    const Seen seen = seen_of(old.bytes);
    EXPECT_EQ(seen.first_bytes, std::vector<unsigned>{7});
    EXPECT_NE(seen.text.find("64 bytes behind record 1 are zeros"), std::string::npos) << seen.text;
    const Seen blocks = seen_of(join({section(), interface(false, {}), packet(0, 1), Bytes(512, 0)}));
    EXPECT_EQ(blocks.first_bytes, std::vector<unsigned>{1});
    EXPECT_NE(blocks.text.find("zeros where a block should begin"), std::string::npos) << blocks.text;
}

}  // namespace
}  // namespace weir::store
