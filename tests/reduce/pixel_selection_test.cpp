// Veto and sparse in a chain: what they are given chunk by chunk is what they decide by.
#include "reduce/chain/pixel_selection.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/hot_thread.hpp"
#include "floats.hpp"
#include "sparse_cases.hpp"

namespace weir::reduce {
namespace {

constexpr std::uint32_t columns = 1024;

/// Rows of noise that a peak stands out of.
std::vector<float> rows_of_noise(std::size_t rows) {
    std::vector<float> energy(rows * columns);
    for (std::size_t i = 0; i < energy.size(); ++i) energy[i] = static_cast<float>(i * 7919 % 101) / 100;
    return energy;
}

PixelSelection::Config peaks_wanted() {
    PixelSelection::Config config;
    config.veto = VetoOptions{.threshold = 5, .peaks_min = 1, .peaks = {.threshold = 5}};
    return config;
}

std::uint64_t counter(const PixelSelection& selection, std::size_t reducer, auto which) {
    return selection.counters()[reducer].get(static_cast<std::size_t>(which));
}

TEST(PixelSelection, HalvesOfAModuleAreLookedAtTogetherWhereTheyMeet) {
    std::vector<float> upper = rows_of_noise(32);
    std::vector<float> lower = rows_of_noise(32);
    upper[31 * columns + 500] = 40;  // two pixels, on either side of the border between the halves
    lower[500] = 30;
    PixelSelection selection(peaks_wanted(), PixelType::f32, columns, 64);
    const auto peaks = [&](std::size_t first_of_second) {
        selection.begin_event();
        selection.begin_source(0, 0, 0);
        selection.take(upper);
        selection.begin_source(0, 0, first_of_second);
        selection.take(lower);
        return selection.end_event(1, true).peaks;
    };
    EXPECT_EQ(peaks(upper.size()), 1U);
    EXPECT_EQ(peaks(7 * columns), 0U);  // of one pixel each
}

TEST(PixelSelection, VerdictsAreCountedByReason) {
    PixelSelection::Config config;
    config.veto = VetoOptions{.threshold = 5, .pixels_min = 2, .keep_every = 10};
    PixelSelection selection(config, PixelType::f32, columns, 64);
    const auto judge = [&](std::uint64_t number, bool complete, std::size_t hits) {
        std::vector<float> energy(columns);
        std::fill_n(energy.begin(), hits, 6.F);
        selection.begin_event();
        selection.begin_source(0, 0, 0);
        selection.take(energy);
        return selection.end_event(number, complete);
    };
    EXPECT_FALSE(judge(1, true, 1).keep);
    EXPECT_TRUE(judge(2, true, 2).keep);
    EXPECT_TRUE(judge(3, false, 0).keep);
    const PixelResult control = judge(10, true, 1);
    EXPECT_TRUE(control.keep);
    EXPECT_EQ(control.veto, 2);
    EXPECT_EQ(control.pixels_above, 1U);
    EXPECT_EQ(counter(selection, 0, VetoCounter::events), 4U);
    EXPECT_EQ(counter(selection, 0, VetoCounter::passed), 1U);
    EXPECT_EQ(counter(selection, 0, VetoCounter::not_asked), 1U);
    EXPECT_EQ(counter(selection, 0, VetoCounter::few_pixels), 2U);
    EXPECT_EQ(counter(selection, 0, VetoCounter::control), 1U);
    EXPECT_EQ(counter(selection, 0, VetoCounter::pixels_above), 4U);
}

TEST(PixelSelection, EventsWithMoreMaximaThanAreLookedAtAreCounted) {
    PixelSelection::Config config = peaks_wanted();
    config.veto->peaks.separation = 1;
    PixelSelection selection(config, PixelType::f32, columns, 64);
    const auto look = [&](std::size_t maxima, bool complete) {
        std::vector<float> energy = rows_of_noise(64);
        for (std::size_t i = 0; i < maxima; ++i) energy[2 * (i / 512) * columns + i % 512 * 2] = 40;
        selection.begin_event();
        selection.begin_source(0, 0, 0);
        selection.take(energy);
        selection.begin_source(1, 0, 0);
        selection.take(energy);
        static_cast<void>(selection.end_event(1, complete));
        return counter(selection, 0, reduce::VetoCounter::crowded);
    };
    EXPECT_EQ(look(maxima_max / 2, true), 0U);
    EXPECT_EQ(look(maxima_max / 2 + 1, true), 1U);
    EXPECT_EQ(look(8, true), 1U);
    EXPECT_EQ(look(maxima_max / 2 + 1, false), 2U);  // of an event that is not judged too
}

TEST(PixelSelection, WithoutAVetoWhatSparseKeepsIsSaidOfTheEvent) {
    PixelSelection::Config config;
    config.sparse = SparseConfig{.threshold = 5.F, .noise = {}, .sigma = {}};
    const auto above = [&](const PixelSelection::Config& with) {
        PixelSelection selection(with, PixelType::u16, columns, 4);
        EXPECT_TRUE(selection.concludes());
        std::vector<std::byte> out(4 * columns * 2);
        std::vector<float> energy(columns, 4.F);
        energy[0] = std::numeric_limits<float>::infinity();
        energy[1] = nan;
        energy[2] = 6;
        std::uint32_t last = 0;
        for (int event = 0; event < 2; ++event) {
            selection.begin_event();
            for (std::uint32_t piece = 0; piece < 3; ++piece) {
                selection.begin_source(piece, 0, 0);
                selection.begin_piece();
                selection.take(energy);
                static_cast<void>(selection.write_piece(out.data()));
            }
            last = selection.end_event(1, true).pixels_above;
        }
        return last;
    };
    EXPECT_EQ(above(config), 3U * 2);
    config.veto = VetoOptions{.threshold = 3, .pixels_min = 1};
    EXPECT_EQ(above(config), 3U * (columns - 1)) << "the veto's own";
}

TEST(PixelSelection, PiecesAreSparseWhereThatIsShorter) {
    PixelSelection::Config config;
    config.sparse = SparseConfig{.threshold = 5.F, .noise = {}, .sigma = {}};
    PixelSelection selection(config, PixelType::u16, columns, 4);
    std::vector<std::byte> out(4 * columns * 2);
    for (const float energy : {9.F, 1.F, nan}) {
        const std::vector<float> all(4 * columns, energy);
        core::hot_thread(true);
        selection.begin_event();
        selection.begin_source(0, 0, 0);
        selection.begin_piece();
        selection.take(all);
        const PixelSelection::Piece piece = selection.write_piece(out.data());
        core::hot_thread(false);
        EXPECT_EQ(piece.sparse, energy != 9.F);
        const std::vector<std::byte> found(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(piece.bytes));
        const std::vector<float> limits(all.size(), 5.F);
        EXPECT_EQ(found, piece.sparse ? csr_piece(PixelType::u16, columns, all, limits)
                                      : dense_pixels(PixelType::u16, all, limits));
    }
    EXPECT_EQ(counter(selection, 0, SparseCounter::pieces), 3U);
    EXPECT_EQ(counter(selection, 0, SparseCounter::kept_dense), 1U);
    EXPECT_EQ(counter(selection, 0, SparseCounter::kept_pixels), 4U * columns);
}

TEST(PixelSelection, NoiseMayBeToldChunkByChunk) {
    PixelSelection::Config config;
    config.sparse = SparseConfig{.threshold = {}, .noise = {}, .sigma = 2.F};
    PixelSelection selection(config, PixelType::f32, columns, 1);
    const std::vector<float> energy(columns, 3.F);
    std::vector<float> rms(columns, 10.F);
    const std::vector<float> factor(columns, 0.1F);
    rms[7] = 20;
    const auto kept = [&](const PixelNoise& noise) {
        const std::uint64_t before = counter(selection, 0, reduce::SparseCounter::kept_pixels);
        std::vector<std::byte> out(columns * 4);
        selection.begin_event();
        selection.begin_source(0, 0, 0);
        selection.begin_piece();
        selection.take(energy, noise);
        static_cast<void>(selection.write_piece(out.data()));
        return counter(selection, 0, reduce::SparseCounter::kept_pixels) - before;
    };
    EXPECT_EQ(kept({rms.data(), factor.data()}), columns - 1U);
    EXPECT_EQ(kept({}), columns);  // what is not known to be noise is kept
}

}  // namespace
}  // namespace weir::reduce
