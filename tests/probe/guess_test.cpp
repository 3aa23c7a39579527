#include <gtest/gtest.h>

#include <random>

#include "probe/declared_guess.hpp"

namespace weir::probe {
namespace {

using wire::ByteOrder;
using wire::DeclaredSpec;

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
