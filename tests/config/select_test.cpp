// [[reduce]] kind = "veto" and kind = "sparse": what is read, what it prints as, and the errors.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "case.hpp"
#include "config/reducers/jungfrau.hpp"
#include "config/reducers/pedestal.hpp"
#include "config/reducers/sparse.hpp"
#include "reduce/veto/veto.hpp"

namespace weir::config::test {
namespace {

using reduce::VetoOptions;

const std::string to_energies = R"([[reduce]]
kind = "jungfrau"
pedestal = ["g0.f32", "g1.f32", "g2.f32"]
gain = [41.0, -1.439, -0.1145]
)";
const std::string veto = "[[reduce]]\nkind = \"veto\"\nthreshold = 0.1\n";
const std::string sparse = "[[reduce]]\nkind = \"sparse\"\n";

std::string with(const std::string& reducers) {
    return edited(udp_text, {{"[[sink]]", to_energies + reducers + "[[sink]]"}});
}

TEST(ConfigVeto, AsksForOneThingAtLeast) {
    const RunConfig run = reads_back(with(veto + "max_pixels = 0\n"));
    const auto* options = find_reducer<VetoOptions>(run.reduce);
    ASSERT_NE(options, nullptr);
    EXPECT_EQ(*options, (VetoOptions{.threshold = 0.1, .pixels_max = 0}));
    EXPECT_FALSE(options->wants_peaks());
}

TEST(ConfigVeto, EveryKeyIsReadAndPrinted) {
    const RunConfig run = reads_back(with(veto + R"(min_pixels = 10
max_pixels = 4000000000
min_peaks = 3
max_peaks = 500
require = "any"
incomplete = "judge"
keep_every = 100
peak_threshold = 2
snr = 5.5
peak_radius = 3
background_radius = 7
separation = 4
min_peak_pixels = 2
)"));
    const VetoOptions expected{
        .threshold = 0.1,
        .pixels_min = 10,
        .pixels_max = 4000000000,
        .peaks_min = 3,
        .peaks_max = 500,
        .keep = VetoOptions::Keep::any,
        .incomplete = VetoOptions::Incomplete::judge,
        .keep_every = 100,
        .peaks = {.threshold = 2, .snr = 5.5, .radius = 3, .background_radius = 7, .separation = 4, .pixels_min = 2}};
    EXPECT_EQ(*find_reducer<VetoOptions>(run.reduce), expected);
}

TEST(ConfigVeto, PeaksAreAsHighAsPixelsUnlessSaidOtherwise) {
    const RunConfig run = reads_back(with(veto + "min_peaks = 1\n"));
    EXPECT_EQ(find_reducer<VetoOptions>(run.reduce)->peaks.threshold, 0.1);
}

TEST(ConfigSparse, TakesAThresholdOrNoiseOrBoth) {
    EXPECT_EQ(*find_reducer<SparseOptions>(reads_back(with(sparse + "threshold = -1.5\n")).reduce),
              (SparseOptions{.threshold = -1.5, .sigma = {}, .rms = {}}));
    EXPECT_EQ(*find_reducer<SparseOptions>(reads_back(with(sparse + "sigma = 5\nrms = \"rms.f32\"\n")).reduce),
              (SparseOptions{.threshold = {}, .sigma = 5, .rms = {"/etc/weir/rms.f32"}}));
    EXPECT_EQ(*find_reducer<SparseOptions>(
                  reads_back(with(sparse + "threshold = 2\nsigma = 5\nrms = [\"a\", \"/b\"]\n")).reduce),
              (SparseOptions{.threshold = 2, .sigma = 5, .rms = {"/etc/weir/a", "/b"}}));
}

TEST(ConfigSelect, OrderIsEnergiesThenVetoThenSparseThenCompression) {
    const std::string both = veto + "min_pixels = 1\n" + sparse + "threshold = 1\n";
    const RunConfig run = reads_back(with(both + "[[reduce]]\nkind = \"zstd\"\n"));
    EXPECT_EQ(run.reduce.size(), 4U);
    EXPECT_EQ(run.reduce[1].kind(), "veto");
    EXPECT_EQ(run.reduce[2].kind(), "sparse");
}

Case bad_selection(std::string_view name, const std::string& reducers, Parts parts) {
    static std::vector<std::string> kept;  // what the edits are made on
    kept.reserve(64);
    kept.push_back(with(reducers));
    return {name, kept.back(), {}, parts};
}
const std::string veto_bad = "[[reduce]] #!\nkind = \"veto\"\n";

class ConfigSelectError : public ConfigError {};

TEST_P(ConfigSelectError, NamesLineKeyFoundAndAccepted) {
    expect_refused(GetParam());
}

const std::vector<Case> select_cases{
    bad_selection("VetoThreshold", veto_bad + "min_pixels = 1\n", {"reduce.threshold: found nothing", "the unit"}),
    bad_selection("VetoAsksNothing", veto_bad + "threshold = 1\n", {"reduce.min_pixels: found nothing", "max_peaks"}),
    bad_selection("MinPixels", veto + "min_pixels = 0 #!\n", {"reduce.min_pixels", "1..4294967295"}),
    bad_selection("MaxBelowMin", veto + "min_pixels = 9\nmax_pixels = 8 #!\n",
                  {"reduce.max_pixels: found 8", "min_pixels, which is 9"}),
    bad_selection("MaxPeaksBelowMin", veto + "min_peaks = 9\nmax_peaks = 8 #!\n",
                  {"reduce.max_peaks: found 8", "min_peaks, which is 9"}),
    bad_selection("RequireAlone", veto + "min_pixels = 9\nrequire = \"any\" #!\n",
                  {"reduce.require", "both min_pixels"}),
    bad_selection("Require", veto + "min_pixels = 9\nmin_peaks = 9\nrequire = \"one\" #!\n",
                  {"reduce.require", "\"any\""}),
    bad_selection("Incomplete", veto + "min_pixels = 9\nincomplete = \"drop\" #!\n",
                  {"reduce.incomplete", "\"judge\""}),
    bad_selection("SnrWithoutPeaks", veto + "min_pixels = 9\nsnr = 5 #!\n", {"reduce.snr", "min_peaks"}),
    bad_selection("Radius", veto + "min_peaks = 1\npeak_radius = 4 #!\n", {"reduce.peak_radius", "1..3"}),
    bad_selection("BackgroundInPeak", veto + "min_peaks = 1\npeak_radius = 2\nbackground_radius = 2 #!\n",
                  {"reduce.background_radius", "3..15"}),
    bad_selection("PeakPixels", veto + "min_peaks = 1\npeak_radius = 1\nmin_peak_pixels = 10 #!\n",
                  {"reduce.min_peak_pixels", "1..9"}),
    bad_selection("VetoOfSparse",
                  sparse + "threshold = 1\n[[reduce]] #!\nkind = \"veto\"\nthreshold = 1\nmin_pixels = 1\n",
                  {"reduce.kind", "sparse pieces", "\"veto\" after \"jungfrau\""}),
    bad_selection("SparseAsksNothing", "[[reduce]] #!\nkind = \"sparse\"\n",
                  {"reduce.threshold: found nothing", "sigma"}),
    bad_selection("SparseNoNoise", "[[reduce]] #!\nkind = \"sparse\"\nsigma = 5\n",
                  {"reduce.rms: found nothing", "\"pedestal\""}),
    bad_selection("SparseRmsAlone", sparse + "threshold = 1\nrms = \"rms.f32\" #!\n", {"reduce.rms", "sigma"}),
    bad_selection("SparseNan", sparse + "threshold = nan #!\n", {"reduce.threshold"}),
    bad_selection("SparseNoFile", sparse + "sigma = 5\nrms = 7 #!\n", {"reduce.rms: found the integer 7", "a file"})};
INSTANTIATE_TEST_SUITE_P(Select, ConfigSelectError, testing::ValuesIn(select_cases), case_name);

}  // namespace
}  // namespace weir::config::test
