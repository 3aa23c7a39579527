// Which pixels of which module a source sends, as it follows from the streams; and what reducers refuse.
#include "stages/reduce_setup.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../config/texts.hpp"

namespace weir::stages::test {
namespace {

using config::test::edited;
using config::test::Edits;
using config::test::udp_text;

const std::string reducer = R"([[reduce]]
kind = "jungfrau"
pedestal = ["g0.f32", "g1.f32", "g2.f32"]
gain = [41.0, -1.439, -0.1145]
output = "u16"
unit = "photon"
photon_kev = 12.4
)";

config::RunConfig config_of(const Edits& edits) {
    Edits all = edits;
    all.emplace_back("[[sink]]", reducer + "[[sink]]");
    return config::parse_config(edited(udp_text, all), "test.toml");
}

std::vector<reduce::PixelSource> sources_of(const Edits& edits) {
    return ReduceSetup(config_of(edits)).sources();
}

void refuses(const Edits& edits, const std::string& words) {
    const config::RunConfig config = config_of(edits);
    try {
        const ReduceSetup setup(config);
        ADD_FAILURE() << "accepted; expected: " << words;
    } catch (const core::UsageError& error) {
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
        EXPECT_EQ(std::string(error.what()).find("test.toml:"), 0U) << error.what();
    }
}

using reduce::PixelSource;

TEST(ReduceSetup, ASourceIsAModule) {
    EXPECT_EQ(sources_of({}), (std::vector<PixelSource>{{.module = 0}, {.module = 1}}));
    EXPECT_EQ(sources_of({{"format = \"jungfrau\"", "format = \"jungfrau\"\nrows = 256"}}),
              (std::vector<PixelSource>{{.module = 0, .first_row = 128, .rows = 256},
                                        {.module = 1, .first_row = 128, .rows = 256}}));
}

TEST(ReduceSetup, OrTheHalfOfOneWithTwoInterfaces) {
    EXPECT_EQ(sources_of({{"format = \"jungfrau\"", "format = \"jungfrau\"\ninterfaces = 2"}}),
              (std::vector<PixelSource>{{.module = 0, .first_row = 0, .rows = 256},
                                        {.module = 0, .first_row = 256, .rows = 256}}));
    EXPECT_EQ(sources_of({{"format = \"jungfrau\"", "format = \"jungfrau\"\ninterfaces = 2\nrows = 64"}}),
              (std::vector<PixelSource>{{.module = 0, .first_row = 224, .rows = 32},
                                        {.module = 0, .first_row = 256, .rows = 32}}));
    // Which half a source is, is in its header where its address tells it from others.
    const Edits by_address{{"format = \"jungfrau\"",
                            "format = \"jungfrau\"\ninterfaces = 2\nsource_by = \"address\"\n"
                            "src = [\"10.0.0.1\", \"10.0.0.2\"]"}};
    EXPECT_EQ(sources_of(by_address),
              (std::vector<PixelSource>{{.module = 0, .first_row = 0, .rows = 256, .interface_in_header = true},
                                        {.module = 0, .first_row = 0, .rows = 256, .interface_in_header = true}}));
    const Edits by_header{{"format = \"jungfrau\"",
                           "format = \"jungfrau\"\ninterfaces = 2\nsource_by = \"header\"\nsource_ids = [7, 9]"}};
    EXPECT_EQ(sources_of(by_header), (std::vector<PixelSource>{{.module = 0}, {.module = 1}}));
}

TEST(ReduceSetup, ModulesGoOnOverStreams) {
    const std::string second =
        "[[stream]]\nport = \"det0\"\ntransport = \"udp\"\nudp_dst = 60001\nformat = \"jungfrau\"\n";
    const Edits two{{"[events]\nsources = 2", second + "[events]\nsources = 3"}};
    EXPECT_EQ(sources_of(two), (std::vector<PixelSource>{{.module = 0}, {.module = 1}, {.module = 2}}));
    EXPECT_EQ(ReduceSetup(config_of(two)).payload_json()["modules"], 3);
    refuses({{"[events]\nsources = 2", second + "rows = 256\n[events]\nsources = 3"}}, "different numbers of rows");
    refuses({{"format = \"jungfrau\"", "format = \"jungfrau\"\ninterfaces = 2"},
             {"[50001, 50002]", "[50001, 50002, 50003]"}},
            "interfaces = 2 and 3 sources");
}

TEST(ReduceSetup, SaysWhatThePayloadIs) {
    const ReduceSetup setup(config_of({}));
    EXPECT_TRUE(setup.needs_version_2());
    EXPECT_EQ(setup.payload_json(), (nlohmann::json{{"content", "pixels"},
                                                    {"type", "u16"},
                                                    {"unit", "photon"},
                                                    {"rows", 512},
                                                    {"columns", 1024},
                                                    {"modules", 2},
                                                    {"sources_per_module", 1},
                                                    {"photon_kev", 12.4},
                                                    {"codec", "none"}}));
    const ReduceSetup plain(config::parse_config(udp_text, "test.toml"));
    EXPECT_FALSE(plain.needs_version_2());
    EXPECT_TRUE(plain.payload_json().is_null());
}

TEST(ReduceSetup, AddsUpWhatReducersHold) {
    constexpr std::uint64_t mib = 1U << 20U;
    const config::ReduceMemory plain = ReduceSetup(config_of({})).memory(2);
    EXPECT_EQ(plain.calibration_bytes, 24 * mib);  // two modules, three gains, pedestal and factor
    EXPECT_EQ(plain.sum(), plain.calibration_bytes);

    const std::string live = "[[reduce]]\nkind = \"pedestal\"\nall = true\nqueue = 9\n";
    const std::string noise = "[[reduce]]\nkind = \"sparse\"\nsigma = 5\n";
    const auto memory = [&](const std::string& sparse) {
        const std::string chain =
            live + config::test::edited(reducer, {{"output", "storage_cells = 4\noutput"}}) + sparse;
        const config::RunConfig config =
            config::parse_config(edited(udp_text, {{"[[sink]]", chain + "[[sink]]"}}), "test.toml");
        return ReduceSetup(config).memory(2);
    };
    const config::ReduceMemory all = memory(noise);
    EXPECT_EQ(all.calibration_bytes, (4 + 1) * 12 * mib);  // pedestals by storage cell, gains for all of them
    EXPECT_EQ(all.noise_bytes, 0U) << "that of the pedestals";
    EXPECT_EQ(all.pedestal_bytes, 2 * 4 * 512 * 1024 * 68U);
    EXPECT_EQ(all.dark_frame_bytes, 2U * 5 * 2 * mib);  // five of nine for each of two workers, two modules each
    EXPECT_EQ(memory(noise + "rms = \"rms.f32\"\n").noise_bytes, 2U * 4 * 2 * mib);
    EXPECT_EQ(ReduceSetup(config::parse_config(udp_text, "test.toml")).memory(2).sum(), 0U);
}

TEST(ReduceSetup, NamesTheReducerAndTheFileThatCannotBeRead) {
    ReduceSetup setup(config_of({}));
    try {
        setup.load();
        FAIL() << "loaded files that are not there";
    } catch (const core::UsageError& error) {
        const std::string message = error.what();
        EXPECT_EQ(message.find("test.toml:11: [[reduce]] jungfrau: pedestal[0]: "), 0U) << message;
        EXPECT_NE(message.find("g0.f32: cannot be read"), std::string::npos) << message;
    }
}

}  // namespace
}  // namespace weir::stages::test
