// [[reduce]]: what is read, what it prints as, which reducers may stand after which, and the errors.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "case.hpp"
#include "config/reducers/jungfrau.hpp"
#include "config/reducers/mfp.hpp"
#include "config/reducers/pedestal.hpp"
#include "config/reducers/zstd.hpp"

namespace weir::config::test {
namespace {

using reduce::CalibrationConfig;

const std::string jungfrau_keys = R"(kind = "jungfrau"
pedestal = ["g0.f32", "g1.f32", "g2.f32"]
gain = [41.0, -1.439, -0.1145]
)";

std::string with(std::string_view base, const std::string& reducers) {
    return edited(base, {{"[[sink]]", reducers + "[[sink]]"}});
}

std::string jungfrau(const std::string& keys = jungfrau_keys) {
    return with(udp_text, "[[reduce]]\n" + keys);
}

TEST(ConfigReduce, PathsAreRelativeToTheConfigurationsFolder) {
    const RunConfig run = reads_back(jungfrau());
    const auto* options = find_reducer<JungfrauOptions>(run.reduce);
    ASSERT_NE(options, nullptr);
    EXPECT_EQ(options->calibration.pedestal[1], CalibrationConfig::Files{"/etc/weir/g1.f32"});
    EXPECT_EQ(std::get<double>(options->calibration.gain[2]), -0.1145);
    EXPECT_EQ(options->calibration.gain_unit, CalibrationConfig::GainUnit::adu_per_kev);
    EXPECT_EQ(options->output, reduce::PixelType::f32);
    EXPECT_EQ(find_reducer<ZstdOptions>(run.reduce), nullptr);
}

TEST(ConfigReduce, EveryKeyOfJungfrauIsReadAndPrinted) {
    const RunConfig run = reads_back(jungfrau(R"(kind = "jungfrau"
pedestal = [["a0", "b0"], ["/abs/a1", "b1"], "all2"]
gain = ["map 0", -2, ["a", "b"]]
gain_unit = "adu_per_photon"
photon_kev = 12.4
unit = "photon"
output = "u16"
mask = ["m0", "m1"]
storage_cells = 16
storage_cell = { offset = 44, bytes = 2, mask = 0xf000, shift = 12 }
)"));
    const auto* options = find_reducer<JungfrauOptions>(run.reduce);
    ASSERT_NE(options, nullptr);
    const CalibrationConfig& calibration = options->calibration;
    using Files = CalibrationConfig::Files;
    EXPECT_EQ(calibration.pedestal[0], (Files{"/etc/weir/a0", "/etc/weir/b0"}));
    EXPECT_EQ(calibration.pedestal[1], (Files{"/abs/a1", "/etc/weir/b1"}));
    EXPECT_EQ(std::get<Files>(calibration.gain[0]), Files{"/etc/weir/map 0"});
    EXPECT_EQ(std::get<double>(calibration.gain[1]), -2);
    EXPECT_EQ(calibration.gain_unit, CalibrationConfig::GainUnit::adu_per_photon);
    EXPECT_EQ(calibration.unit, CalibrationConfig::Unit::photon);
    EXPECT_EQ(calibration.photon_kev, 12.4);
    EXPECT_EQ(calibration.mask.size(), 2U);
    EXPECT_EQ(calibration.storage_cells, 16U);
    EXPECT_EQ(options->output, reduce::PixelType::u16);
    EXPECT_EQ(options->storage_cell, (wire::DeclaredField{.offset = 44, .bytes = 2, .mask = 0xf000, .shift = 12}));
}

TEST(ConfigReduce, AGainMapHoldsAllGains) {
    for (const auto* gain : {"\"gainMaps.bin\"", "[\"gainMaps.bin\"]"}) {
        const RunConfig run = reads_back(
            jungfrau("kind = \"jungfrau\"\npedestal = [\"0\", \"1\", \"2\"]\ngain = " + std::string(gain) + "\n"));
        EXPECT_EQ(find_reducer<JungfrauOptions>(run.reduce)->calibration.gain_maps,
                  CalibrationConfig::Files{"/etc/weir/gainMaps.bin"});
    }
    const RunConfig run =
        reads_back(jungfrau("kind = \"jungfrau\"\npedestal = [\"0\", \"1\", \"2\"]\ngain = [[\"a\", \"b\"]]\n"));
    EXPECT_EQ(find_reducer<JungfrauOptions>(run.reduce)->calibration.gain_maps.size(), 2U);
}

TEST(ConfigReduce, AGainOfAnUnusualSignIsWarnedOf) {
    const auto warnings = [](const char* gain) {
        return parse_config(jungfrau("kind = \"jungfrau\"\npedestal = [\"0\", \"1\", \"2\"]\ngain = " +
                                     std::string(gain) + "\n"),
                            "/etc/weir/f.toml")
            .warnings;
    };
    EXPECT_TRUE(warnings("[41, -1.4, -0.1]").empty());
    ASSERT_EQ(warnings("[41, 1.4, -0.1]").size(), 1U);
    EXPECT_NE(warnings("[41, 1.4, -0.1]").front().find("1.4 for G1"), std::string::npos);
    EXPECT_EQ(warnings("[-41, 1.4, 0.1]").size(), 3U);
}

ReduceConfig zstd() {
    return {ZstdOptions{}, {"f", 7}};
}
ReduceConfig energies() {
    return {JungfrauOptions{}, {"f", 9}};
}

TEST(ConfigReduce, AChainGoesFromPixelsToEnergiesToCompressedPieces) {
    const std::vector<ReduceConfig> chain{energies(), zstd()};
    EXPECT_FALSE(check_chain(chain, ReduceData::raw_pixels));
    EXPECT_FALSE(check_chain(std::span(chain).first(1), ReduceData::raw_pixels));
    EXPECT_FALSE(check_chain(std::span(chain).last(1), ReduceData::bytes));
    EXPECT_FALSE(check_chain({}, ReduceData::bytes));
}

TEST(ConfigReduce, AReducerThatCannotTakeWhatItGetsIsNamedWithTheOneBeforeIt) {
    const auto error = check_chain(std::vector<ReduceConfig>{zstd(), energies()}, ReduceData::raw_pixels);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->table, 1U);
    EXPECT_EQ(error->found, "\"jungfrau\" where there are compressed pieces from \"zstd\" in line 7");
    const auto twice = check_chain(std::vector<ReduceConfig>{energies(), energies()}, ReduceData::raw_pixels);
    ASSERT_TRUE(twice);
    EXPECT_EQ(twice->found, "a second \"jungfrau\" (the first is in line 9)");
    const auto bytes = check_chain(std::vector<ReduceConfig>{energies()}, ReduceData::bytes);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->found, "\"jungfrau\" where there are bytes as received from the streams");
    EXPECT_EQ(bytes->accepted, "\"jungfrau\" where all streams are of JUNGFRAU modules (format = \"jungfrau\")");
}

TEST(ConfigReduce, EveryKeyOfPedestalIsReadAndPrinted) {
    const RunConfig run = reads_back(with(udp_text, R"([[reduce]]
kind = "pedestal"
flag = { offset = 40, bytes = 4, mask = 0x80000000, shift = 31, value = 1 }
gain = 1
frames = 500
outlier = 4.5
outlier_after = 20
rms_max = 30
interval = 5000
start = "last"
rms = ["rms0", "/abs/rms1"]
snapshots = "pedestals"
snapshot_seconds = 600
keep = false
queue = 8
)"));
    const auto* options = find_reducer<PedestalOptions>(run.reduce);
    ASSERT_NE(options, nullptr);
    EXPECT_EQ(options->dark, PedestalOptions::Dark::flag);
    EXPECT_EQ(options->flag, (wire::DeclaredField{.offset = 40, .bytes = 4, .mask = 0x80000000, .shift = 31}));
    EXPECT_EQ(options->flag_value, 1U);
    EXPECT_EQ(options->gain, 1U);
    EXPECT_EQ(options->frames, 500U);
    EXPECT_EQ(options->outlier, 4.5);
    EXPECT_EQ(options->outlier_after, 20U);
    EXPECT_EQ(options->rms_max, 30);
    EXPECT_EQ(options->interval, 5000U);
    EXPECT_EQ(options->start, PedestalOptions::Start::last);
    EXPECT_EQ(options->rms.back(), "/abs/rms1");
    EXPECT_EQ(options->snapshots, "/etc/weir/pedestals");
    EXPECT_EQ(options->snapshot_seconds, 600U);
    EXPECT_FALSE(options->keep);
    EXPECT_EQ(options->queue, 8U);
}

TEST(ConfigReduce, PedestalsChangeEveryTenDarkFrames) {
    const RunConfig run = reads_back(with(udp_text, "[[reduce]]\nkind = \"pedestal\"\nevery = 100\n"));
    EXPECT_EQ(find_reducer<PedestalOptions>(run.reduce)->interval, 1000U);
    const RunConfig all =
        reads_back(with(udp_text, "[[reduce]]\nkind = \"pedestal\"\nall = true\nframes = 10\nstart = \"p/x.json\"\n"));
    const auto* options = find_reducer<PedestalOptions>(all.reduce);
    EXPECT_EQ(options->interval, 1000U);
    EXPECT_EQ(options->outlier_after, 10U);
    EXPECT_EQ(options->start, PedestalOptions::Start::snapshot);
    EXPECT_EQ(options->start_path, "/etc/weir/p/x.json");
}

TEST(ConfigReduce, PedestalsStandBeforeWhatUsesThem) {
    const std::vector<ReduceConfig> chain{{PedestalOptions{}, {"f", 3}}, energies(), zstd()};
    EXPECT_FALSE(check_chain(chain, ReduceData::raw_pixels));
    const auto behind =
        check_chain(std::vector<ReduceConfig>{energies(), {PedestalOptions{}, {"f", 3}}}, ReduceData::raw_pixels);
    ASSERT_TRUE(behind);
    EXPECT_EQ(behind->found, "\"pedestal\" where there are energies from \"jungfrau\" in line 9");
}

Case bad_pedestal(std::string_view name, const std::string& keys, Parts parts) {
    static std::vector<std::string> kept;
    kept.reserve(64);
    kept.push_back(with(udp_text, "[[reduce]]\nkind = \"pedestal\"\n"));
    return {
        name, kept.back(), {{"[[reduce]]\nkind = \"pedestal\"\n", "[[reduce]]\nkind = \"pedestal\"\n" + keys}}, parts};
}

Case bad_reducer(std::string_view name, const std::string& from, const std::string& to, Parts parts) {
    static std::vector<std::string> kept;  // what the edits are made on
    kept.reserve(64);
    kept.push_back(jungfrau());
    return {name, kept.back(), {{from, to}}, parts};
}

TEST(ConfigReduce, PacketsHaveOneVersionOrOneForEachSource) {
    const std::string mfp = "[[reduce]]\nkind = \"mfp\"\n";
    const auto options = [&](const std::string& keys) {
        return *find_reducer<MfpOptions>(reads_back(with(roce_text, mfp + keys)).reduce);
    };
    EXPECT_EQ(options("version = 7\n").version, 7);
    EXPECT_TRUE(options("").versions.empty());
    EXPECT_EQ(options("versions = [65535, 65535]\nsource_ids = [1, 2]\n").versions,
              (std::vector<std::uint32_t>{65535, 65535}));
    expect_refused(
        {"", roce_text, {{"[[sink]]", mfp + "versions = [1, 2]\nversion = 1 #!\n[[sink]]"}}, {"each source"}});
    expect_refused({"", roce_text, {{"[[sink]]", mfp + "versions = [1, 65536] #!\n[[sink]]"}}, {"0..65535"}});
}

class ConfigReduceError : public ConfigError {};

TEST_P(ConfigReduceError, NamesLineKeyFoundAndAccepted) {
    expect_refused(GetParam());
}

const std::vector<Case> reducers_cases{
    bad_reducer("NoPedestal", "[[reduce]]\nkind = \"jungfrau\"\npedestal = [\"g0.f32\", \"g1.f32\", \"g2.f32\"]\n",
                "[[reduce]] #!\nkind = \"jungfrau\"\n", {"reduce.pedestal: found nothing"}),
    bad_reducer("PedestalOfTwo", "\"g1.f32\", \"g2.f32\"]", "\"g1.f32\"] #!", {"reduce.pedestal", "three entries"}),
    bad_reducer("PedestalNumber", "\"g1.f32\", \"g2.f32\"]", "2700, \"g2.f32\"] #!",
                {"reduce.pedestal: found the integer 2700", "a file"}),
    bad_reducer("PedestalEmptyList", "\"g1.f32\", \"g2.f32\"]", "[], \"g2.f32\"] #!",
                {"reduce.pedestal", "a file for each"}),
    bad_reducer("GainOfTwo", "-1.439, -0.1145]", "-1.439] #!", {"reduce.gain", "three entries"}),
    bad_reducer("FragmentsOfFloats", "41.0, -1.439, -0.1145]", "41.0, -1.439, -0.1145]\nat = \"fragment\" #!",
                {"reduce.at", "f16"}),
    bad_reducer("GainMisspelt", "gain = [41.0, -1.439, -0.1145]", "gian = [41.0, -1.439, -0.1145] #!",
                {"reduce.\"gian\": found an unknown key; did you mean \"gain\"?"}),
    bad_reducer("KindMisspelt", "kind = \"jungfrau\"", "knid = \"jungfrau\" #!",
                {"reduce.\"knid\": found an unknown key; did you mean \"kind\"?"}),
    bad_reducer("GainZero", "41.0, -1.439, -0.1145]", "0, -1.439, -0.1145] #!", {"reduce.gain", "1e-6"}),
    bad_reducer("GainNan", "41.0, -1.439, -0.1145]", "nan, -1.439, -0.1145] #!", {"reduce.gain", "1e-6"}),
    bad_reducer("GainFlag", "41.0, -1.439, -0.1145]", "true, -1.439, -0.1145] #!", {"reduce.gain", "a file"}),
    bad_reducer("Units", "[[reduce]]", "[[reduce]] #!\nunit = \"photon\"",
                {"reduce.photon_kev: found nothing", "gain_unit"}),
    bad_reducer("Output", "pedestal =", "output = \"f64\" #!\npedestal =", {"reduce.output", "\"f16\""}),
    bad_reducer("PhotonEnergy", "pedestal =", "photon_kev = 0 #!\npedestal =", {"reduce.photon_kev", "0.001"}),
    bad_reducer("CellsZero", "pedestal =", "storage_cells = 0 #!\npedestal =", {"reduce.storage_cells", "1..64"}),
    bad_reducer("CellFieldAlone", "pedestal =", "storage_cell = { offset = 40, bytes = 4 } #!\npedestal =",
                {"reduce.storage_cell", "storage_cells"}),
    bad_reducer("CellFieldOutside",
                "pedestal =", "storage_cells = 2\nstorage_cell = { offset = 46, bytes = 4 } #!\npedestal =",
                {"reduce.storage_cell.offset", "48 bytes"}),
    bad_reducer("Level", "pedestal =", "level = 3 #!\npedestal =", {"reduce.\"level\"", "an unknown key"}),
    Case{"NotPixels",
         declared_text,
         {{"[[sink]]", "[[reduce]] #!\n" + jungfrau_keys + "[[sink]]"}},
         {"reduce.kind", "bytes as received", "format = \"jungfrau\""}}};
INSTANTIATE_TEST_SUITE_P(Reducers, ConfigReduceError, testing::ValuesIn(reducers_cases), case_name);

const std::vector<Case> pedestals_cases{
    Case{"NoneDark",
         udp_text,
         {{"[[sink]]", "[[reduce]] #!\nkind = \"pedestal\"\n[[sink]]"}},
         {"reduce.every: found nothing", "flag = {", "all = true"}},
    bad_pedestal("TwoWays", "every = 10 #!\nall = true\n", {"reduce.every: found 2 ways"}),
    bad_pedestal("FlagOutside", "flag = { offset = 46, bytes = 4 } #!\n", {"reduce.flag.offset", "48 bytes"}),
    bad_pedestal("FlagKey", "flag = { offset = 40, bytes = 4, valu = 1 } #!\n", {"reduce.flag", "\"valu\""}),
    bad_pedestal("Gain", "all = true\ngain = 3 #!\n", {"reduce.gain", "0..2"}),
    bad_pedestal("IntervalTooShort", "every = 100\ninterval = 50 #!\n", {"reduce.interval", "100.."}),
    bad_pedestal("IntervalTooLong", "all = true\ninterval = 65536 #!\n", {"reduce.interval", "1..65535"}),
    bad_pedestal("LastOfNothing", "all = true\nstart = \"last\" #!\n", {"reduce.start", "snapshots = \"DIR\""}),
    bad_pedestal("TwoRms", "all = true\nstart = \"a.json\"\nrms = \"b\" #!\n", {"reduce.rms", "snapshot"})};
INSTANTIATE_TEST_SUITE_P(Pedestals, ConfigReduceError, testing::ValuesIn(pedestals_cases), case_name);

}  // namespace
}  // namespace weir::config::test
