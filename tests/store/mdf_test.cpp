// MDF records: sizes, filling, and the checksum. What a whole file looks like is tests/end_to_end/mdf_test.py's
// business.
#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

#include "store/mdf_record.hpp"

namespace weir::store {

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

template <class T>
T at(std::span<const std::byte> bytes, std::size_t offset) {
    T value{};
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

}  // namespace

TEST(Mdf, ChecksumIsThePublishedHashWithSignedBytes) {
    EXPECT_EQ(mdf_checksum(bytes_of("a")), 0xca2e9442U);
    EXPECT_EQ(mdf_checksum(bytes_of("The quick brown fox jumps over the lazy dog")), 0x519e91f5U);
    // One byte of 255 is -1: hash = 2^32 - 1, then << 10, >> 6 and the last mixing, worked out by hand.
    std::uint32_t hash = 0xffffffffU;
    hash += hash << 10U;
    hash ^= hash >> 6U;
    hash += hash << 3U;
    hash ^= hash >> 11U;
    hash += hash << 15U;
    EXPECT_EQ(mdf_checksum(bytes_of("\xff")), hash);
}

TEST(Mdf, BanksAreFilledUpAndTheRecordSaysItsSizeThreeTimes) {
    MdfRecord record(77);
    for (int turn = 0; turn < 2; ++turn) {  // nothing is left of the record before
        record.begin();
        ASSERT_TRUE(record.add({.type = 63, .version = 4, .source_id = 0x8001}, bytes_of("12345")));
        ASSERT_TRUE(record.add({.type = 92, .version = 4, .source_id = 2}, {}));
        const auto bytes = record.finish();
        ASSERT_EQ(bytes.size(), 48U + 16 + 8);
        for (const std::size_t offset : {0, 4, 8}) EXPECT_EQ(at<std::uint32_t>(bytes, offset), bytes.size());
        EXPECT_EQ(at<std::uint32_t>(bytes, 12), mdf_checksum(bytes.subspan(16)));
        EXPECT_EQ(at<std::uint32_t>(bytes, 36), 77U);
        EXPECT_EQ(at<std::uint16_t>(bytes, 48), 0xcbcbU);
        EXPECT_EQ(at<std::uint16_t>(bytes, 50), 13U);
        EXPECT_EQ(at<std::uint16_t>(bytes, 54), 0x8001U);
        EXPECT_EQ(at<std::uint32_t>(bytes, 60), 0x35U);
        EXPECT_EQ(at<std::uint16_t>(bytes, 66), 8U);
    }
}

TEST(Mdf, BankThatIsTooLongIsNotAdded) {
    MdfRecord record(0);
    const std::vector<std::byte> body(mdf_bank_bytes_max + 1);
    EXPECT_FALSE(record.add({}, body));
    EXPECT_EQ(record.finish().size(), 48U);
    EXPECT_TRUE(record.add({}, std::span(body).first(mdf_bank_bytes_max)));
    EXPECT_EQ(record.finish().size(), 48U + 65536);
}

}  // namespace weir::store
