// What the nodes of a cluster see of its configuration.
#include "config/node_view.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "case.hpp"
#include "config/counted_numbers.hpp"
#include "config/sinks/cluster.hpp"

namespace weir::config::test {
namespace {

// Streams of the two readout nodes by turns, on three ports.
const std::string mixed_text = edited(
    cluster_text,
    {{"[[stream]]",
      "[[port]]\nname = \"spare\"\ndevice = \"net_null7\"\n"
      "[[port]]\nname = \"det3\"\ndevice = \"net_null3\"\n[[stream]]"},
     {"[events]",
      "[[stream]]\nport = \"det0\"\nnode = \"left\"\ntransport = \"udp\"\nudp_dst = 50009\nformat = \"ejfat\"\n"
      "[[stream]]\nport = \"det3\"\nnode = \"right\"\ntransport = \"udp\"\nudp_dst = [7, 8]\nformat = \"ejfat\"\n"
      "[lcores]\nrx = [1, 2]\nwork = [3]\n[events]"},
     {"sources = 4", "sources = 7\nincomplete = \"drop\"\ntimeout_ms = 30\nstride = 2"},
     {"[[sink]]",
      "[[reduce]]\nkind = \"zstd\"\n[[sink]]\nkind = \"pcapng\"\npath = \"packets/{node}-{run}.pcapng\"\n"
      "[[sink]]\nkind = \"null\"\n[[sink]]"}});

std::vector<std::string> labels_of(const RunConfig& run) {
    std::vector<std::string> labels;
    for (const SourceConfig& source : run.sources)
        labels.push_back(std::to_string(source.stream) + ": " + source.label);
    return labels;
}

std::vector<std::string_view> kinds_of(const RunConfig& run) {
    std::vector<std::string_view> kinds;
    for (const SinkConfig& sink : run.sinks) kinds.push_back(sink.kind());
    return kinds;
}

TEST(NodeView, AReadoutNodeHasItsStreamsAndSources) {
    const RunConfig run = parse_config(mixed_text, "t");
    const RunConfig left = readout_view(run, 0);
    EXPECT_EQ(left.node, "left");
    EXPECT_EQ(labels_of(left),
              (std::vector<std::string>{"0: det0 udp 50001", "0: det0 udp 50002", "1: det0 udp 50009"}));
    EXPECT_EQ(left.streams[1].first_source, 2U);
    EXPECT_EQ(left.streams[1].source_count, 1U);
    EXPECT_EQ(left.events.sources, 3U);
    EXPECT_EQ(global_sources(run, 0), (std::vector<std::uint32_t>{0, 1, 4}));

    const RunConfig right = readout_view(run, 1);
    EXPECT_EQ(right.node, "right");
    EXPECT_EQ(labels_of(right),
              (std::vector<std::string>{"0: det1 udp 50001", "0: det1 udp 50002", "1: det3 udp 7", "1: det3 udp 8"}));
    EXPECT_EQ(right.streams[0].first_source, 0U);
    EXPECT_EQ(global_sources(run, 1), (std::vector<std::uint32_t>{2, 3, 5, 6}));
    for (const std::uint32_t node : {0U, 1U}) {
        const RunConfig view = readout_view(run, node);
        const std::vector<std::uint32_t> ids = global_sources(run, node);
        ASSERT_EQ(ids.size(), view.sources.size());
        for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(run.sources[ids[i]].label, view.sources[i].label);
    }
}

TEST(NodeView, AReadoutNodeHasThePortsThatItsStreamsName) {
    const RunConfig right = readout_view(parse_config(mixed_text, "t"), 1);
    ASSERT_EQ(right.ports.size(), 2U);
    EXPECT_EQ(right.ports[0].name, "det1");
    EXPECT_EQ(right.ports[1].name, "det3");
    EXPECT_EQ(right.streams[0].port, 0U);
    EXPECT_EQ(right.streams[1].port, 1U);
}

TEST(NodeView, AReadoutNodeSendsPartsAndRecordsPackets) {
    const RunConfig run = parse_config(mixed_text, "t");
    const RunConfig left = readout_view(run, 0);
    EXPECT_EQ(kinds_of(left), (std::vector<std::string_view>{"cluster", "pcapng"}));
    EXPECT_NE(left.sinks[0].as<ClusterSinkConfig>(), nullptr);
    EXPECT_TRUE(left.reduce.empty());
    EXPECT_EQ(left.events.incomplete, IncompleteMode::keep);
    EXPECT_EQ(left.events.stride, 2U);
    EXPECT_EQ(left.events.timeout_ms, 30U);
    EXPECT_EQ(left.lcores, run.lcores);
    EXPECT_EQ(left.cluster, run.cluster);
}

TEST(NodeView, ABuilderHasAllSourcesAndTheSinks) {
    const RunConfig run = parse_config(mixed_text, "t");
    const RunConfig builder = builder_view(run, 3);
    EXPECT_EQ(builder.node, "second");
    EXPECT_EQ(builder.streams, run.streams);
    EXPECT_EQ(builder.sources, run.sources);
    EXPECT_EQ(builder.reduce, run.reduce);
    EXPECT_EQ(kinds_of(builder), (std::vector<std::string_view>{"null", "events"}));
    EXPECT_EQ(builder.events.sources, 7U);
    EXPECT_EQ(builder.events.incomplete, IncompleteMode::drop);
    EXPECT_EQ(builder.events.stride, EventsConfig::stride_sparse);
    EXPECT_EQ(builder.events.timeout_ms, UINT32_MAX);
    EXPECT_EQ(builder.lcores.rx, (std::vector<std::uint32_t>{1}));
    EXPECT_EQ(builder.lcores.work, run.lcores.work);
    EXPECT_TRUE(builder_view(parse_config(cluster_text, "t"), 2).lcores.rx.empty());
}

TEST(NodeView, CanBeReportedAndPrinted) {
    const RunConfig run = parse_config(mixed_text, "t");
    const nlohmann::json right = config_json(readout_view(run, 1));
    EXPECT_EQ(right["sink"][0]["kind"], "cluster");
    EXPECT_EQ(right["stream"][1]["port"], "det3");
    EXPECT_EQ(right["stream"][1]["node"], "right");
    EXPECT_EQ(right["sources"].size(), 4U);
    EXPECT_EQ(right["node"].size(), 4U);
    EXPECT_NE(print_config(readout_view(run, 1)).find("kind = \"cluster\""), std::string::npos);
    EXPECT_EQ(config_json(builder_view(run, 2))["events"]["stride"], "sparse");
}

TEST(NodeView, OneSourceHereIsNotTheOnlyOne) {
    const std::string counted = "transport = \"roce\"\nqp = 1\nformat = \"message\"\nevent = \"count\"\n";
    const std::string udp = "transport = \"udp\"\nudp_dst = [50001, 50002]\nformat = \"ejfat\"\n";
    const RunConfig run =
        parse_config(edited(cluster_text, {{udp, counted}, {udp, counted}, {"sources = 4", "sources = 2"}}), "t");
    EXPECT_EQ(run.warnings.size(), 2U);
    const RunConfig view = readout_view(run, 0);
    ASSERT_EQ(view.sources.size(), 1U);
    EXPECT_FALSE(counts_are_known(view, view.streams[0]));
}

TEST(NodeView, FlowRulesKeepTheirPort) {
    std::string pattern = testing::TempDir() + "weir-node-view-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    const std::filesystem::path file = std::filesystem::path(pattern) / "rules.txt";
    const std::string rule = " ingress pattern eth / ipv4 / udp dst is 7 / end actions queue index 0 / end\n";
    std::ofstream(file) << "flow create 3" << rule << "flow create 0" << rule;
    const RunConfig run =
        parse_config(edited(mixed_text, {{"\"net_null3\"", "\"net_null3\"\nflows = \"" + file.string() + "\""}}), "t");
    EXPECT_EQ(run.ports[3].rules[0].port, 3U);
    const RunConfig right = readout_view(run, 1);
    ASSERT_EQ(right.ports[1].rules.size(), 2U);
    EXPECT_EQ(right.ports[1].rules[0].port, 1U);
    EXPECT_EQ(right.ports[1].rules[1].port, 0U);
    std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace weir::config::test
