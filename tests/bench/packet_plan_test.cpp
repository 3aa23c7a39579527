#include "bench/packet_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "made_packet.hpp"
#include "wire/formats/ejfat/ejfat.hpp"

namespace {

using weir::bench::PacketChecker;
using weir::bench::PacketPlan;
using weir::test::made_packet;
using Is = PacketChecker::Is;

const PacketPlan checked_plan{.trial = 7, .bytes = 1000, .packets = 4};

TEST(PacketPlan, PacketsComeBackAsTheyWereMade) {
    const PacketChecker checker(checked_plan);
    for (const std::uint64_t sequence : {0U, 1U, 63U, 64U, 4711U, 999999U}) {
        const auto found = checker.check(made_packet(checked_plan, sequence, 5000));
        EXPECT_EQ(found.is, Is::whole);
        EXPECT_EQ(found.sequence, sequence);
        EXPECT_EQ(found.sent_ns, 5000);
    }
}

TEST(PacketPlan, PacketsAreEjfatSegmentsOfTheirMessage) {
    const auto context = weir::wire::Ejfat::make_context({});
    for (const std::uint64_t sequence : {0U, 3U, 4U, 11U}) {
        const std::vector<std::byte> bytes = made_packet(checked_plan, sequence);
        ASSERT_EQ(bytes.size(), checked_plan.bytes);
        weir::wire::Datagram datagram;
        datagram.payload = bytes.data();
        datagram.payload_bytes = checked_plan.bytes;
        weir::wire::Fragment fragment;
        ASSERT_EQ(weir::wire::Ejfat::decode(context, datagram, fragment), weir::wire::ok);
        EXPECT_EQ(fragment.number, sequence / 4 + 1);
        EXPECT_EQ(fragment.offset, sequence % 4 * 980);
        EXPECT_EQ(fragment.total, 4 * 980);
        EXPECT_EQ(fragment.bytes, 980);
    }
}

TEST(PacketPlan, OtherTrialsAndOtherTrafficAreNotOurs) {
    const PacketChecker checker(checked_plan);
    EXPECT_EQ(checker.check(made_packet({.trial = 6, .bytes = 1000, .packets = 4}, 5)).is, Is::other);
    EXPECT_EQ(checker.check(std::vector<std::byte>(1000)).is, Is::other);
    EXPECT_EQ(checker.check(std::vector<std::byte>(10)).is, Is::other);
    EXPECT_EQ(checker.check({}).is, Is::other);
}

TEST(PacketPlan, DamageIsSeen) {
    const PacketChecker checker(checked_plan);
    std::vector<std::byte> cut = made_packet(checked_plan, 5);
    cut.pop_back();
    EXPECT_EQ(checker.check(cut).is, Is::damaged);
    std::vector<std::byte> longer = made_packet(checked_plan, 5);
    longer.push_back(std::byte{});
    EXPECT_EQ(checker.check(longer).is, Is::damaged);
    std::vector<std::byte> end = made_packet(checked_plan, 5);
    end.back() ^= std::byte{1};
    EXPECT_EQ(checker.check(end).is, Is::damaged);
    // Sequence, time and the stamp's own check.
    for (std::size_t at = PacketPlan::header_bytes + 8; at < PacketPlan::head_bytes; ++at) {
        std::vector<std::byte> stamp = made_packet(checked_plan, 5);
        stamp[at] ^= std::byte{0x10};
        EXPECT_EQ(checker.check(stamp).is, Is::damaged) << at;
    }
}

TEST(PacketPlan, EveryByteIsLookedAtInOnePacketOf64) {
    const PacketChecker checker(checked_plan);
    int seen = 0;
    for (std::size_t at = PacketPlan::head_bytes; at < checked_plan.bytes; ++at) {
        std::vector<std::byte> bytes = made_packet(checked_plan, 128);
        bytes[at] ^= std::byte{0x80};
        EXPECT_EQ(checker.check(bytes).is, Is::damaged) << at;
        bytes = made_packet(checked_plan, 129);
        bytes[at] ^= std::byte{0x80};
        seen += checker.check(bytes).is == Is::damaged ? 1 : 0;
    }
    EXPECT_GE(seen, 16);  // four words of the others
}

TEST(PacketPlan, ContentIsSentPieceAfterPiece) {
    auto bytes = std::make_shared<std::vector<std::byte>>(3000);
    for (std::size_t i = 0; i < bytes->size(); ++i) (*bytes)[i] = static_cast<std::byte>(i * 7 / 3);
    const PacketPlan plan{.trial = 7, .bytes = 1000, .packets = 4, .content = bytes};
    const weir::bench::PacketMaker maker(plan);
    EXPECT_EQ(maker.body(0).data(), bytes->data());
    EXPECT_EQ(maker.body(2).data(), bytes->data() + 2 * 948);
    EXPECT_EQ(maker.body(3).data(), bytes->data());  // the rest is no whole piece
    const PacketChecker checker(plan);
    for (std::uint64_t sequence = 0; sequence < 200; ++sequence)
        EXPECT_EQ(checker.check(made_packet(plan, sequence)).is, Is::whole);
    // A piece in the place of another one.
    std::vector<std::byte> other = made_packet(plan, 4);
    const auto wrong = maker.body(5);
    std::ranges::copy(wrong, other.begin() + PacketPlan::head_bytes);
    EXPECT_EQ(checker.check(other).is, Is::damaged);
    const PacketPlan too_long{.trial = 7, .bytes = 4000, .packets = 1, .content = bytes};
    EXPECT_THROW(weir::bench::check(too_long), weir::core::UsageError);
}

TEST(PacketPlan, SourcesTakeTurns) {
    const PacketPlan plan{.trial = 7, .bytes = 1000, .packets = 2, .sources = 3};
    const auto context = weir::wire::Ejfat::make_context({});
    for (std::uint64_t sequence = 0; sequence < 24; ++sequence) {
        const std::vector<std::byte> packet = made_packet(plan, sequence);
        const weir::wire::Datagram datagram{.payload = packet.data(), .payload_bytes = 1000};
        weir::wire::Fragment fragment;
        ASSERT_EQ(weir::wire::Ejfat::decode(context, datagram, fragment), weir::wire::ok);
        EXPECT_EQ(fragment.header_source, sequence / 2 % 3);
        EXPECT_EQ(fragment.number, sequence / 6 + 1);
    }
}

TEST(PacketPlan, SmallestPacketsAreChecked) {
    const PacketPlan small{.trial = 1, .bytes = PacketPlan::bytes_min, .packets = 1};
    EXPECT_NO_THROW(weir::bench::check(small));
    for (std::uint64_t sequence = 0; sequence < 200; ++sequence)
        EXPECT_EQ(PacketChecker(small).check(made_packet(small, sequence)).is, Is::whole);
}

TEST(PacketPlan, WhatCannotBeIsRefused) {
    EXPECT_THROW(weir::bench::check({.trial = 0, .bytes = 59, .packets = 1}), weir::core::UsageError);
    EXPECT_THROW(weir::bench::check({.trial = 0, .bytes = 65508, .packets = 1}), weir::core::UsageError);
    EXPECT_THROW(weir::bench::check({.trial = 0, .bytes = 1000, .packets = 0}), weir::core::UsageError);
    EXPECT_THROW(weir::bench::check({.trial = 0, .bytes = 8240, .packets = 3000}), weir::core::UsageError);
}

}  // namespace
