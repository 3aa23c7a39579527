// What a good configuration becomes: structs, sources, profiles, and the printed form that reads back the same.
#include "config/run_config.hpp"
#include "config/sinks/events.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "case.hpp"
#include "source_root.hpp"

namespace weir::config {
namespace {

using test::declared_text;
using test::edited;
using test::roce_text;
using test::udp_text;

const std::filesystem::path source_root = weir::test::source_root();

class ConfigFiles : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "weir-config-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::filesystem::path write(const std::string& name, const std::string& text) {
        std::ofstream(folder_ / name) << text;
        return folder_ / name;
    }
    std::filesystem::path folder_;
};

std::string message_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const core::UsageError& error) {
        return error.what();
    }
    return "nothing was thrown";
}

TEST(Config, FillsInTheDefaults) {
    const RunConfig run = parse_config(udp_text, "test.toml");
    EXPECT_EQ(run.name, "run");
    ASSERT_EQ(run.ports.size(), 1U);
    EXPECT_EQ(run.ports[0].queues, 1);
    EXPECT_EQ(run.ports[0].mtu, 9000);
    EXPECT_EQ(run.ports[0].devargs(), "net_null0");
    EXPECT_FALSE(run.ports[0].ipv4());
    ASSERT_EQ(run.streams.size(), 1U);
    const StreamConfig& stream = run.streams[0];
    EXPECT_EQ(stream.source_by, SourceBy::port);
    EXPECT_EQ(stream.event, EventBy::format);
    EXPECT_EQ(stream.own.interfaces, 1);
    EXPECT_EQ(stream.max_message_bytes, 16U << 20);
    EXPECT_EQ(stream.place.line, 4U);
    EXPECT_EQ(run.events.sources, 2U);
    EXPECT_EQ(run.events.memory_bytes, 1U << 30);
    EXPECT_EQ(run.events.timeout_ms, 500U);
    EXPECT_FALSE(run.events.window);
    EXPECT_EQ(run.events.incomplete, IncompleteMode::keep);
    EXPECT_EQ(run.events.assembly, AssemblyMode::automatic);
    EXPECT_EQ(run.sinks.at(0).path, "runs/{name}-{run:06}");
    EXPECT_TRUE(run.lcores.rx.empty());
    EXPECT_TRUE(run.warnings.empty());
}

TEST(Config, NumbersSourcesInOrderOfAppearance) {
    const RunConfig run = parse_config(R"(
[[port]]
name = "a"
device = "net_null0"
[[port]]
name = "b"
device = "net_null1"
[[stream]]
port = "b"
transport = "udp"
udp_dst = [50002, "50010-50011", 50001]
format = "ejfat"
[[stream]]
port = "a"
transport = "roce"
qp = [0x11, 9]
format = "message"
[[stream]]
port = "a"
transport = "udp"
udp_dst = 7
source_by = "address"
src = ["10.0.0.9", "10.0.0.1"]
format = "ejfat"
[[stream]]
port = "a"
transport = "udp"
udp_dst = 8
source_by = "header"
source_ids = [5, "1-2"]
format = "ejfat"
[events]
sources = 11
[[sink]]
kind = "null"
)",
                                       "test.toml");
    std::vector<std::string> labels;
    std::vector<std::uint32_t> keys;
    for (const SourceConfig& source : run.sources) {
        labels.push_back(source.label);
        keys.push_back(source.key);
    }
    EXPECT_EQ(labels,
              (std::vector<std::string>{"b udp 50002", "b udp 50010", "b udp 50011", "b udp 50001", "a qp 0x11",
                                        "a qp 0x9", "a src 10.0.0.9", "a src 10.0.0.1", "a id 5", "a id 1", "a id 2"}));
    EXPECT_EQ(keys, (std::vector<std::uint32_t>{50002, 50010, 50011, 50001, 0x11, 9, 0, 1, 5, 1, 2}));
    EXPECT_EQ(run.streams[2].first_source, 6U);
    EXPECT_EQ(run.streams[2].source_count, 2U);
    EXPECT_EQ(run.sources[6].stream, 2U);
    EXPECT_EQ(run.streams[0].port, 1U);
}

TEST(Config, CountsSourceIdsThatAreNotGiven) {
    const RunConfig run = parse_config(
        edited(udp_text, {{"\"jungfrau\"", "\"ejfat\"\nsource_by = \"header\""}, {"sources = 2", "sources = 3"}}), "t");
    EXPECT_EQ(run.streams[0].source_ids, (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(run.sources.size(), 3U);
}

TEST(Config, ReadsSizes) {
    const auto memory = [](const std::string& text) {
        return parse_config(edited(udp_text, {{"sources = 2", "sources = 2\nmemory = " + text}}), "t")
            .events.memory_bytes;
    };
    EXPECT_EQ(memory("\"16MiB\""), 16U << 20);
    EXPECT_EQ(memory("\"1 GiB\""), 1U << 30);
    EXPECT_EQ(memory("\"100MB\""), 100'000'000U);
    EXPECT_EQ(memory("\"2000000B\""), 2'000'000U);
    EXPECT_EQ(memory("\"2000kB\""), 2'000'000U);
    EXPECT_EQ(memory("2000000"), 2'000'000U);
    EXPECT_EQ(memory("\"1TiB\""), std::uint64_t{1} << 40);
}

TEST(Config, AnswersForRoceBeforeAnythingIsSaid) {
    const RunConfig run = parse_config(edited(roce_text, {{"event = \"immediate\"\n", ""}}), "t");
    EXPECT_EQ(run.streams[0].event, EventBy::immediate);
    EXPECT_EQ(run.streams[0].icrc, IcrcMode::check);
    const RunConfig framed =
        parse_config(edited(roce_text, {{"event = \"immediate\"\n", ""}, {"\"message\"", "\"ejfat\""}}), "t");
    EXPECT_EQ(framed.streams[0].event, EventBy::format);
}

TEST(Config, ArrivalTakesOneSource) {
    const RunConfig roce = parse_config(
        edited(roce_text, {{"[17, 18]", "[17]"}, {"\"immediate\"", "\"arrival\""}, {"sources = 2", "sources = 1"}}),
        "t");
    EXPECT_EQ(roce.streams[0].event, EventBy::arrival);
    const RunConfig udp = parse_config(edited(udp_text, {{"[50001, 50002]", "50001"},
                                                         {"\"jungfrau\"", "\"message\"\nevent = \"arrival\""},
                                                         {"sources = 2", "sources = 1"}}),
                                       "t");
    EXPECT_EQ(udp.streams[0].event, EventBy::arrival);
}

TEST(Config, KeepsAddressesOfBothKinds) {
    const RunConfig run =
        parse_config(edited(roce_text, {{"event =", "dst = \"192.168.77.2\"\nsrc = [\"fd00::7\"]\nevent ="}}), "t");
    ASSERT_EQ(run.streams[0].dst.size(), 1U);
    EXPECT_EQ(run.streams[0].dst[0].v4(), 0xc0a84d02U);
    EXPECT_FALSE(run.streams[0].dst[0].v6);
    ASSERT_EQ(run.streams[0].src.size(), 1U);
    EXPECT_TRUE(run.streams[0].src[0].v6);
    EXPECT_EQ(run.streams[0].src[0].bytes[0], 0xfd);
    EXPECT_EQ(run.streams[0].src[0].bytes[15], 7);
    EXPECT_TRUE(run.warnings.empty());
}

TEST(Config, DifferentAddressesMayShareAPort) {
    const std::string second =
        "[[stream]]\nport = \"det0\"\ntransport = \"udp\"\nudp_dst = 50001\nsrc = \"10.0.0.2\"\nformat = "
        "\"jungfrau\"\n";
    const RunConfig run = parse_config(
        edited(udp_text, {{"[50001, 50002]", "50001\nsrc = \"10.0.0.1\""}, {"[events]", second + "[events]"}}), "t");
    EXPECT_EQ(run.sources.size(), 2U);
}

TEST(Config, WarnsOfASourceIdThatNobodyLooksAt) {
    const std::string format =
        "[[format]]\nname = \"mine\"\nheader_bytes = 8\nevent = { offset = 0, bytes = 4 }\n"
        "source = { offset = 4, bytes = 2 }\n[[stream]]";
    const std::string text = edited(udp_text, {{"\"jungfrau\"", "\"mine\""}, {"[[stream]]", format}});
    const RunConfig run = parse_config(text, "t");
    ASSERT_EQ(run.warnings.size(), 1U);
    EXPECT_NE(run.warnings[0].find("the stream goes by the port, and the `source` of the format \"mine\""),
              std::string::npos)
        << run.warnings[0];
    const auto without = edited(text, {{"source = { offset = 4, bytes = 2 }\n", ""}});
    EXPECT_TRUE(parse_config(without, "t").warnings.empty());
}

TEST(Config, WarnsOfAPortThatNobodyUses) {
    const RunConfig run = parse_config(
        edited(udp_text, {{"[[stream]]", "[[port]]\nname = \"spare\"\ndevice = \"net_null1\"\n[[stream]]"}}), "t");
    ASSERT_EQ(run.warnings.size(), 1U);
    EXPECT_NE(run.warnings[0].find("t:4: port.name: no stream uses \"spare\""), std::string::npos) << run.warnings[0];
}

TEST(Config, DeclaredFormatRaisesTheBoundOnMessages) {
    const RunConfig run = parse_config(edited(declared_text, {{"packets = 64", "packets = 8192"}}), "t");
    EXPECT_EQ(run.streams[0].max_message_bytes, 32U << 20);
    ASSERT_EQ(run.formats.size(), 1U);
    const wire::DeclaredSpec& spec = run.formats[0];
    EXPECT_EQ(spec.name, "mydet");
    EXPECT_EQ(spec.header_bytes, 16U);
    EXPECT_EQ(spec.index->offset, 8U);
    EXPECT_EQ(spec.magic_value, 0xcafeU);
    EXPECT_FALSE(spec.wrap_bits);
    EXPECT_EQ(format_entry(run.streams[0]).name, "declared");
    EXPECT_EQ(format_options(run, run.streams[0]).declared.name, "mydet");
    EXPECT_EQ(format_entry(parse_config(udp_text, "t").streams[0]).name, "jungfrau");
}

TEST(Config, APortThatTakesSomethingOffIsGivenNoRules) {
    const RunConfig run =
        test::reads_back(edited(udp_text, {{"device =", "decapsulate = [\"mpls\", \"erspan\"]\ndevice ="}}));
    EXPECT_TRUE(run.ports[0].decapsulate.has(wire::Tunnel::erspan));
    EXPECT_TRUE(run.ports[0].decapsulate.has(wire::Tunnel::mpls));
    EXPECT_FALSE(run.ports[0].decapsulate.has(wire::Tunnel::gre));
    EXPECT_EQ(run.ports[0].steer, SteerMode::software);
    EXPECT_EQ(config_json(run)["port"][0]["decapsulate"], nlohmann::json({"erspan", "mpls"}));
    EXPECT_TRUE(parse_config(udp_text, "t").ports[0].decapsulate.empty());
}

TEST(Config, LongestListOfPorts) {
    const RunConfig run = parse_config(edited(udp_text, {{"[50001, 50002]", "\"1-65535\""}}), "t");
    EXPECT_EQ(run.sources.size(), 65535U);
}

// Everything that is not a default, of every kind.
constexpr std::string_view full_text = R"(
name = "everything"
[[format]]
name = "big.one"
byte_order = "big"
header_bytes = 32
event = { offset = 0, bytes = 8, mask = 0x7FFF0, shift = 4, wrap_bits = 12 }
offset = { offset = 8, bytes = 4 }
total = { offset = 12, bytes = 4 }
magic = { offset = 16, bytes = 8, value = -2 }
source = { offset = 24, bytes = 2 }
[[port]]
name = "p"
device = "net_memif0,socket=/tmp/s"
args = { role = "server", bsize = 10240 }
queues = 4
mtu = 1500
rx_descriptors = 512
tx_descriptors = 128
promiscuous = false
link_wait_s = 7
flow_control = "rx"
pfc = [3, 4]
flow_control_required = true
timestamps = "software"
checksums = "ignore"
mbuf_bytes = "8KiB"
address = "10.1.0.2/24"
[[stream]]
port = "p"
transport = "udp"
udp_dst = ["50001-50008", 7]
source_by = "header"
source_ids = [3, 4, 9]
src = ["10.0.0.1", "fd00::1"]
dst = "10.0.0.2"
format = "big.one"
max_message_bytes = 12345
[[stream]]
port = "p"
transport = "udp"
udp_dst = [50011, 50012]
format = "jungfrau"
interfaces = 2
[[stream]]
port = "p"
transport = "roce"
qp = ["1-10", 0xffffff]
format = "message"
event = "count"
message_bytes = "1MiB"
icrc = "ignore"
[events]
sources = 5
memory = "100MB"
window = 7
timeout_ms = 1
incomplete = "drop"
assembly = "copy"
overload = "prescale:7"
horizon = 5
stride = 2048
[[reduce]]
kind = "zstd"
level = -3
[[sink]]
kind = "events"
path = "a \"quoted\" \\ {name}{run}{run:03}{date}"
segment_bytes = "2MiB"
sync_bytes = 5000
sync_ms = 3
segment_seconds = 60
full_warning_seconds = 0
require_mount = "/data"
[[sink]]
kind = "null"
[lcores]
rx = [2, 3]
build = 4
work = "5-9"
idle = "sleep"
)";

TEST(Config, PrintsWhatReadsBackTheSame) {
    for (const std::string_view text : {udp_text, roce_text, declared_text, full_text}) test::reads_back(text);
}

TEST(Config, EveryDifferenceIsSeen) {
    const RunConfig run = parse_config(full_text, "t");
    RunConfig other = run;
    EXPECT_TRUE(run == other);
    other.formats[0].total->mask = 1;
    EXPECT_FALSE(run == other);
    other = run;
    other.streams[2].message_bytes = 5;
    EXPECT_FALSE(run == other);
    other = run;
    other.streams[0].src.pop_back();
    EXPECT_FALSE(run == other);
    other = run;
    other.sinks[0].options.get_if<EventsSinkConfig>()->sync_ms = 4;
    EXPECT_FALSE(run == other);
    other = run;
    other.formats.clear();
    EXPECT_FALSE(run == other);
}

TEST(Config, MarksDefaultsWhenPrinting) {
    const std::string printed = print_config(parse_config(udp_text, "t"));
    EXPECT_NE(printed.find("timeout_ms = 500  # default\n"), std::string::npos) << printed;
    EXPECT_NE(printed.find("sources = 2\n"), std::string::npos);
    EXPECT_NE(printed.find("# window: "), std::string::npos);
    EXPECT_NE(printed.find("# sources 0..1\n"), std::string::npos);
}

TEST(Config, AsJson) {
    const nlohmann::json json = config_json(parse_config(full_text, "t"));
    EXPECT_EQ(json["name"], "everything");
    EXPECT_EQ(json["port"][0]["device"], "net_memif0,socket=/tmp/s,bsize=10240,role=server");
    EXPECT_EQ(json["stream"][1]["interfaces"], 2);
    EXPECT_EQ(json["stream"][2]["qp"].size(), 11U);
    EXPECT_EQ(json["events"]["memory"], 100'000'000);
    EXPECT_EQ(json["format"][0]["event"]["wrap_bits"], 12);
    EXPECT_EQ(json["sources"].size(), 16U);
    EXPECT_EQ(json["lcores"]["work"], (std::vector<int>{5, 6, 7, 8, 9}));
    EXPECT_TRUE(config_json(parse_config(udp_text, "t"))["events"]["window"].is_null());
}

TEST_F(ConfigFiles, MergesAProfileUnderThePort) {
    write("pmd.toml",
          "notes = [\"a\", \"b\"]\nmtu = 1500\nqueues = 3\nmbuf_bytes = 16512\n[args]\nframesz = 16384\nblocksz = "
          "65536\nflag = true\n");
    const auto file =
        write("run.toml", edited(udp_text, {{"device = \"net_null0\"",
                                             "device = \"net_af_packet0,iface=det0,framesz=2048\"\n"
                                             "profile = \"pmd.toml\"\nqueues = 2\nargs = \"blocksz=4096\""}}));
    const RunConfig run = load_config(file);
    const PortConfig& port = run.ports[0];
    EXPECT_EQ(port.mtu, 1500);
    EXPECT_EQ(port.queues, 2);
    EXPECT_EQ(port.mbuf_bytes, 16512U);
    EXPECT_EQ(port.args, "blocksz=4096,flag=1,framesz=16384");
    EXPECT_EQ(port.devargs(), "net_af_packet0,iface=det0,framesz=2048,blocksz=4096,flag=1");
    EXPECT_EQ(port.profile.file, (folder_ / "pmd.toml").string());
    EXPECT_TRUE(run == parse_config(print_config(run), "elsewhere/printed.toml"));
}

TEST_F(ConfigFiles, ErrorsInAProfileNameTheProfile) {
    write("pmd.toml", "mtu = 1500\nframesz = 1\n");
    write("broken.toml", "mtu = \n");
    const auto with = [&](const std::string& profile) {
        return message_of([&] {
            load_config(write("run.toml", edited(udp_text, {{"device =", "profile = \"" + profile + "\"\ndevice ="}})));
        });
    };
    EXPECT_EQ(with("pmd.toml").find((folder_ / "pmd.toml").string() + ":2: \"framesz\": found an unknown key"), 0U)
        << with("pmd.toml");
    EXPECT_EQ(with("broken.toml").find((folder_ / "broken.toml").string() + ":1: not valid TOML"), 0U)
        << with("broken.toml");
    EXPECT_NE(with(".").find("is not a file"), std::string::npos) << with(".");
}

TEST_F(ConfigFiles, FilesThatCannotBeRead) {
    const auto load = [](const std::filesystem::path& file) { return message_of([&] { load_config(file); }); };
    EXPECT_NE(load(folder_ / "none.toml").find("none.toml: cannot be read"), std::string::npos);
    EXPECT_NE(load(folder_).find("found a directory"), std::string::npos);
    EXPECT_NE(load("/dev/zero").find("longer than 16MiB"), std::string::npos);
    EXPECT_NE(load(write("binary.toml", std::string("\0\xff\xfe", 3))).find(":1: not valid TOML"), std::string::npos);
    EXPECT_NE(load(write("empty.toml", "")).find("empty.toml:1: "), std::string::npos);
}

TEST(Config, ListsAreBounded) {
    std::string list;
    for (int i = 0; i < 20; ++i)
        list += "[[stream]]\nport = \"det0\"\ntransport = \"roce\"\nformat = \"message\"\nqp = \"" +
                std::to_string(i * 60000) + "-" + std::to_string(i * 60000 + 59999) + "\"\n";
    const std::string message = message_of([&] {
        parse_config(edited(roce_text, {{"[17, 18]", "[1999999]"}, {"[events]", list + "[events]"}}), "t");
    });
    EXPECT_NE(message.find("at most 65536 sources"), std::string::npos) << message;
    const std::string wide = message_of([&] { parse_config(edited(roce_text, {{"[17, 18]", "\"0-65536\""}}), "t"); });
    EXPECT_NE(wide.find("at most 65536 in all"), std::string::npos) << wide;
}

TEST(ConfigExamples, AllOfThemParse) {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(source_root / "examples")) {
        if (entry.path().extension() != ".toml") continue;
        ++files;
        RunConfig run;
        ASSERT_NO_THROW(run = load_config(entry.path())) << entry.path();
        EXPECT_TRUE(run.warnings.empty()) << entry.path() << ": " << run.warnings.front();
        EXPECT_TRUE(run == parse_config(print_config(run), "printed.toml")) << entry.path();
    }
    EXPECT_GE(files, 5);
}

TEST_F(ConfigFiles, AllProfilesParse) {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(source_root / "pmd-config")) {
        ++files;
        const std::string profile = "profile = \"" + entry.path().string() + "\"\ndevice =";
        EXPECT_NO_THROW(load_config(write("run.toml", edited(udp_text, {{"device =", profile}})))) << entry.path();
    }
    EXPECT_GE(files, 5);
}

/// The TOML blocks of docs/reference/CONFIGURATION.md that are marked as whole configurations.
TEST(ConfigExamples, TheDocumentedOneParses) {
    std::ifstream in(source_root / "docs/reference/CONFIGURATION.md");
    ASSERT_TRUE(in);
    std::string text;
    std::string line;
    bool inside = false;
    while (std::getline(in, line)) {
        if (line == "```toml")
            inside = true;
        else if (line == "```" && inside)
            break;
        else if (inside)
            text += line + "\n";
    }
    ASSERT_FALSE(text.empty());
    EXPECT_NO_THROW(parse_config(text, "CONFIGURATION.md")) << text;
}

}  // namespace
}  // namespace weir::config
