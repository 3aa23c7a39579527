// [cluster] and [[node]]: what they become, and every way in which they can be wrong.
#include "config/cluster.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "case.hpp"
#include "config/sinks/cluster.hpp"
#include "config/sinks/entry.hpp"

namespace weir::config::test {
namespace {

const std::string packets_sink = "[[sink]]\nkind = \"pcapng\"\npath = \"packets/{node}-{run}.pcapng\"\n";

std::string usage_error_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const core::UsageError& error) {
        return error.what();
    }
    return "nothing was thrown";
}

std::vector<cluster::NodeId> nodes_in(const cluster::NodeSet& set) {
    std::vector<cluster::NodeId> nodes;
    for (cluster::NodeId node = 0; node < 16; ++node)
        if (set.contains(node)) nodes.push_back(node);
    return nodes;
}

using Ids = std::vector<cluster::NodeId>;

TEST(ClusterConfig, FillsInTheDefaults) {
    const RunConfig run = reads_back(cluster_text);
    ASSERT_TRUE(run.cluster);
    EXPECT_EQ(run.cluster->block, 4U);
    EXPECT_EQ(run.cluster->silence_ms, 2000U);
    EXPECT_EQ(run.cluster->return_ms, 5000U);
    EXPECT_EQ(run.cluster->leave_ms, 5000U);
    EXPECT_EQ(cluster_settings(run).quorum, cluster::QuorumOf::nodes);
    EXPECT_EQ(run.cluster->memory_bytes, 1U << 30);
    EXPECT_EQ(run.cluster->transports, "all");
    ASSERT_EQ(run.cluster->nodes.size(), 4U);
    EXPECT_EQ(run.cluster->nodes[1].name, "right");
    EXPECT_EQ(run.cluster->nodes[1].address, "127.0.0.1:7472");
    EXPECT_EQ(run.cluster->nodes[1].role, NodeRole::readout);
    EXPECT_FALSE(run.cluster->nodes[1].manages);
    EXPECT_TRUE(run.cluster->nodes[2].manages);
    EXPECT_EQ(run.streams[0].node, 0U);
    EXPECT_EQ(run.streams[1].node, 1U);
    EXPECT_TRUE(run.node.empty());
    EXPECT_TRUE(run.warnings.empty()) << run.warnings.front();
}

TEST(ClusterConfig, AnEmptyTableIsACluster) {
    const RunConfig run = reads_back(edited(cluster_text, {{"block = 4\n", ""}}));
    ASSERT_TRUE(run.cluster);
    EXPECT_EQ(run.cluster->block, 16U);
}

TEST(ClusterConfig, WithoutTheTableThereIsNone) {
    const RunConfig run = parse_config(udp_text, "t");
    EXPECT_FALSE(run.cluster);
    EXPECT_FALSE(run.streams[0].node);
    EXPECT_EQ(config_json(run).count("cluster"), 0U);
    EXPECT_EQ(print_config(run).find("node"), std::string::npos);
}

TEST(ClusterConfig, EveryDifferenceIsSeen) {
    const RunConfig run = parse_config(cluster_text, "t");
    for (const auto& change : std::vector<std::function<void(RunConfig&)>>{
             [](RunConfig& other) { other.cluster->leave_ms = 1; },
             [](RunConfig& other) { other.cluster->alone_ms = 1; },
             [](RunConfig& other) { other.cluster->quorum = cluster::QuorumOf::readouts; },
             [](RunConfig& other) { other.cluster->nodes[0].manages = true; },
             [](RunConfig& other) { other.cluster->nodes[2].weight = 2; },
             [](RunConfig& other) { other.cluster->nodes[2].spare = true; },
             [](RunConfig& other) { other.streams[0].node = 1; },
             [](RunConfig& other) { other.cluster.reset(); },
         }) {
        RunConfig other = run;
        EXPECT_TRUE(run == other);
        change(other);
        EXPECT_FALSE(run == other);
    }
}

TEST(ClusterConfig, BecomesTheSettingsOfTheProtocol) {
    const cluster::Settings usual = cluster_settings(parse_config(cluster_text, "t"));
    EXPECT_EQ(usual.nodes, 4);
    EXPECT_EQ(nodes_in(usual.readouts), (Ids{0, 1}));
    EXPECT_EQ(nodes_in(usual.builders), (Ids{2, 3}));
    EXPECT_EQ(nodes_in(usual.managers), (Ids{2, 3}));
    EXPECT_EQ(usual.strategy, cluster::Strategy::pull);
    EXPECT_EQ(usual.order, cluster::Order::linear);
    EXPECT_TRUE(usual.list.empty());
    EXPECT_EQ(usual.keep, cluster::Keep::assembled);
    EXPECT_EQ(usual.credits, 16U);
    EXPECT_EQ(usual.weights, (std::vector<std::uint32_t>{1, 1, 1, 1}));
    const cluster::Settings weighted = cluster_settings(
        reads_back(edited(cluster_text, {{"role = \"builder\"", "role = \"builder\"\nweight = 3\nspare = true"}})));
    EXPECT_EQ(weighted.weights, (std::vector<std::uint32_t>{1, 1, 3, 1}));
    EXPECT_EQ(nodes_in(weighted.spares), (Ids{2}));
    EXPECT_TRUE(usual.spares.empty());
    EXPECT_EQ(usual.parallel, 4U);
    EXPECT_FALSE(usual.barrier);
    EXPECT_EQ(usual.slot_ns, 0);
    EXPECT_EQ(usual.timeout_ns, 2 * core::ns_per_s);
    EXPECT_EQ(usual.join_wait_ns, 10 * core::ns_per_s);

    const std::string keys =
        "strategy = \"push\"\norder = \"listed\"\nlist = [\"second\", \"left\", \"first\", \"right\"]\n"
        "keep = \"written\"\ncredits = 3\nparallel = 7\nbarrier = true\ntimeout_ms = 5\njoin_wait_ms = 0\n"
        "[[node]]\nname = \"chief\"\naddress = \"localhost:1\"\nrole = \"manager\"\n";
    const RunConfig run = reads_back(
        edited(cluster_text, {{"block = 4\n", keys}, {"role = \"readout\"", "role = \"readout\"\nmanages = true"}}));
    const cluster::Settings told = cluster_settings(run);
    EXPECT_EQ(nodes_in(told.readouts), (Ids{1, 2}));
    EXPECT_EQ(nodes_in(told.managers), (Ids{0, 1, 3, 4}));
    EXPECT_EQ(told.strategy, cluster::Strategy::push);
    EXPECT_EQ(told.order, cluster::Order::listed);
    EXPECT_EQ(told.list, (Ids{4, 1, 3, 2, 0})) << "all nodes, those that only manage at the end";
    EXPECT_EQ(told.keep, cluster::Keep::written);
    EXPECT_EQ(told.credits, 3U);
    EXPECT_EQ(told.parallel, 7U);
    EXPECT_TRUE(told.barrier);
    EXPECT_EQ(told.timeout_ns, 5 * core::ns_per_ms);
    EXPECT_EQ(told.join_wait_ns, 0);
    EXPECT_EQ(
        cluster_settings(reads_back(edited(cluster_text, {{"block = 4\n", "strategy = \"push\"\nslot_us = 93\n"}})))
            .slot_ns,
        93'000);
}

TEST(ClusterConfig, NodesOfDifferentHostsMayHaveTheSameDeviceAndTheSamePorts) {
    const RunConfig two = reads_back(cluster_text);
    EXPECT_EQ(two.ports[0].device, two.ports[1].device);
    const RunConfig one = reads_back(edited(cluster_text, {{"[[port]]\nname = \"det1\"\ndevice = \"net_null0\"\n", ""},
                                                           {"port = \"det1\"", "port = \"det0\""}}));
    EXPECT_EQ(one.sources.size(), 4U);
}

TEST(ClusterConfig, PathsOfOneBuilderNeedNoNode) {
    const std::string second = "[[node]]\nname = \"second\"\naddress = \"127.0.0.1:7474\"\nrole = \"builder\"\n";
    const RunConfig run = reads_back(edited(cluster_text, {{second, ""}, {"{node}/{run}", "{run}"}}));
    EXPECT_EQ(run.sinks[0].path, "data/{run}");
}

TEST(ClusterConfig, PathsHaveTheNameOfTheNode) {
    const auto path = [](const std::string& node) {
        return store::expand_path_template("data/{node}/{run:03}", {.name = "n", .run = 7, .date = "", .node = node});
    };
    EXPECT_EQ(path("left"), "data/left/007");
    EXPECT_NE(usage_error_of([&] { static_cast<void>(path("")); }).find("{node} in a path is the name of a node"),
              std::string::npos);
    EXPECT_NE(usage_error_of([&] { static_cast<void>(path("a/b")); }).find("cannot be part of a path"),
              std::string::npos);
}

TEST(ClusterConfig, FindsNodesByName) {
    const RunConfig run = parse_config(cluster_text, "t");
    EXPECT_EQ(find_node(run, "left"), 0U);
    EXPECT_EQ(find_node(run, "second"), 3U);
    EXPECT_EQ(usage_error_of([&] { static_cast<void>(find_node(run, "rigth")); }),
              "node: found \"rigth\"; did you mean \"right\"?; accepted: \"left\", \"right\", \"first\" or \"second\"");
    EXPECT_EQ(usage_error_of([&] { static_cast<void>(find_node(run, "")); }),
              "node: found \"\"; accepted: \"left\", \"right\", \"first\" or \"second\"");
    EXPECT_NE(usage_error_of([] {
                  static_cast<void>(find_node(parse_config(udp_text, "t"), "left"));
              }).find("the configuration has no [cluster]"),
              std::string::npos);
}

TEST(ClusterConfig, AgreesOnWhatAnEventIsMadeOf) {
    const auto of = [](const Edits& edits) { return agreement(parse_config(edited(cluster_text, edits), "t")); };
    const std::uint64_t usual = of({});
    EXPECT_EQ(usual, of({}));
    for (const Edits& same : std::vector<Edits>{
             {{"[events]", "[lcores]\nidle = \"sleep\"\n[events]"}},
             {{"[events]", "[serve]\nlisten = \"127.0.0.1:1\"\n[events]"}},
             {{"[events]", "[[reduce]]\nkind = \"zstd\"\n[events]"}},
             {{"sources = 4", "sources = 4\nmemory = \"64MiB\""}},
             {{"block = 4", "block = 4\nmemory = \"64MiB\""}},
             {{"block = 4", "block = 4\nsecret_file = \"/etc/secret\""}},
             {{"data/{node}", "elsewhere/{node}"}},
             {{"[events]", packets_sink + "[events]"}},
             {{"[cluster]", "name = \"another\"\n[cluster]"}},
             {{"name = \"det0\"", "name = \"nic\""}, {"port = \"det0\"", "port = \"nic\""}},
         })
        EXPECT_EQ(of(same), usual) << same[0].second;
    for (const Edits& different : std::vector<Edits>{
             {{"block = 4", "block = 5"}},
             {{"127.0.0.1:7471", "127.0.0.1:7475"}},
             {{"\"first\"", "\"premier\""}},
             {{"role = \"builder\"", "role = \"builder\"\nweight = 2"}},
             {{"role = \"builder\"", "role = \"builder\"\nspare = true"}},
             {{"[50001, 50002]", "[50001, 50003]"}},
             {{"sources = 4", "sources = 4\noverload = \"prescale:7\""}},
         })
        EXPECT_NE(of(different), usual) << different[0].second;
}

TEST(ClusterSink, IsNotInTheReference) {
    for (const options::ReferenceTable& table : config_reference()) {
        EXPECT_NE(table.name, "sink.cluster");
        if (table.name != "sink") continue;
        EXPECT_EQ(table.keys.front().kind.find("cluster"), std::string::npos);
        EXPECT_EQ(table.keys.front().schema.dump().find("cluster"), std::string::npos);
    }
}

TEST(ClusterSink, IsMadeByWhoRunsTheNode) {
    SinkConfig sink;
    sink.options = ClusterSinkConfig{};
    EXPECT_EQ(sink.kind(), "cluster");
    EXPECT_FALSE(sink.has_path());
    EXPECT_TRUE(sink.stores_events());
    const RunConfig run;
    SinkContext context{run, sink, {}, {}, false};
    EXPECT_THROW(entry_of(sink).open(context), core::RunError);
    int asked = 0;
    const std::function<std::unique_ptr<store::EventSink>()> make = [&asked] {
        ++asked;
        return std::unique_ptr<store::EventSink>();
    };
    context.cluster_sink = &make;
    entry_of(sink).open(context);
    EXPECT_EQ(asked, 1);
}

class ClusterConfigError : public ConfigError {};

TEST_P(ClusterConfigError, NamesLineKeyFoundAndAccepted) {
    expect_refused(GetParam());
}

Case wrong_cluster(std::string_view name, NewEdits edits, Parts parts) {
    return {name, cluster_text, edits, parts};
}
/// Another line in [cluster].
Case wrong_key(std::string_view name, const std::string& line, Parts parts) {
    return wrong_cluster(name, {{"block = 4", line + " #!"}}, parts);
}
Case wrong_list(std::string_view name, const std::string& list, Parts parts) {
    return wrong_key(name, "order = \"listed\"\nlist = " + list, parts);
}
Case wrong_address(std::string_view name, const std::string& address, const std::string& part) {
    return wrong_cluster(name, {{"\"127.0.0.1:7471\"", "\"" + address + "\" #!"}},
                         {"node.address: found \"" + address + "\"", part});
}

const std::vector<Case> cluster_cases{
    wrong_key("Block", "block = 0", {"cluster.block", "1..1099511627776"}),
    wrong_key("Strategy", "strategy = \"pul\"", {"cluster.strategy", "\"pull\" or \"push\""}),
    wrong_key("Order", "order = \"any\"", {"cluster.order", "\"linear\", \"random\" or \"listed\""}),
    wrong_key("Keep", "keep = true", {"cluster.keep: found true", "\"assembled\" or \"written\""}),
    wrong_key("Credits", "credits = 65537", {"cluster.credits", "1..65536"}),
    wrong_key("Parallel", "parallel = 0", {"cluster.parallel", "1..4096"}),
    wrong_key("BarrierWherePulled", "barrier = true", {"cluster.barrier: found true with strategy", "\"push\""}),
    wrong_key("BarrierAtRandom", "strategy = \"push\"\norder = \"random\"\nbarrier = true",
              {"cluster.barrier: found true with order", "another order"}),
    wrong_key("Slots", "slot_us = 1000001", {"cluster.slot_us", "0..1000000"}),
    wrong_key("SlotsWherePulled", "slot_us = 100", {"cluster.slot_us: found 100 with strategy", "\"push\""}),
    wrong_key("SlotsAtRandom", "strategy = \"push\"\norder = \"random\"\nslot_us = 100",
              {"cluster.slot_us: found 100 with order", "another order"}),
    wrong_key("SlotsAndBarrier", "strategy = \"push\"\nbarrier = true\nslot_us = 100",
              {"cluster.slot_us: found 100 with barrier = true", "0, or barrier = false"}),
    wrong_key("Timeout", "timeout_ms = 0", {"cluster.timeout_ms", "1..3600000"}),
    wrong_key("JoinWait", "join_wait_ms = -1", {"cluster.join_wait_ms", "0..3600000"}),
    wrong_key("Quorum", "quorum = \"half\"", {"cluster.quorum: found the string \"half\"", "\"managers\" or \"none\""}),
    wrong_key("Silence", "silence_ms = 99", {"cluster.silence_ms", "100..3600000"}),
    wrong_key("Return", "return_ms = 3600001", {"cluster.return_ms", "0..3600000"}),
    wrong_key("Leave", "leave_ms = 0.5", {"cluster.leave_ms", "0..3600000"}),
    wrong_key("Alone", "alone_ms = 3600001", {"cluster.alone_ms", "0..3600000"}),
    wrong_key("Memory", "memory = \"1KiB\"", {"cluster.memory", "1MiB to 16TiB"}),
    wrong_key("Transports", "transports = \"tcp, sm\"", {"cluster.transports: found \"tcp, sm\"", "\"tcp,sm\""}),
    wrong_key("TransportsEmpty", "transports = \"tcp,,sm\"", {"\"tcp,,sm\"", "commas between"}),
    wrong_key("Misspelt", "blok = 4", {"\"blok\"", "did you mean \"block\"?"}),
    wrong_key("ListOfAnotherOrder", "list = [\"left\"]", {"cluster.list", "order = \"listed\""}),
    wrong_cluster("NoList", {{"[cluster]", "[cluster] #!"}, {"block = 4", "order = \"listed\""}},
                  {"cluster.list: found nothing", "each once"}),
    wrong_list("ListUnknown", R"(["left", "rigth", "first", "second"])",
               {"cluster.list: found \"rigth\"; did you mean \"right\"?", "\"left\", \"right\""}),
    wrong_list("ListTwice", R"(["left", "right", "left", "first", "second"])",
               {"cluster.list: found \"left\" twice", "each builder once"}),
    wrong_list("ListShort", R"(["left", "right", "first"])",
               {"cluster.list: found a list without \"second\"", "each readout node"}),
    wrong_list("ListType", "[1]", {"cluster.list: found the integer 1", "the name of a node, as a string"}),
    wrong_cluster("ListManager",
                  {{"block = 4", "order = \"listed\"\nlist = [\"left\", \"chief\"] #!"},
                   {"[[port]]", "[[node]]\nname = \"chief\"\naddress = \"h:1\"\nrole = \"manager\"\n[[port]]"}},
                  {"cluster.list: found \"chief\", which only manages", "\"first\" or \"second\""})};
INSTANTIATE_TEST_SUITE_P(Cluster, ClusterConfigError, testing::ValuesIn(cluster_cases), case_name);

const std::vector<Case> nodes_cases{
    wrong_cluster("WithoutCluster", {{"[cluster]\nblock = 4\n[[node]]", "[[node]] #!"}},
                  {"node: found [[node]] without [cluster]", "[cluster] beside it"}),
    Case{"NotTables",
         udp_text,
         {{"[[port]]", "node = 1 #!\n[cluster]\n[[port]]"}},
         {"node: found the integer 1", "[[node]]"}},
    wrong_cluster("NoName", {{"[[node]]\nname = \"left\"", "[[node]] #!"}}, {"node.name: found nothing"}),
    wrong_cluster("Name", {{"\"left\"", "\"le ft\" #!"}}, {"node.name", "1 to 64 letters"}),
    wrong_cluster("NameTwice", {{"\"right\"", "\"left\" #!"}},
                  {"node.name: found \"left\", the name of the node at line 3", "a name of its own"}),
    wrong_cluster("NoAddress", {{"[[node]]", "[[node]] #!"}, {"address = \"127.0.0.1:7471\"\n", ""}},
                  {"node.address: found nothing", "\"HOST:PORT\""}),
    wrong_cluster("AddressTwice", {{"127.0.0.1:7472\"", "127.0.0.1:7471\" #!"}},
                  {"node.address: found \"127.0.0.1:7471\", the address of the node at line 3"}),
    wrong_address("AddressWithoutPort", "127.0.0.1", "as \"10.0.0.1:7471\""),
    wrong_address("AddressPortZero", "127.0.0.1:0", "\"HOST:PORT\""),
    wrong_address("AddressPortLarge", "127.0.0.1:65536", "\"HOST:PORT\""),
    wrong_address("AddressWithoutHost", ":7471", "\"HOST:PORT\""),
    wrong_address("AddressBareV6", "fd00::1:7471", "\"[V6]:PORT\""),
    wrong_address("AddressOpenV6", "[fd00::1:7471", "\"[V6]:PORT\""),
    wrong_address("AddressV4InBrackets", "[10.0.0.1]:7471", "\"[V6]:PORT\""),
    wrong_address("AddressUrl", "tcp://h:7471", "\"HOST:PORT\""),
    wrong_address("AddressAny", "0.0.0.0:7471", "at which the other nodes reach"),
    wrong_address("AddressAnyV6", "[::]:7471", "at which the other nodes reach"),
    wrong_cluster("NoRole", {{"[[node]]", "[[node]] #!"}, {"role = \"readout\"\n", ""}},
                  {"node.role: found nothing", "\"readout\", \"builder\" or \"manager\""}),
    wrong_cluster("Role", {{"role = \"readout\"", "role = \"reader\" #!"}},
                  {"node.role: found the string \"reader\"", "\"readout\", \"builder\" or \"manager\""}),
    wrong_cluster("Manages", {{"role = \"readout\"", "role = \"readout\"\nmanages = 1 #!"}},
                  {"node.manages", "true or false"}),
    wrong_cluster("ManagerThatDoesNot", {{"role = \"readout\"", "role = \"manager\"\nmanages = false #!"}},
                  {"node.manages: found false with role = \"manager\"", "nothing else"}),
    wrong_cluster("WeightOfAReadoutNode", {{"role = \"readout\"", "role = \"readout\"\nweight = 2 #!"}},
                  {"node.weight: found the integer 2", "only builders are given blocks"}),
    wrong_cluster("WeightOfNothing", {{"role = \"builder\"", "role = \"builder\"\nweight = 0 #!"}},
                  {"node.weight: found the integer 0", "1..100"}),
    wrong_cluster("WeightInStep",
                  {{"block = 4", "block = 4\nstrategy = \"push\"\nbarrier = true"},
                   {"role = \"builder\"", "role = \"builder\"\nweight = 3 #!"}},
                  {"node.weight: found 3 with barrier = true", "as many turns"}),
    wrong_cluster("WeightByTime",
                  {{"block = 4", "block = 4\nstrategy = \"push\"\nslot_us = 100"},
                   {"role = \"builder\"", "role = \"builder\"\nweight = 3 #!"}},
                  {"node.weight: found 3 with slot_us", "as many turns"}),
    wrong_cluster("SpareReadoutNode", {{"role = \"readout\"", "role = \"readout\"\nspare = true #!"}},
                  {"node.spare: found true", "would be missing"}),
    wrong_cluster("Misspelt", {{"role = \"readout\"", "rolle = \"readout\" #!"}},
                  {"did you mean \"role\"?", "manages"})};
INSTANTIATE_TEST_SUITE_P(Nodes, ClusterConfigError, testing::ValuesIn(nodes_cases), case_name);

const std::string builder = "role = \"builder\"";

const std::vector<Case> across_cases{
    Case{"NoNodes",
         udp_text,
         {{"[[port]]", "[cluster] #!\n[[port]]"}},
         {"cluster: found no [[node]] with role = \"readout\""}},
    wrong_cluster("NoReadout",
                  {{"[cluster]", "[cluster] #!"}, {"\"readout\"", "\"builder\""}, {"\"readout\"", "\"builder\""}},
                  {"cluster: found no [[node]] with role = \"readout\"; accepted: at least one"}),
    wrong_cluster("NoBuilder",
                  {{"[cluster]", "[cluster] #!"}, {"\"builder\"", "\"manager\""}, {"\"builder\"", "\"manager\""}},
                  {"cluster: found no [[node]] with role = \"builder\""}),
    wrong_cluster("NobodyManages",
                  {{"[cluster]", "[cluster] #!"},
                   {builder + "\n", builder + "\nmanages = false\n"},
                   {builder + "\n[[port]]", builder + "\nmanages = false\n[[port]]"}},
                  {"no [[node]] that manages", "at least one"}),
    wrong_cluster("OnlySparesBuild",
                  {{"[cluster]", "[cluster] #!"},
                   {builder + "\n", builder + "\nspare = true\n"},
                   {builder + "\n[[port]]", builder + "\nspare = true\n[[port]]"}},
                  {"only spares among the nodes that build", "at least one that is none"}),
    wrong_cluster("OnlySparesManage",
                  {{"[cluster]", "[cluster] #!"},
                   {builder + "\n", builder + "\nspare = true\n"},
                   {builder + "\n[[port]]", builder + "\nmanages = false\n[[port]]"}},
                  {"only spares among the nodes that manage", "at least one that is none"}),
    wrong_cluster("StreamWithoutNode", {{"[[stream]]", "[[stream]] #!"}, {"node = \"left\"\n", ""}},
                  {"stream.node: found nothing", "a readout node: \"left\" or \"right\""}),
    wrong_cluster("StreamOfNobody", {{"node = \"left\"", "node = \"lefft\" #!"}},
                  {"stream.node: found \"lefft\"; did you mean \"left\"?", "\"left\" or \"right\""}),
    wrong_cluster("StreamOfABuilder", {{"node = \"left\"", "node = \"first\" #!"}},
                  {"stream.node: found \"first\", a builder", "\"left\" or \"right\""}),
    wrong_cluster(
        "ReadoutWithoutStream",
        {{"[[node]]\nname = \"right\"", "[[node]] #!\nname = \"right\""}, {"node = \"right\"", "node = \"left\""}},
        {"node.name: found \"right\", at which no stream arrives", "node = \"right\""}),
    wrong_cluster("FewerSources", {{"sources = 4", "sources = 3 #!"}},
                  {"events.sources: found 3", "4, all sources of all streams"}),
    wrong_cluster("MoreSources", {{"sources = 4", "sources = 5 #!"}}, {"events.sources: found 5", "4, all"}),
    wrong_cluster("PathWithoutNode", {{"data/{node}/{run}\"", "data/{run}\" #!"}},
                  {"sink.path: found \"data/{run}\"", "{node}", "several builders", "share a file system"}),
    wrong_cluster("PacketsWithoutNode",
                  {{"[events]", "[[sink]]\nkind = \"pcapng\"\npath = \"{run}.pcapng\" #!\n[events]"}},
                  {"sink.path: found \"{run}.pcapng\"", "{node}", "several readout nodes"}),
    wrong_cluster("OnlyPackets", {{"[cluster]", "[cluster] #!"}, {"kind = \"events\"", "kind = \"pcapng\""}},
                  {"sink: found only sinks of kind \"pcapng\"", "for the builders"}),
    wrong_cluster(
        "OneDeviceTwiceOnANode",
        {{"[[port]]\nname = \"det1\"", "[[port]] #!\nname = \"det1\""},
         {"[events]",
          "[[stream]]\nport = \"det1\"\nnode = \"left\"\ntransport = \"udp\"\nudp_dst = 1\n"
          "format = \"ejfat\"\n[events]"},
         {"sources = 4", "sources = 5"}},
        {"port.device: found \"net_null0\", the device of port \"det0\" at line 19", "node \"left\" has both"}),
    wrong_cluster("SameUdpPortOnANode",
                  {{"[events]",
                    "[[stream]]\nport = \"det0\"\nnode = \"left\"\ntransport = \"udp\"\n"
                    "udp_dst = 50002 #!\nformat = \"ejfat\"\n[events]"},
                   {"sources = 4", "sources = 5"}},
                  {"stream.udp_dst: found 50002"}),
    wrong_cluster("SinkOfItself", {{"kind = \"events\"", "kind = \"cluster\" #!"}},
                  {"sink.kind: found \"cluster\"", "\"events\", \"hdf5\"", "by itself"}),
    Case{"NodeInAPathWithoutCluster",
         udp_text,
         {{"{run:06}\"", "{node}-{run:06}\" #!"}},
         {"sink.path: found {node} where there is no [cluster]", "a path without it"}},
    Case{"NodeOfAStreamWithoutCluster",
         udp_text,
         {{udp_dst, "node = \"left\" #!\n" + udp_dst}},
         {"stream.node: found the string \"left\"", "[cluster], and there is none"}}};
INSTANTIATE_TEST_SUITE_P(Across, ClusterConfigError, testing::ValuesIn(across_cases), case_name);

TEST(ClusterConfig, HasAtMost1024Nodes) {
    const auto with = [](int builders) {
        std::string more;
        for (int i = 0; i < builders; ++i)
            more += "[[node]]\nname = \"b" + std::to_string(i) + "\"\naddress = \"h:" + std::to_string(i + 1) +
                    "\"\nrole = \"builder\"\n";
        return edited(cluster_text, {{"[[port]]", more + "[[port]]"}});
    };
    EXPECT_EQ(parse_config(with(1020), "t").cluster->nodes.size(), 1024U);
    EXPECT_NE(
        usage_error_of([&] { parse_config(with(1021), "t"); }).find("node: found 1025 nodes; accepted: at most 1024"),
        std::string::npos);
}

}  // namespace
}  // namespace weir::config::test
