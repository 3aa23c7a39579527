#include "reduce/veto/veto.hpp"
#include "floats.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace weir::reduce {
namespace {

TEST(VetoReason, IsTheFirstThatApplies) {
    const VetoOptions pixels{.pixels_min = 10, .pixels_max = 100};
    EXPECT_EQ(veto_reason(pixels, 9, 0, false), VetoReason::few_pixels);
    EXPECT_EQ(veto_reason(pixels, 10, 0, false), VetoReason::none);
    EXPECT_EQ(veto_reason(pixels, 100, 0, false), VetoReason::none);
    EXPECT_EQ(veto_reason(pixels, 101, 0, false), VetoReason::many_pixels);
    const VetoOptions peaks{.peaks_min = 2, .peaks_max = 5};
    EXPECT_EQ(veto_reason(peaks, 0, 1, false), VetoReason::few_peaks);
    EXPECT_EQ(veto_reason(peaks, 0, 2, false), VetoReason::none);
    EXPECT_EQ(veto_reason(peaks, 0, 6, false), VetoReason::many_peaks);
    EXPECT_EQ(veto_reason(peaks, 0, 3, true), VetoReason::many_peaks);  // 3 at least, and nobody knows how many
    EXPECT_EQ(veto_reason({.peaks_min = 2}, 0, 3, true), VetoReason::none);
}

TEST(VetoReason, BothOrEitherMayBeWanted) {
    VetoOptions options{.pixels_min = 10, .pixels_max = 100, .peaks_min = 2};
    EXPECT_EQ(veto_reason(options, 10, 2, false), VetoReason::none);
    EXPECT_EQ(veto_reason(options, 10, 1, false), VetoReason::few_peaks);
    EXPECT_EQ(veto_reason(options, 9, 2, false), VetoReason::few_pixels);
    options.keep = VetoOptions::Keep::any;
    EXPECT_EQ(veto_reason(options, 10, 1, false), VetoReason::none);
    EXPECT_EQ(veto_reason(options, 9, 2, false), VetoReason::none);
    EXPECT_EQ(veto_reason(options, 9, 1, false), VetoReason::few_pixels);
    EXPECT_EQ(veto_reason(options, 101, 2, false), VetoReason::many_pixels);  // an upper bound always holds
    options.peaks_min.reset();
    EXPECT_EQ(veto_reason(options, 9, 0, false), VetoReason::few_pixels);
}

Verdict judge(Veto& veto, std::uint64_t number, bool complete, const std::vector<float>& energy) {
    veto.begin_event();
    veto.begin_module();
    veto.add(energy);
    veto.end_module();
    return veto.end_event(number, complete);
}

TEST(Veto, CountsWhatIsAboveAndNotWhatIsBad) {
    Veto veto({.threshold = 2, .pixels_min = 3}, 8);
    EXPECT_EQ(judge(veto, 1, true, {0, 2, 2.1F, 3, nan, 1, 0, infinity}), Verdict::passed);
    EXPECT_EQ(veto.pixels_above(), 3U);
    EXPECT_EQ(judge(veto, 2, true, {0, 2, 2.1F, nan, nan, 1, 0, infinity}), Verdict::vetoed);
    EXPECT_EQ(veto.pixels_above(), 2U);
    EXPECT_EQ(veto.reason(), VetoReason::few_pixels);
}

TEST(Veto, KeepsForControlByNumber) {
    Veto veto({.threshold = 2, .pixels_min = 3, .keep_every = 4}, 8);
    const std::vector<float> hit(8, 5);
    const std::vector<float> blank(8);
    EXPECT_EQ(judge(veto, 7, true, blank), Verdict::vetoed);
    EXPECT_EQ(judge(veto, 8, true, blank), Verdict::control);
    EXPECT_EQ(veto.reason(), VetoReason::few_pixels);
    EXPECT_EQ(judge(veto, 8, true, hit), Verdict::passed);
}

TEST(Veto, AsksIncompleteEventsOnlyIfToldTo) {
    const std::vector<float> blank(8);
    Veto keep({.threshold = 2, .pixels_min = 3}, 8);
    EXPECT_EQ(judge(keep, 1, false, blank), Verdict::not_asked);
    EXPECT_EQ(keep.reason(), VetoReason::none);
    Veto judging({.threshold = 2, .pixels_min = 3, .incomplete = VetoOptions::Incomplete::judge}, 8);
    EXPECT_EQ(judge(judging, 1, false, blank), Verdict::vetoed);
}

TEST(Veto, CountsPeaksOnlyWhereTheyAreWanted) {
    std::vector<float> energy(64 * 64, 1.F);
    for (std::size_t i = 0; i < energy.size(); ++i) energy[i] += static_cast<float>(i % 7) / 10;
    for (const std::size_t row : {10U, 40U}) energy[row * 64 + 30] = energy[row * 64 + 31] = 50;
    Veto pixels({.threshold = 20, .pixels_min = 1}, 64);
    EXPECT_EQ(judge(pixels, 1, true, energy), Verdict::passed);
    EXPECT_EQ(pixels.peaks(), 0U);
    Veto peaks({.threshold = 20, .peaks_min = 2, .peaks = {.threshold = 20}}, 64);
    EXPECT_EQ(judge(peaks, 1, true, energy), Verdict::passed);
    EXPECT_EQ(peaks.peaks(), 2U);
    EXPECT_EQ(peaks.pixels_above(), 4U);
}

}  // namespace
}  // namespace weir::reduce
