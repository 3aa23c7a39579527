// Each key of some configurations, misspelt by a letter: it is that key that is reported, not what is missing without
// it.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "config/run_config.hpp"
#include "texts.hpp"

namespace weir::config::test {
namespace {

const std::string sinks = R"(segment_bytes = "1GiB"
direct = "off"
on_error = "stop"
[[sink]]
kind = "hdf5"
path = "a"
codec = "zstd"
nexus = { title = "t", beam_center = [1, 2] }
[[sink]]
kind = "pcapng"
path = "b"
packets = "incomplete"
seconds = 10
)";

const std::string pixel_chain = R"([[reduce]]
kind = "pedestal"
flag = { offset = 40, bytes = 4, mask = 1, value = 1 }
frames = 10
[[reduce]]
kind = "jungfrau"
pedestal = ["g0.f32", "g1.f32", "g2.f32"]
gain = [41.0, -1.439, -0.1145]
gain_unit = "adu_per_kev"
unit = "photon"
photon_kev = 12.4
storage_cells = 16
storage_cell = { offset = 44, bytes = 2 }
[[reduce]]
kind = "veto"
threshold = 0.5
min_pixels = 1
min_peaks = 1
require = "all"
peak_radius = 2
[[reduce]]
kind = "sparse"
sigma = 5
rms = "rms.f32"
[[reduce]]
kind = "pack"
codec = "bitshuffle-lz4"
level = 1
)";

const std::string multi_event = R"([[reduce]]
kind = "mfp"
version = 1
[reduce.layout]
header_bytes = 16
first_event = { offset = 0, bytes = 8 }
fragments = { offset = 8, bytes = 2 }
length = { offset = 12, bytes = 4, of = "message" }
magic = { offset = 10, bytes = 2, value = 1 }
[[reduce]]
kind = "zstd"
level = 3
)";

const std::string answered = R"(service = "rc"
path_mtu = 1024
peer = [{ qp = 1, address = "10.1.0.1" }, { qp = 2, address = "10.1.0.1" }]
region = { va = 0, rkey = 1, bytes = 4096, stride = 8192, count = 2 }
)";

std::string names(const testing::TestParamInfo<std::pair<std::string, std::string>>& info) {
    return info.param.first;
}

class ConfigMisspelt : public testing::TestWithParam<std::pair<std::string, std::string>> {};

/// Empty if the key at `match` is what is reported, misspelt, where it is and with a guess at what was meant.
std::string wrong_with(const std::string& text, const std::smatch& match) {
    const auto at = static_cast<std::size_t>(match.position(1));
    const std::string key = match[1].str();
    std::string misspelt = text;
    misspelt.insert(at, 1, key.front());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const std::string place = "test.toml:" + std::to_string(line) + ": ";
    const std::string found =
        "\"" + misspelt.substr(at, key.size() + 1) + "\": found an unknown key; did you mean \"" + key + "\"?";
    try {
        parse_config(misspelt, "test.toml");
        return key + " misspelt in line " + std::to_string(line) + " is accepted";
    } catch (const core::UsageError& error) {
        const std::string message = error.what();
        if (message.starts_with(place) && message.find(found) != std::string::npos) return {};
        return "for " + key + ": " + message;
    }
}

TEST_P(ConfigMisspelt, IsReportedAsItIs) {
    const std::string& text = GetParam().second;
    ASSERT_NO_THROW(parse_config(text, "test.toml"));
    static const std::regex key_of(R"((?:^|\n|[{,] )([a-z_0-9]+) = )");
    std::size_t keys = 0;
    for (std::sregex_iterator match(text.begin(), text.end(), key_of); match != std::sregex_iterator(); ++match) {
        EXPECT_EQ(wrong_with(text, *match), "");
        ++keys;
    }
    EXPECT_GT(keys, 10U);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, ConfigMisspelt,
    testing::Values(std::pair{"Pixels", edited(udp_text, {{"[[sink]]", pixel_chain + "[[sink]]"}}) + sinks},
                    std::pair{"MultiEvent", edited(declared_text, {{"[[sink]]", multi_event + "[[sink]]"}})},
                    std::pair{"Answered", edited(roce_text, {{"event =", answered + "event ="}})}),
    names);

}  // namespace
}  // namespace weir::config::test
