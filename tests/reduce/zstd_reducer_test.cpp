#include "reduce/zstd_reducer.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "core/hot_thread.hpp"

namespace {

using weir::reduce::ZstdReducer;

/// Decompressed by the library itself, without anything of the reducer.
std::vector<std::byte> unpacked(const std::vector<std::byte>& frame, std::size_t raw_bytes) {
    std::vector<std::byte> out(raw_bytes + 1);
    const std::size_t got = ::ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size());
    if (ZSTD_isError(got) != 0) ADD_FAILURE() << ZSTD_getErrorName(got);
    out.resize(ZSTD_isError(got) != 0 ? 0 : got);
    return out;
}

std::vector<std::byte> compressed(ZstdReducer& reducer, const std::vector<std::byte>& raw) {
    std::memcpy(reducer.scratch().data(), raw.data(), raw.size());
    std::vector<std::byte> out(ZstdReducer::bound(raw.size()));
    out.resize(reducer.compress(raw.size(), out));
    return out;
}

std::vector<std::byte> pixels(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> raw(count);
    for (std::size_t i = 0; i < count; ++i)
        raw[i] = i % 16 == 0 ? static_cast<std::byte>(random() % 12) : static_cast<std::byte>(i % 16);
    return raw;
}

TEST(ZstdReducer, GivesBackWhatWasPutIn) {
    for (const int level : {-7, -1, 1, 3, 9, 19}) {
        ZstdReducer reducer(level);
        for (const std::size_t count : {std::size_t{400}, std::size_t{8192}, ZstdReducer::piece_bytes}) {
            const auto raw = pixels(count, static_cast<unsigned>(count));
            const auto frame = compressed(reducer, raw);
            ASSERT_FALSE(frame.empty()) << "level " << level << ", " << count << " bytes";
            EXPECT_LT(frame.size(), count);
            EXPECT_EQ(unpacked(frame, count), raw) << "level " << level << ", " << count << " bytes";
        }
    }
}

TEST(ZstdReducer, SaysWhenItDoesNotGetShorter) {
    ZstdReducer reducer(1);
    std::mt19937 random(5);
    for (const std::size_t count : {std::size_t{1}, std::size_t{100}, ZstdReducer::piece_bytes}) {
        std::vector<std::byte> raw(count);
        std::generate(raw.begin(), raw.end(), [&] { return static_cast<std::byte>(random()); });
        EXPECT_TRUE(compressed(reducer, raw).empty()) << count;
    }
    // And the next piece is not the worse for it.
    const auto raw = pixels(5000, 1);
    EXPECT_EQ(unpacked(compressed(reducer, raw), raw.size()), raw);
}

TEST(ZstdReducer, PiecesDoNotDependOnEachOther) {
    ZstdReducer reducer(3);
    const auto raw = pixels(20000, 2);
    const auto first = compressed(reducer, raw);
    static_cast<void>(compressed(reducer, pixels(30000, 3)));
    EXPECT_EQ(compressed(reducer, raw), first);
    ZstdReducer other(3);
    EXPECT_EQ(compressed(other, raw), first);
}

// Under the malloc trap this aborts if anything allocates; the highest level wants the most memory.
TEST(ZstdReducer, DoesNotAllocate) {
    for (const int level : {-7, 1, 19}) {
        ZstdReducer reducer(level);
        const auto raw = pixels(ZstdReducer::piece_bytes, 4);
        std::memcpy(reducer.scratch().data(), raw.data(), raw.size());
        std::vector<std::byte> out(ZstdReducer::bound(raw.size()));
        weir::core::hot_thread(true);
        const std::size_t stored = reducer.compress(raw.size(), out);
        weir::core::hot_thread(false);
        out.resize(stored);
        EXPECT_EQ(unpacked(out, raw.size()), raw);
    }
}

}  // namespace
