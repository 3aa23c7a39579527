// The keys of PSI's detectors in [[stream]]: what they give, how they are printed, and every way in which they are
// wrong_stream.
#include "case.hpp"

namespace weir::config::test {
namespace {

TEST(ConfigDetector, KeysReachTheDecoder) {
    const RunConfig run = parse_config(udp_with("eiger", "bit_depth = 12\ntengiga = false\nrows = 128"), "t");
    const wire::FormatContext eiger = format_entry(run.streams[0]).make_context(format_options(run, run.streams[0]));
    EXPECT_EQ(eiger.payload_bytes, 1024U);
    EXPECT_EQ(eiger.message_bytes, 128U * 512 * 12 / 8);
    const RunConfig other = parse_config(udp_with("moench", "interfaces = 2\nrows = 16"), "t");
    const wire::FormatContext moench =
        format_entry(other.streams[0]).make_context(format_options(other, other.streams[0]));
    EXPECT_EQ(moench.message_bytes, 8U * 800);
    EXPECT_EQ(moench.sls.lane_by, wire::LaneBy::datagram);
}

TEST(ConfigDetector, InterfacesAreToldApartAsTheSourcesAre) {
    const auto context = [](const std::string& keys) {
        const RunConfig run = parse_config(udp_with("jungfrau", "interfaces = 2\n" + keys), "t");
        return format_entry(run.streams[0]).make_context(format_options(run, run.streams[0]));
    };
    EXPECT_EQ(context("").sls.lane_by, wire::LaneBy::none);
    EXPECT_EQ(context("rows = 64").sls.lane_by, wire::LaneBy::datagram);
    EXPECT_EQ(context("rows = 64\nsource_by = \"address\"\nsrc = [\"10.0.0.1\", \"10.0.0.2\"]").sls.lane_by,
              wire::LaneBy::row);
    // One module id for both interfaces: they are one source, with all rows.
    const wire::FormatContext joined = context("source_by = \"header\"\nsource_ids = [7, 8]");
    EXPECT_EQ(joined.sls.lane_by, wire::LaneBy::row);
    EXPECT_EQ(joined.message_bytes, 1U << 20);
}

TEST(ConfigDetector, PrintedKeysReadBackTheSame) {
    for (const auto& [format, keys] :
         {std::pair{"eiger", "bit_depth = 4\ntengiga = false\nrows = 64"}, std::pair{"eiger", ""},
          std::pair{"moench", "interfaces = 2\nrows = 16"}, std::pair{"jungfrau", "rows = 8"}}) {
        const RunConfig run = parse_config(udp_with(format, keys), "t");
        EXPECT_TRUE(run == parse_config(print_config(run), "printed")) << print_config(run);
        EXPECT_FALSE(run == parse_config(udp_with("ejfat", ""), "t"));
    }
    EXPECT_FALSE(parse_config(udp_with("jungfrau", "rows = 8"), "t") == parse_config(udp_with("jungfrau", ""), "t"));
}

TEST(ConfigDeclaredTotal, NumberOrField) {
    const auto total = [](const std::string& value) {
        return parse_config(edited(declared_text, {{"packets = 64", "total = " + value}}), "t");
    };
    for (const auto& [value, bytes] : {std::pair{"12800", 12800U}, std::pair{"\"12KiB\"", 12288U}}) {
        const RunConfig run = total(value);
        EXPECT_EQ(run.formats[0].total_bytes, bytes);
        EXPECT_FALSE(run.formats[0].total);
        EXPECT_TRUE(run == parse_config(print_config(run), "printed"));
    }
    EXPECT_FALSE(total("12800") == total("12801"));
    EXPECT_FALSE(total("{ offset = 8, bytes = 4 }").formats[0].total_bytes);
    // The bound on messages follows a total that is larger than it.
    EXPECT_EQ(total("\"32MiB\"").streams[0].max_message_bytes, 32U << 20);
}

class ConfigDetectorError : public ConfigError {};

TEST_P(ConfigDetectorError, NamesLineKeyFoundAndAccepted) {
    expect_refused(GetParam());
}

const std::vector<Case> detector_cases{
    wrong_stream("RowsStep", "jungfrau", "rows = 100 #!",
                 {"stream.rows", "rows = 100", "8 to 512 rows, in steps of 8"}),
    wrong_stream("RowsZero", "jungfrau", "rows = 0 #!", {"stream.rows", "steps of 8"}),
    wrong_stream("RowsTooMany", "jungfrau", "rows = 1024 #!", {"stream.rows", "8 to 512"}),
    wrong_stream("RowsText", "jungfrau", "rows = \"all\" #!", {"stream.rows", "an integer"}),
    wrong_stream("RowsOfMoench", "moench", "rows = 200 #!", {"stream.rows", "16 to 400 rows, in steps of 16"}),
    wrong_stream("RowsOfEiger", "eiger", "rows = 6 #!", {"stream.rows", "steps of 4 with pixels of 16 bits"}),
    wrong_stream("RowsOfEigerTwelveBits", "eiger", "bit_depth = 12\nrows = 8 #!", {"stream.rows", "steps of 16"}),
    wrong_stream("RowsElsewhere", "ejfat", "rows = 8 #!", {"stream.rows", "\"jungfrau\", \"moench\" or \"eiger\""}),
    wrong_stream("BitDepth", "eiger", "bit_depth = 10 #!", {"stream.bit_depth", "4, 8, 12, 16 or 32"}),
    wrong_stream("BitDepthElsewhere", "jungfrau", "bit_depth = 16 #!", {"stream.bit_depth", "format = \"eiger\""}),
    wrong_stream("Tengiga", "eiger", "tengiga = 1 #!", {"stream.tengiga", "true or false"}),
    wrong_stream("TengigaElsewhere", "moench", "tengiga = true #!", {"stream.tengiga", "format = \"eiger\""}),
    wrong_stream("InterfacesOfEiger", "eiger", "interfaces = 2 #!",
                 {"stream.interfaces", "\"jungfrau\" or \"moench\""})};
INSTANTIATE_TEST_SUITE_P(Stream, ConfigDetectorError, testing::ValuesIn(detector_cases), case_name);

Case total(std::string_view name, const std::string& text, Parts parts) {
    return {name, declared_text, {{"packets = 64", text}}, parts};
}

const std::vector<Case> declared_total_cases{
    total("Zero", "total = 0 #!", {"format.total", "1 to 4294967295"}),
    total("Boolean", "total = true #!", {"format.total", "a field", "a number of bytes"}),
    total("Word", "total = \"all\" #!", {"format.total", "\"16MiB\""}),
    total("AndPackets", "packets = 64\ntotal = 12800 #!", {"format.total: found both packets and total"})};
INSTANTIATE_TEST_SUITE_P(DeclaredTotal, ConfigDetectorError, testing::ValuesIn(declared_total_cases), case_name);

}  // namespace
}  // namespace weir::config::test
