#include "core/crc32c.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

using weir::core::crc32c;

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

TEST(Crc32c, MatchesThePublishedCheckValue) {
    EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
}

// RFC 3720 appendix B.4: 32 bytes of zeros, of ones, and counting up.
TEST(Crc32c, MatchesTheVectorsOfRfc3720) {
    std::array<std::byte, 32> block{};
    EXPECT_EQ(crc32c(block), 0x8A9136AAu);
    block.fill(std::byte{0xFF});
    EXPECT_EQ(crc32c(block), 0x62A8AB43u);
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(i);
    EXPECT_EQ(crc32c(block), 0x46DD794Eu);
}

TEST(Crc32c, OfNothingIsTheSeed) {
    EXPECT_EQ(crc32c({}), 0u);
    EXPECT_EQ(crc32c({}, 0x12345678u), 0x12345678u);
}

TEST(Crc32c, ContinuesOverSpansAtEveryCut) {
    std::vector<std::byte> data(257);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 + 3);
    const std::span<const std::byte> all(data);
    const std::uint32_t whole = crc32c(all);
    for (std::size_t cut = 0; cut <= all.size(); ++cut)
        EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), whole) << "cut at " << cut;
}

TEST(Crc32c, NoticesEverySingleBit) {
    std::vector<std::byte> data(64, std::byte{0x5A});
    const std::uint32_t good = crc32c(data);
    for (std::size_t bit = 0; bit < data.size() * 8; ++bit) {
        data[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
        EXPECT_NE(crc32c(data), good) << "bit " << bit;
        data[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    }
}

}  // namespace
