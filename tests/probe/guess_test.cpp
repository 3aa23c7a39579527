#include <gtest/gtest.h>

#include <random>

#include "probe/declared_guess.hpp"

namespace weir::probe {
namespace {

using wire::ByteOrder;
using wire::DeclaredSpec;
using Bytes = std::vector<std::byte>;

/// Packets of a described format, in order, with noise as payload.
class MadeUp {
public:
    explicit MadeUp(DeclaredSpec spec) : spec_(std::move(spec)) {}

    void add(std::uint64_t event, std::uint64_t index, std::uint32_t payload_bytes) {
        std::vector<std::byte>& packet = packets_.emplace_back(spec_.header_bytes + payload_bytes);
        for (std::byte& byte : packet) byte = static_cast<std::byte>(random_());
        const std::vector<std::byte> payload(packet.begin() + spec_.header_bytes, packet.end());
        std::fill_n(packet.begin(), spec_.header_bytes, std::byte{0});
        put(spec_.event, event, packet);
        put(spec_.index, index, packet);
        put(spec_.offset, index * payload_bytes, packet);
        put(spec_.magic, spec_.magic_value, packet);
    }
    std::optional<DeclaredGuess> guess() {
        std::vector<wire::SampledPacket> sampled;
        for (const auto& packet : packets_)
            sampled.push_back({std::span(packet).first(std::min<std::size_t>(packet.size(), 528)),
                               static_cast<std::uint32_t>(packet.size())});
        return guess_declared(sampled, why);
    }
    void shuffle(std::size_t reach) {
        for (std::size_t i = reach; i < packets_.size(); ++i) std::swap(packets_[i], packets_[i - random_() % reach]);
    }
    std::string why;

private:
    void put(const std::optional<wire::DeclaredField>& field, std::uint64_t value, std::vector<std::byte>& packet) {
        if (!field) return;
        for (std::uint32_t i = 0; i < field->bytes; ++i) {
            const std::uint32_t bit = 8 * (spec_.byte_order == ByteOrder::little ? i : field->bytes - 1 - i);
            packet[field->offset + i] = static_cast<std::byte>(value >> bit);
        }
    }
    DeclaredSpec spec_;
    std::vector<std::vector<std::byte>> packets_;
    std::mt19937 random_{3};
};

DeclaredSpec frames_of_64_packets() {
    DeclaredSpec spec;
    spec.header_bytes = 16;
    spec.event = {.offset = 0, .bytes = 8};
    spec.index = {.offset = 8, .bytes = 4};
    spec.magic = {.offset = 12, .bytes = 2};
    spec.magic_value = 0xCAFE;
    return spec;
}

TEST(DeclaredGuess, FindsCounterIndexMarkAndSizes) {
    for (const ByteOrder order : {ByteOrder::little, ByteOrder::big}) {
        DeclaredSpec spec = frames_of_64_packets();
        spec.byte_order = order;
        MadeUp packets(spec);
        for (std::uint64_t event = 300; event < 310; ++event)
            for (std::uint64_t index = 0; index < 64; ++index) packets.add(event, index, 1024);
        packets.shuffle(4);
        const auto found = packets.guess();
        ASSERT_TRUE(found) << packets.why;
        EXPECT_EQ(found->spec.byte_order, order);
        EXPECT_EQ(found->spec.event->offset, 0U);
        EXPECT_EQ(found->spec.event->bytes, 8U);
        EXPECT_EQ(found->spec.index->offset, 8U);
        EXPECT_EQ(found->spec.packets, 64U);
        EXPECT_EQ(found->spec.payload_bytes, 1024U);
        EXPECT_EQ(found->spec.header_bytes, 16U);
        EXPECT_EQ(found->spec.magic_value, 0xCAFEU);
        EXPECT_FALSE(found->doubts.empty());
    }
}

TEST(DeclaredGuess, FindsAnOffsetInBytes) {
    DeclaredSpec spec;
    spec.byte_order = ByteOrder::big;
    spec.header_bytes = 12;
    spec.event = {.offset = 0, .bytes = 4};
    spec.offset = {.offset = 4, .bytes = 4};
    MadeUp packets(spec);
    for (std::uint64_t event = 0; event < 20; ++event)
        for (std::uint64_t index = 0; index < 8; ++index) packets.add(event * 3, index, 500);
    const auto found = packets.guess();
    ASSERT_TRUE(found) << packets.why;
    EXPECT_EQ(found->spec.offset->offset, 4U);
    EXPECT_EQ(found->spec.header_bytes, 12U);
    EXPECT_EQ(found->spec.total_bytes, 4000U);
    EXPECT_FALSE(found->spec.index);
}

TEST(DeclaredGuess, DatagramsThatAreWholeMessages) {
    DeclaredSpec spec;
    spec.header_bytes = 8;
    spec.event = {.offset = 4, .bytes = 4};
    MadeUp packets(spec);
    for (std::uint64_t event = 1000; event < 1100; ++event) packets.add(event, 0, 200);
    const auto found = packets.guess();
    ASSERT_TRUE(found) << packets.why;
    EXPECT_EQ(found->spec.event->offset, 4U);
    EXPECT_FALSE(found->spec.index);
    EXPECT_FALSE(found->spec.packets);
    EXPECT_EQ(found->spec.header_bytes, 8U);
}

/// As many senders as there are boards, each with its number behind the index.
std::vector<std::vector<Bytes>> boards(ByteOrder order, std::uint64_t first, std::size_t events) {
    std::vector<std::vector<Bytes>> out(3);
    std::mt19937 random(7);
    for (std::uint32_t board = 0; board < out.size(); ++board)
        for (std::uint64_t i = 0; i < events * 4; ++i) {
            Bytes packet;
            const auto put = [&](std::uint64_t value, std::uint32_t bytes) {
                for (std::uint32_t at = 0; at < bytes; ++at)
                    packet.push_back(
                        static_cast<std::byte>(value >> 8 * (order == ByteOrder::little ? at : bytes - 1 - at)));
            };
            put(0xCAFEBABE, 4);
            put(first + i / 4, 4);
            put(i % 4, 2);
            put(board, 2);
            put(i, 4);
            while (packet.size() < 16 + 512) packet.push_back(static_cast<std::byte>(random()));
            out[board].push_back(std::move(packet));
        }
    return out;
}

std::optional<DeclaredGuess> guess_of(const std::vector<std::vector<Bytes>>& flows, std::string& why) {
    std::vector<FlowPackets> sampled;
    for (std::uint32_t flow = 0; flow < flows.size(); ++flow) {
        FlowPackets& packets = sampled.emplace_back();
        for (const Bytes& packet : flows[flow])
            packets.push_back({packet, static_cast<std::uint32_t>(packet.size()), flow});
    }
    return guess_declared(sampled.front(), why, std::span(sampled).subspan(1));
}

TEST(DeclaredGuess, ACounterIsReadInItsOwnByteOrder) {
    for (const ByteOrder order : {ByteOrder::little, ByteOrder::big})
        for (const std::uint64_t first :
             {std::uint64_t{0}, std::uint64_t{1000}, std::uint64_t{65500}, std::uint64_t{1} << 20U})
            for (const std::size_t events : {10, 100, 300}) {
                std::string why;
                const auto found = guess_of(boards(order, first, events), why);
                ASSERT_TRUE(found) << why;
                EXPECT_EQ(found->spec.byte_order, order) << first << " " << events;
                EXPECT_EQ(found->spec.event, (wire::DeclaredField{.offset = 4, .bytes = 4})) << first << " " << events;
                EXPECT_EQ(found->spec.packets, 4U);
                EXPECT_EQ(found->spec.payload_bytes, 512U);
            }
}

/// What is another number in other flows is no part of an index or a mark.
TEST(DeclaredGuess, OtherFlowsShowWhatIsTheSendersOwn) {
    for (const ByteOrder order : {ByteOrder::little, ByteOrder::big}) {
        std::string why;
        const auto found = guess_of(boards(order, 1000, 50), why);
        ASSERT_TRUE(found) << why;
        EXPECT_EQ(found->spec.index, (wire::DeclaredField{.offset = 8, .bytes = 2}));
        EXPECT_EQ(found->spec.magic, (wire::DeclaredField{.offset = 0, .bytes = 4}));
    }
}

TEST(DeclaredGuess, ACounterInWideStepsIsNotSplit) {
    for (const ByteOrder order : {ByteOrder::little, ByteOrder::big})
        for (const std::uint64_t step : {1, 2, 16, 100, 128, 1000}) {
            DeclaredSpec spec;
            spec.byte_order = order;
            spec.header_bytes = 16;
            spec.event = {.offset = 8, .bytes = 4};
            MadeUp packets(spec);
            for (std::uint64_t event = 0; event < 2000; ++event) packets.add(5000 + step * event, 0, 200);
            const auto found = packets.guess();
            ASSERT_TRUE(found) << packets.why;
            EXPECT_EQ(found->spec.byte_order, order) << step;
            // The zeros beside it may be of the same number.
            const wire::DeclaredField& event = *found->spec.event;
            EXPECT_EQ(order == ByteOrder::little ? event.offset : event.offset + event.bytes - 4, 8U) << step;
            EXPECT_GE(event.bytes, 4U) << step;
            EXPECT_FALSE(found->spec.index || found->spec.offset) << step;
        }
}

TEST(DeclaredGuess, AnIndexInStepsIsNoOffsetInBytes) {
    DeclaredSpec spec;
    spec.header_bytes = 16;
    spec.event = {.offset = 0, .bytes = 4};
    spec.index = {.offset = 4, .bytes = 2};
    MadeUp packets(spec);
    for (std::uint64_t event = 0; event < 30; ++event)
        for (std::uint64_t index = 0; index < 64; ++index) packets.add(event, index * 16, 1024);
    const auto found = packets.guess();
    ASSERT_TRUE(found) << packets.why;
    EXPECT_FALSE(found->spec.offset);
    ASSERT_TRUE(found->spec.index);
    EXPECT_EQ(found->spec.index->offset, 4U);
    EXPECT_EQ(found->spec.index->shift, 4U);
    EXPECT_EQ(found->spec.packets, 64U);
}

/// A constant behind the counter may be its upper half, or the number of a board: the narrower one explains all
/// packets.
TEST(DeclaredGuess, TheNarrowestCounterThatExplainsAllPackets) {
    for (const ByteOrder order : {ByteOrder::little, ByteOrder::big}) {
        const bool little = order == ByteOrder::little;
        DeclaredSpec spec;
        spec.byte_order = order;
        spec.header_bytes = 8;
        spec.event = {.offset = little ? 0U : 2U, .bytes = 2};
        spec.magic = {.offset = little ? 2U : 0U, .bytes = 2};
        spec.magic_value = 7;
        spec.index = {.offset = 4, .bytes = 4};
        MadeUp packets(spec);
        for (std::uint64_t event = 300; event < 400; ++event)
            for (std::uint64_t index = 0; index < 8; ++index) packets.add(event, index, 1024);
        const auto found = packets.guess();
        ASSERT_TRUE(found) << packets.why;
        EXPECT_EQ(found->spec.event, spec.event);
        EXPECT_EQ(found->spec.packets, 8U);
        // They may be of the number all the same, and change one day.
        EXPECT_FALSE(found->spec.magic);
        EXPECT_TRUE(std::ranges::any_of(found->doubts, [](const std::string& doubt) {
            return doubt.find("may be of the event number, too") != std::string::npos;
        }));
    }
}

/// A number that comes again a second later is no event, and the second no index.
TEST(DeclaredGuess, PacketsOfAnEventAreNeighbours) {
    DeclaredSpec spec;
    spec.header_bytes = 16;
    spec.event = {.offset = 8, .bytes = 4};
    spec.index = {.offset = 4, .bytes = 4};
    MadeUp packets(spec);
    for (std::uint64_t second = 0; second < 2; ++second)
        for (std::uint64_t block = 0; block < 1000; ++block) packets.add(16 * block, second, 600);
    const auto found = packets.guess();
    ASSERT_TRUE(found) << packets.why;
    EXPECT_EQ(found->spec.event->offset, 8U);
    EXPECT_FALSE(found->spec.index);
}

/// A clock that ticks evenly is no event number as long as there is one.
TEST(DeclaredGuess, WhatCountsByOneGoesBeforeAClock) {
    DeclaredSpec spec;
    spec.byte_order = ByteOrder::big;
    spec.header_bytes = 16;
    spec.event = {.offset = 8, .bytes = 4};
    spec.offset = {.offset = 0, .bytes = 8};
    MadeUp packets(spec);
    for (std::uint64_t event = 1; event < 200; ++event) packets.add(event, 50'000 * event, 100);
    const auto found = packets.guess();
    ASSERT_TRUE(found) << packets.why;
    EXPECT_EQ(found->spec.event->offset, 8U);
}

TEST(DeclaredGuess, NoiseIsNoHeader) {
    MadeUp packets(DeclaredSpec{});
    for (int i = 0; i < 200; ++i) packets.add(0, 0, 400);
    EXPECT_FALSE(packets.guess());
    EXPECT_NE(packets.why.find("encrypted"), std::string::npos);
}

TEST(DeclaredGuess, AFewPacketsAreTooFew) {
    MadeUp packets(frames_of_64_packets());
    for (std::uint64_t index = 0; index < 5; ++index) packets.add(1, index, 100);
    EXPECT_FALSE(packets.guess());
    EXPECT_NE(packets.why.find("too few"), std::string::npos);
}

}  // namespace
}  // namespace weir::probe
