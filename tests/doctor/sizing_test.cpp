// The sums of the sizing guide.
#include "doctor/sizing.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"

namespace weir::doctor::test {
namespace {

TEST(Sizing, FollowsFromRatesAndMeasuredCycles) {
    // 100 Gb/s of 8282-byte frames: 1.51 million a second. Receiving takes 430 + 40 cycles of 2.7 GHz, which is 26 % of
    // an lcore; a pass over the payload 2653, which is 1.48 lcores, or 2.12 at a load of 70 %.
    const Size size = size_for({100e9, 8282, 1U << 20U, 0});
    EXPECT_NEAR(size.packets_per_s, 1.509e6, 1e3);
    EXPECT_NEAR(size.events_per_s, 11921, 1);
    EXPECT_EQ(size.rx, 1U);
    EXPECT_EQ(size.build, 1U);
    EXPECT_EQ(size.work, 3U);
    EXPECT_EQ(size.work_zstd, 19U);  // 1.48 and 12.5 GB/s at 1.07 each, at 70 %
    EXPECT_EQ(size.memory_bytes, 7812500000U);
    EXPECT_DOUBLE_EQ(size.memory_bytes_per_s, 50e9);
    EXPECT_DOUBLE_EQ(size.disk_bytes_per_s, 12.5e9);
    EXPECT_EQ(size.lcores(), 5U);
}

TEST(Sizing, SmallPacketsTakeMoreLcoresToReceive) {
    EXPECT_GT(size_for({100e9, 1086, 65536, 0}).rx, size_for({100e9, 8282, 65536, 0}).rx);
    EXPECT_GE(size_for({400e9, 64, 65536, 0}).rx, 60U);
    EXPECT_EQ(size_for({1e9, 8282, 65536, 123}).events_per_s, 123);
    EXPECT_GT(size_for({1e9, 8282, 65536, 0}, 1000).memory_bytes, size_for({1e9, 8282, 65536, 0}, 100).memory_bytes);
}

TEST(Sizing, IsATableThatGrowsWithTheRate) {
    const std::string table = sizing_markdown(std::nullopt);
    EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2 + 18);
    EXPECT_NE(table.find("| 400 Gb/s | 8282 B | 8 MiB |"), std::string::npos) << table;
    const std::string row = sizing_markdown(Load{100e9, 8282, 1U << 20U, 0});
    EXPECT_NE(
        row.find(
            "| 100 Gb/s | 8282 B | 1 MiB | 1.51 M | 11.9 k | 1 | 1 | 3 | 19 | 7.28 GiB | 50 GB/s | 12.5 GB/s | 45 TB |"),
        std::string::npos)
        << row;
    EXPECT_NE(sizing_basis().find("430"), std::string::npos);
}

TEST(BitRates, AreReadWithTheirUnits) {
    for (const auto& [text, rate] : {std::pair{"100Gb/s", 100e9}, std::pair{"100 Gb/s", 100e9}, std::pair{"25G", 25e9},
                                     std::pair{"12.5GB/s", 100e9}, std::pair{"800Mbit/s", 800e6},
                                     std::pair{"1e9b/s", 1e9}, std::pair{"40Gbps", 40e9}})
        EXPECT_DOUBLE_EQ(parse_bit_rate(text, "--rate"), rate) << text;
    for (const char* text :
         {"", "100", "fast", "-1Gb/s", "0Gb/s", "nanGb/s", "infG", "1Gib/s", "100Gb", "1e30Gb/s", "10 G b/s x"})
        EXPECT_THROW(static_cast<void>(parse_bit_rate(text, "--rate")), core::UsageError) << text;
}

TEST(BitRates, AreWrittenForPeople) {
    EXPECT_EQ(bit_rate_text(100e9), "100 Gb/s");
    EXPECT_EQ(byte_rate_text(12.5e9), "12.5 GB/s");
    EXPECT_EQ(bytes_text(1536), "1.5 KiB");
    EXPECT_EQ(bytes_text(0), "0 B");
}

}  // namespace
}  // namespace weir::doctor::test
