// Sparse pieces: what is kept comes back bit by bit, what was bad is told from what was below, and any bytes may be
// taken for a piece.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "core/error.hpp"
#include "core/hot_thread.hpp"
#include "effort.hpp"
#include "every_target.hpp"
#include "floats.hpp"
#include "real_frames.hpp"
#include "reduce/pixels/pixels.hpp"
#include "reduce/sparse/noise_thresholds.hpp"
#include "sparse_cases.hpp"

namespace weir::reduce {
namespace {

constexpr std::array types{PixelType::f32, PixelType::f16, PixelType::i16, PixelType::u16};

Bytes sparse_of(SparsePiece& piece) {
    Bytes out(piece.sparse_bytes());
    piece.write_sparse(out.data());
    return out;
}
Bytes dense_of(SparsePiece& piece) {
    Bytes out(piece.dense_bytes());
    piece.write_dense(out.data());
    return out;
}

/// A frame with noise, photons, saturated, single bad and missing pixels.
std::vector<float> frame(std::size_t pixels, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> noise(0, 1);
    std::vector<float> energy(pixels);
    for (float& value : energy) {
        value = noise(random);
        const auto kind = random() % 400;
        if (kind < 8) value += static_cast<float>(kind * kind);
        if (kind == 10) value = nan;
        if (kind == 11) value = infinity;
    }
    if (pixels >= 5000) std::fill_n(energy.begin() + 1500, 2048, nan);
    return energy;
}

TEST(SparsePiece, IsWhatItsSpecificationSays) {
    const std::vector<float> energy{0, 5, nan, nan, 1, 2, nan, 9, infinity, -3, 0, 1};
    const std::vector<float> thresholds(energy.size(), 1.F);
    for (const PixelType type : types) {
        SparsePiece piece(type, 4, 3);
        piece.append(energy, 1.F);
        EXPECT_EQ(sparse_of(piece), csr_piece(type, 4, energy, thresholds));
        EXPECT_EQ(dense_of(piece), dense_pixels(type, energy, thresholds));
        EXPECT_EQ(piece.kept(), 4U);
        EXPECT_EQ(piece.sparse_bytes(), 32 + 4 * 4 + 2 * 8 + 4 * (bytes_of(type) + 2));
    }
}

TEST(SparsePiece, IsTheSameHoweverItsPixelsCome) {
    const std::vector<float> energy = frame(weir::test::repeated(64) * 1024, 1);
    const std::vector<float> thresholds(energy.size(), 3.F);
    std::mt19937 random(2);
    with_every_target([&] {
        for (const PixelType type : types) {
            const Bytes expected = csr_piece(type, 1024, energy, thresholds);
            SparsePiece piece(type, 1024, 64);
            for (const std::size_t step : {4096U, 1024U, 1000U, 0U}) {
                piece.begin();
                for (std::size_t at = 0; at < energy.size();) {
                    const std::size_t count = std::min(energy.size() - at, step > 0 ? step : random() % 3000);
                    const auto part = std::span(energy).subspan(at, count);
                    const auto none = [](float value) { return std::isnan(value); };
                    if (count > 0 && std::ranges::all_of(part, none))
                        piece.append_bad(count);
                    else if (at % 3 == 0)
                        piece.append(part, 3.F);
                    else
                        piece.append(part, std::span(thresholds).subspan(at, count));
                    at += count;
                }
                ASSERT_EQ(sparse_of(piece), expected);
                ASSERT_EQ(dense_of(piece), dense_pixels(type, energy, thresholds));
            }
        }
    });
}

TEST(SparsePiece, IsExpandedFromAnyAddress) {
    const std::vector<float> energy = frame(10 * 100, 3);
    const std::vector<float> thresholds(energy.size(), 2.F);
    for (const PixelType type : types) {
        const Bytes piece = csr_piece(type, 100, energy, thresholds);
        for (const std::size_t shift : {0U, 1U, 3U}) {
            Bytes moved(shift);
            moved.insert(moved.end(), piece.begin(), piece.end());
            Bytes dense(energy.size() * bytes_of(type), std::byte{0x55});
            EXPECT_EQ(expand_csr(std::span(moved).subspan(shift), dense), "");
            EXPECT_EQ(dense, dense_pixels(type, energy, thresholds));
        }
    }
}

TEST(SparsePiece, KeepsEverythingOrNothing) {
    SparsePiece piece(PixelType::i16, 1000, 3);  // no multiple of 64
    std::vector<float> energy(3000, 7.F);
    piece.append(energy, 6.F);
    EXPECT_EQ(piece.kept(), 3000U);
    EXPECT_GT(piece.sparse_bytes(), piece.dense_bytes());
    EXPECT_EQ(dense_of(piece), dense_pixels(PixelType::i16, energy, std::vector<float>(3000, 6.F)));
    piece.begin();
    piece.append(energy, 7.F);
    EXPECT_EQ(piece.kept(), 0U);
    EXPECT_EQ(piece.sparse_bytes(), 32U + 4 * 4);
    piece.begin();
    piece.append_bad(3000);
    EXPECT_EQ(piece.sparse_bytes(), 32U + 4 * 4 + 8);
    Bytes dense(6000);
    EXPECT_EQ(expand_csr(sparse_of(piece), dense), "");
    EXPECT_EQ(dense, dense_pixels(PixelType::i16, std::vector<float>(3000, nan), std::vector<float>(3000)));
}

TEST(SparsePiece, DoesNotAllocate) {
    SparsePiece piece(PixelType::u16, 1024, 128);
    const std::vector<float> energy = frame(128 * 1024, 4);
    Bytes out(piece.dense_bytes() + energy.size() * 4);
    Bytes dense(energy.size() * 2);
    core::hot_thread(true);
    piece.begin();
    piece.append(energy, 1.F);
    const std::size_t bytes = piece.sparse_bytes();
    piece.write_sparse(out.data());
    const bool good = expand_csr({out.data(), bytes}, dense).empty();
    piece.write_dense(dense.data());
    core::hot_thread(false);
    EXPECT_TRUE(good);
}

class BrokenPiece : public testing::Test {
protected:
    BrokenPiece() : good(csr_piece(PixelType::u16, 4, {0, 5, nan, nan, 1, 2, 3, 9, infinity, nan, 0, 1}, thresholds)) {}
    /// Where the arrays of `good` are.
    static constexpr std::size_t pointers = 32;
    static constexpr std::size_t runs = pointers + 16;
    static constexpr std::size_t values = runs + 16;
    static constexpr std::size_t columns = values + 10;

    template <class T>
    std::string_view with(std::size_t at, T value) {
        Bytes broken = good;
        std::memcpy(broken.data() + at, &value, sizeof value);
        return expand_csr(broken, dense);
    }
    std::vector<float> thresholds = std::vector<float>(12, 1.F);
    Bytes good;
    Bytes dense = Bytes(24);
};

TEST_F(BrokenPiece, IsRefusedWithAReason) {
    ASSERT_EQ(good.size(), columns + 10);
    EXPECT_EQ(expand_csr(good, dense), "");
    EXPECT_EQ(with(0, 'X'), "no CSR piece: wrong magic");
    EXPECT_EQ(with(4, '\4'), "CSR piece: unknown type of values");
    EXPECT_EQ(with(5, '\1'), "CSR piece: reserved bytes are not zero");
    EXPECT_EQ(with(28, '\1'), "CSR piece: reserved bytes are not zero");
    EXPECT_EQ(with(6, std::uint16_t{0}), "CSR piece: no columns");
    EXPECT_EQ(with(8, std::uint32_t{4}), "CSR piece: rows and columns are not the decoded size");
    EXPECT_EQ(with(8, ~std::uint32_t{0}), "CSR piece: rows and columns are not the decoded size");
    EXPECT_EQ(with(12, std::uint32_t{6}), "CSR piece: its length is not that of its arrays");
    EXPECT_EQ(with(16, ~std::uint32_t{0}), "CSR piece: its length is not that of its arrays");
    EXPECT_EQ(with(pointers, std::uint32_t{1}), "CSR piece: row pointers do not begin at 0");
    EXPECT_EQ(with(pointers + 4, std::uint32_t{9}), "CSR piece: row pointers are out of order");
    EXPECT_EQ(with(pointers + 8, std::uint32_t{0}), "CSR piece: row pointers are out of order");
    EXPECT_EQ(with(pointers + 12, std::uint32_t{4}), "CSR piece: row pointers do not end at the last value");
    EXPECT_EQ(with(runs + 4, std::uint32_t{0}), "CSR piece: runs of bad pixels are out of order");
    EXPECT_EQ(with(runs + 4, std::uint32_t{7}), "CSR piece: runs of bad pixels are out of order");
    EXPECT_EQ(with(runs + 12, std::uint32_t{4}), "CSR piece: a run of bad pixels ends outside");
    EXPECT_EQ(with(runs + 8, ~std::uint32_t{0}), "CSR piece: a run of bad pixels ends outside");
    EXPECT_EQ(with(columns, std::uint16_t{4}), "CSR piece: columns are out of order");
    EXPECT_EQ(with(columns + 4, std::uint16_t{1}), "CSR piece: columns are out of order");
    EXPECT_EQ(with(columns, std::uint16_t{2}), "CSR piece: a pixel is kept and bad");
    EXPECT_EQ(expand_csr(std::span(good).first(31), dense), "CSR piece: shorter than its header");
    EXPECT_EQ(expand_csr(std::span(good).first(good.size() - 1), dense),
              "CSR piece: its length is not that of its arrays");
    EXPECT_EQ(expand_csr({}, dense), "CSR piece: shorter than its header");
}

TEST(NoiseThresholds, FollowNoiseWhereItIsKnown) {
    const std::vector<float> rms{4, 0, nan, -1, 4, infinity};
    const std::vector<float> factor{-0.25F, 0.25F, 0.25F, 0.25F, nan, 0.25F};
    std::vector<float> out(rms.size());
    noise_thresholds(rms.data(), factor.data(), 5, 0, out);
    EXPECT_EQ(out, (std::vector<float>{5, 0, 0, 0, 0, 0}));
    noise_thresholds(rms.data(), factor.data(), 5, 1, out);
    EXPECT_EQ(out, (std::vector<float>{5, 1, 1, 1, 1, 1}));
    noise_thresholds(nullptr, factor.data(), 5, 2, out);
    EXPECT_EQ(out, std::vector<float>(6, 2));
}

TEST_F(RealFrames, NoiseComesFromAFile) {
    const Calibration calibration(config);
    const NoiseThresholds noise({{folder / "mod5_pedeG0_RMS.bin"}, 5, {}}, calibration);
    const auto rms = read_values<float>(folder / "mod5_pedeG0_RMS.bin");
    const auto found = noise.of(0, 0, 0, rms.size());
    std::size_t compared = 0;
    for (std::size_t i = 0; i < rms.size(); ++i) {
        const float factor = calibration.of(0, 0).factor[0][i];
        if (std::isnan(factor)) continue;
        ASSERT_EQ(found[i], 5 * rms[i] * factor) << i;
        ++compared;
    }
    EXPECT_GT(compared, 524'000U);
    EXPECT_THROW(NoiseThresholds({{folder / "mod5_raw0.bin"}, 5, {}}, calibration), core::UsageError);
}

TEST_F(RealFrames, SparsePiecesKeepWhatIsAbove) {
    const Calibration calibration(config);
    std::vector<float> energy(jungfrau_pixels);
    convert(raw(0), calibration.of(0, 0), energy);
    const std::vector<float> thresholds(energy.size(), 10.F);
    SparsePiece piece(PixelType::f32, 1024, 512);
    piece.append(energy, 10.F);
    EXPECT_EQ(piece.kept(), std::ranges::count_if(energy, [](float value) { return value > 10; }));
    EXPECT_GT(piece.kept(), 900U);
    EXPECT_LT(piece.sparse_bytes(), 10'000U);
    Bytes dense(energy.size() * 4);
    EXPECT_EQ(expand_csr(sparse_of(piece), dense), "");
    EXPECT_EQ(dense, dense_pixels(PixelType::f32, energy, thresholds));
}

}  // namespace
}  // namespace weir::reduce
