// Where a mistake is: each kind of place that a message can name, with its file, its line and its key.
#include <gtest/gtest.h>

#include "config/run_config.hpp"
#include "texts.hpp"

namespace weir::config::test {
namespace {

struct Placed {
    std::string name;
    std::string text;
    std::string said;  // the message begins with it
};

void PrintTo(const Placed& placed, std::ostream* out) {
    *out << placed.name;
}

class ConfigPlace : public testing::TestWithParam<Placed> {};

TEST_P(ConfigPlace, IsFileLineAndKey) {
    const auto& [name, text, said] = GetParam();
    try {
        parse_config(text, "lab/beam 7.toml");
        FAIL() << "accepted:\n" << text;
    } catch (const core::UsageError& error) {
        EXPECT_EQ(std::string_view(error.what()).substr(0, said.size()), said) << error.what();
    }
}

std::string udp(const Edits& edits) {
    return edited(udp_text, edits);
}

const std::string second_port = "[[port]]\nname = \"det1\"\ndevice = \"net_null1\"\n";  // lines 4 to 6
const std::string peers = "qp = [17, 18]\nservice = \"rc\"\npeer = [\n{ qp = 33, address = \"10.1.0.10\" },\n";
const std::string layout = "[[reduce]]\nkind = \"mfp\"\n[reduce.layout]\nheader_bytes = 16\n";

INSTANTIATE_TEST_SUITE_P(
    Lines, ConfigPlace,
    testing::Values(
        Placed{"ATopKey", "# one\n\n" + udp({{"[[port]]", "name = 3\n[[port]]"}}), "lab/beam 7.toml:3: name: "},
        Placed{"AKeyOfTheFirstOfTwoTables", udp({{"[[stream]]", second_port + "[[stream]]"}, {"\"det0\"", "0"}}),
               "lab/beam 7.toml:2: port.name: "},
        Placed{"AKeyOfTheSecondOfTwoTables", udp({{"[[stream]]", second_port + "mtu = 1\n[[stream]]"}}),
               "lab/beam 7.toml:7: port.mtu: "},
        Placed{"AMissingKeyOfTheSecondOfTwoTables",
               udp({{"[[stream]]", second_port + "[[stream]]"}, {"device = \"net_null1\"\n", ""}}),
               "lab/beam 7.toml:4: port.device: found nothing, it is required"},
        Placed{"TheFirstOfTwoTablesThatAreWrong",
               edited(cluster_text, {{"name = \"det0\"", "name = \"det2\""}, {"\"det1\"\nnode", "\"det0\"\nnode"}}),
               "lab/beam 7.toml:26: stream.port: "},
        Placed{"AMissingTable", udp({{"[events]\nsources = 2\n", ""}}), "lab/beam 7.toml:1: events.sources: "},
        Placed{"AMissingKeyBesideADottedOne",
               "\nevents.window = 8\nevents.horizon = 16\n" + udp({{"[events]\nsources = 2\n", ""}}),
               "lab/beam 7.toml:2: events.sources: found nothing, it is required"},
        Placed{"ADottedKey", "events.sources = 2\nevents.window = 0\n" + udp({{"[events]\nsources = 2\n", ""}}),
               "lab/beam 7.toml:2: events.window: "},
        Placed{"AKeyAfterLinesOfWindows", udp({{"name = \"det0\"\n", "name = \"det0\"\r\n\r\nmtu = 1\r\n"}}),
               "lab/beam 7.toml:4: port.mtu: "}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Values, ConfigPlace,
    testing::Values(
        Placed{"AKeyOfAnInlineTable", edited(declared_text, {{"offset = 8, bytes = 4", "offset = 8, bytes = 9"}}),
               "lab/beam 7.toml:5: format.index.bytes: "},
        Placed{"AMissingKeyOfAnInlineTable", edited(declared_text, {{"offset = 8, bytes = 4", "offset = 8"}}),
               "lab/beam 7.toml:5: format.index.bytes: found nothing, it is required"},
        Placed{"AKeyOfATableInATable", edited(declared_text, {{"[[sink]]", layout + "magic = 1\n[[sink]]"}}),
               "lab/beam 7.toml:23: reduce.layout.magic: "},
        Placed{"AMissingKeyOfADottedTableInATable",
               edited(declared_text, {{"[[sink]]", layout + "magic.offset = 0\n[[sink]]"}}),
               "lab/beam 7.toml:23: reduce.layout.magic.bytes: found nothing, it is required"},
        Placed{"AnElementOfAnArrayOverSeveralLines", udp({{udp_dst, "udp_dst = [\n50001,  # one\n\n0,\n]"}}),
               "lab/beam 7.toml:10: stream.udp_dst: found the integer 0"},
        Placed{"AnArrayOverSeveralLinesAsAWhole", udp({{udp_dst, "udp_dst = [\n50001,\n50001\n]"}}),
               "lab/beam 7.toml:7: stream.udp_dst: found 50001 twice"},
        Placed{"ATableInAnArrayOverSeveralLines",
               edited(roce_text, {{"qp = [17, 18]\n", peers + "{ address = \"10.1.0.11\" }]\n"}}),
               "lab/beam 7.toml:11: stream.peer.qp: found nothing, it is required"},
        Placed{"AKeyOfATableInAnArrayOverSeveralLines",
               edited(roce_text, {{"qp = [17, 18]\n", peers + "{ qp = 34, address = 1 }]\n"}}),
               "lab/beam 7.toml:11: stream.peer.address: "},
        Placed{"ATextOverSeveralLines", udp({{"\"net_null0\"", "\"\"\"net\n_null0\"\"\""}}),
               "lab/beam 7.toml:3: port.device: "},
        Placed{"AKeyAfterAnArrayOverSeveralLines", udp({{udp_dst, "udp_dst = [\n50001,\n50002\n]\nrows = 0"}}),
               "lab/beam 7.toml:11: stream.rows: "}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Others, ConfigPlace,
    testing::Values(
        Placed{"AnUnknownTopKey", udp({{"[[port]]", "\nnmae = 1\n[[port]]"}}),
               "lab/beam 7.toml:2: \"nmae\": found an unknown key"},
        Placed{"AnUnknownTable", udp({{"[events]", "[evnts]"}}), "lab/beam 7.toml:9: \"evnts\": found an unknown key"},
        Placed{"AnUnknownKeyOfATable", udp({{"sources = 2", "sources = 2\nwindw = 3"}}),
               "lab/beam 7.toml:11: events.\"windw\": found an unknown key"},
        Placed{"AnUnknownKeyOfAnInlineTable", edited(declared_text, {{"bytes = 4 }", "bytes = 4, size = 1 }"}}),
               "lab/beam 7.toml:5: format.index.\"size\": found an unknown key"},
        Placed{"ATableOfTheWrongKind", udp({{"[[port]]", "[port]"}}), "lab/beam 7.toml:1: port: found a table"},
        Placed{"ANameThatIsTaken", udp({{"[[stream]]", second_port + "[[stream]]"}, {"\"det1\"", "\"det0\""}}),
               "lab/beam 7.toml:5: port.name: found \"det0\", the name of the port at line 1"},
        Placed{"ASumOfOtherTables", udp({{"sources = 2", "sources = 3"}}), "lab/beam 7.toml:10: events.sources: "},
        Placed{"AKeyThatIsGivenTwice", udp({{"sources = 2", "sources = 2\nsources = 3"}}),
               "lab/beam 7.toml:11: not valid TOML (column 1"},
        Placed{"WhatIsNotToml", udp({{"sources = 2", "sources = = 2"}}),
               "lab/beam 7.toml:10: not valid TOML (column 11): "}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weir::config::test
