// [[reduce]] kind = "pack": what is read, what follows from the rest of the configuration, and the errors.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "case.hpp"
#include "config/reducers/jungfrau.hpp"
#include "config/reducers/pack.hpp"
#include "config/reducers/zstd.hpp"

namespace weir::config::test {
namespace {

using reduce::pack::Codec;

std::string packed(const std::string& keys, std::string_view base = udp_text) {
    return edited(base, {{"[[sink]]", "[[reduce]]\nkind = \"pack\"\n" + keys + "[[sink]]"}});
}

std::string energies(const std::string& output) {
    return "[[reduce]]\nkind = \"jungfrau\"\npedestal = [\"0\", \"1\", \"2\"]\ngain = [41.0, -1.4, -0.1]\noutput = \"" +
           output + "\"\n";
}

std::string behind_energies(const std::string& output, const std::string& keys) {
    return edited(udp_text, {{"[[sink]]", energies(output) + "[[reduce]]\nkind = \"pack\"\n" + keys + "[[sink]]"}});
}

PackOptions read(const std::string& text) {
    const RunConfig run = reads_back(text);
    const auto* options = find_reducer<PackOptions>(run.reduce);
    return options == nullptr ? PackOptions{} : *options;
}

TEST(ConfigPack, EveryKeyIsReadAndPrinted) {
    const PackOptions usual = read(packed(""));
    EXPECT_EQ(usual, (PackOptions{Codec::bitshuffle_lz4, 1, 2, false}));
    EXPECT_EQ(read(packed("codec = \"bitshuffle-zstd\"\nlevel = 7\nelement_bytes = 4\n")),
              (PackOptions{Codec::bitshuffle_zstd, 7, 4, false}));
    EXPECT_EQ(read(packed("codec = \"bitshuffle-zstd\"\n")), (PackOptions{Codec::bitshuffle_zstd, 1, 2, false}));
    EXPECT_EQ(read(packed("codec = \"lz4\"\nlevel = -20\n")), (PackOptions{Codec::lz4, -20, 0, false}));
    EXPECT_EQ(read(packed("codec = \"zstd\"\n")), (PackOptions{Codec::zstd, 1, 0, false}));
    EXPECT_EQ(read(packed("codec = \"bits\"\n")), (PackOptions{Codec::bits, 0, 2, false}));
    EXPECT_EQ(read(packed("element_bytes = 8\n", declared_text)).element_bytes, 8U);
}

TEST(ConfigPack, ElementsAreThoseOfTheOutputBeforeIt) {
    EXPECT_EQ(read(behind_energies("f32", "")).element_bytes, 4U);
    EXPECT_EQ(read(behind_energies("f16", "element_bytes = 2\n")).element_bytes, 2U);
    EXPECT_EQ(read(behind_energies("i16", "codec = \"bits\"\n")), (PackOptions{Codec::bits, 0, 2, true}));
    EXPECT_EQ(read(behind_energies("u16", "codec = \"bits\"\n")), (PackOptions{Codec::bits, 0, 2, false}));
}

TEST(ConfigPack, SaysHowAWorkerPacks) {
    const auto of = [](const std::string& text) { return packing(parse_config(text, "test.toml").reduce); };
    EXPECT_FALSE(of(std::string(udp_text)));
    const auto zstd = of(edited(udp_text, {{"[[sink]]", "[[reduce]]\nkind = \"zstd\"\nlevel = 5\n[[sink]]"}}));
    ASSERT_TRUE(zstd);
    EXPECT_EQ(zstd->codec, Codec::zstd);
    EXPECT_EQ(zstd->level, 5);
    const auto shuffled = of(behind_energies("f32", ""));
    ASSERT_TRUE(shuffled);
    EXPECT_EQ(shuffled->codec, Codec::bitshuffle_lz4);
    EXPECT_EQ(shuffled->element_bytes, 4U);
}

class ConfigPackError : public ConfigError {};

TEST_P(ConfigPackError, NamesLineKeyFoundAndAccepted) {
    expect_refused(GetParam());
}

Case bad_pack(std::string_view name, std::string_view base, const std::string& keys, Parts parts,
              const std::string& before = "", const std::string& first = "[[reduce]]\n") {
    return {name, base, {{"[[sink]]", before + first + "kind = \"pack\"\n" + keys + "[[sink]]"}}, parts};
}

const std::vector<Case> pack_cases{
    bad_pack("Codec", udp_text, "codec = \"gzip\" #!\n",
             {"reduce.codec: found the string \"gzip\"", "\"bitshuffle-lz4\""}),
    bad_pack("LevelOfLz4", udp_text, "level = 10 #!\n", {"reduce.level: found the integer 10", "1..9"}),
    bad_pack("LevelOfZstd", udp_text, "codec = \"zstd\"\nlevel = 0 #!\n",
             {"reduce.level: found the integer 0", "1..19"}),
    bad_pack("LevelOfBits", udp_text, "codec = \"bits\"\nlevel = 1 #!\n", {"reduce.level", "\"bits\" has no levels"}),
    bad_pack("ElementsOfZstd", udp_text, "codec = \"zstd\"\nelement_bytes = 2 #!\n",
             {"reduce.element_bytes", "does not ask"}),
    bad_pack("ElementsOfThree", udp_text, "element_bytes = 3 #!\n",
             {"reduce.element_bytes: found the integer 3", "1, 2, 4 or 8"}),
    bad_pack("ElementsUnknown", declared_text, "", {"reduce.element_bytes: found nothing", "1, 2, 4 or 8"}, "",
             "[[reduce]] #!\n"),
    bad_pack("ElementsOfAnotherType", udp_text, "element_bytes = 2\n",
             {"reduce.element_bytes: found the integer 2", "4, as the output \"f32\""}, energies("f32"),
             "[[reduce]] #!\n"),
    bad_pack("BitsOfFloats", udp_text, "codec = \"bits\"\n",
             {"reduce.codec", "\"bits\" after \"jungfrau\"", "whole numbers"}, energies("f16"), "[[reduce]] #!\n"),
    bad_pack("Twice", udp_text, "[[reduce]] #!\nkind = \"zstd\"\n", {"reduce.kind", "\"pack\" in line"})};
INSTANTIATE_TEST_SUITE_P(Pack, ConfigPackError, testing::ValuesIn(pack_cases), case_name);

}  // namespace
}  // namespace weir::config::test
