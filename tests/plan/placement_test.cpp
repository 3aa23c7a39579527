// What weir proposes on machines of many shapes, number by number; what it warns of; and what must hold on any machine.
#include "plan/placement.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>

#include "fake_host.hpp"
#include "plan/placement_text.hpp"
#include "plan/setup.hpp"

namespace weir::plan {

namespace {

using test::FakeHost;
using Cpus = std::vector<std::uint32_t>;
using Texts = std::vector<std::string>;

PlacementInput with_ports(std::vector<PlacementInput::Port> ports, bool reduces = false) {
    PlacementInput input;
    input.ports = std::move(ports);
    input.reduces = reduces;
    input.writes = true;
    return input;
}

PlacementInput with_lcores(const Cpus& rx, const Cpus& build, const Cpus& work, int node = port::any_node) {
    PlacementInput input =
        with_ports({{"det0", static_cast<std::uint16_t>(std::max<std::size_t>(rx.size(), 1)), node}});
    input.lcores = {rx, build, work, config::IdleMode::spin};
    return input;
}

void expect_lcores(const Placement& placement, const Cpus& rx, const Cpus& build, const Cpus& work) {
    EXPECT_EQ(placement.rx, rx);
    EXPECT_EQ(placement.build, build);
    EXPECT_EQ(placement.work, work);
}

Cpus rx_of_queues(const Placement& placement) {
    Cpus lcores;
    for (const Placement::Queue& queue : placement.queues) lcores.push_back(placement.rx[queue.rx]);
    return lcores;
}

TEST(Placement, FourCpusLeaveTheFirstToTheKernel) {
    const Placement placement = place(FakeHost{}.make(), with_ports({{"det0", 1}}));
    expect_lcores(placement, {1}, {2}, {3});
    EXPECT_TRUE(placement.proposed);
    EXPECT_TRUE(placement.pin);
    EXPECT_EQ(placement.lines, (Texts{"lcore 1: rx det0 queue 0 (node 0, core 1)", "lcore 2: build (node 0, core 2)",
                                      "lcore 3: work (node 0, core 3)", "other threads (writer, control): CPUs 0"}));
    EXPECT_EQ(placement.warnings, Texts{});
}

TEST(Placement, FewerCpusFuseEverythingOnOneThatFloats) {
    for (const std::uint32_t cpus : {1U, 2U, 3U}) {
        const Placement placement =
            place(FakeHost{.cores_per_node = cpus}.make(), with_ports({{"det0", 2}, {"det1", 1}}));
        expect_lcores(placement, {0}, {0}, {0});
        EXPECT_FALSE(placement.pin);
        EXPECT_EQ(placement.queues.size(), 3U);
        EXPECT_EQ(placement.housekeeping.size(), cpus);
        EXPECT_EQ(
            placement.lines.front().find("lcore 0: rx det0 queues 0-1 det1 queue 0, build, work (not bound, CPUs 0"),
            0U);
        EXPECT_EQ(placement.warnings, Texts{});
    }
}

TEST(Placement, FourThreadsOfTwoCoresAreTooFewToo) {
    const Placement placement = place(FakeHost{.cores_per_node = 2, .threads = 2}.make(), with_ports({{"det0", 1}}));
    expect_lcores(placement, {0}, {0}, {0});
    EXPECT_FALSE(placement.pin);
}

TEST(Placement, ThreeCoresWithTwoThreadsShareWhatIsBehindRx) {
    const Placement placement = place(FakeHost{.cores_per_node = 3, .threads = 2}.make(), with_ports({{"det0", 1}}));
    expect_lcores(placement, {1}, {2}, {2});
    EXPECT_EQ(placement.housekeeping, (Cpus{0, 3}));
    EXPECT_EQ(placement.warnings, Texts{});
}

TEST(Placement, EverythingIsOnTheNodeOfTheCard) {
    const Placement placement = place(FakeHost{.nodes = 2, .cores_per_node = 8}.make(), with_ports({{"det0", 4, 1}}));
    expect_lcores(placement, {8, 9, 10, 11}, {12}, {13, 14});
    EXPECT_EQ(rx_of_queues(placement), (Cpus{8, 9, 10, 11}));
    EXPECT_EQ(placement.housekeeping, (Cpus{0, 1, 2, 3, 4, 5, 6, 7, 15}));
    EXPECT_EQ(placement.lines.front(), "lcore 8: rx 0 det0 queue 0 (node 1, core 8)");
    EXPECT_EQ(placement.warnings, Texts{});
}

TEST(Placement, ACardOnEachNodeIsServedOnEach) {
    const Placement placement =
        place(FakeHost{.nodes = 2, .cores_per_node = 6}.make(), with_ports({{"det0", 2, 1}, {"det1", 2, 0}}));
    expect_lcores(placement, {6, 7, 1, 2}, {3}, {4, 5});
    EXPECT_EQ(rx_of_queues(placement), (Cpus{6, 7, 1, 2}));
    EXPECT_EQ(placement.warnings, Texts{});
}

TEST(Placement, SiblingsStayIdleAndWorkersSpillToTheOtherNode) {
    const Placement placement =
        place(FakeHost{.nodes = 2, .cores_per_node = 4, .threads = 2}.make(), with_ports({{"det0", 2, 0}}, true));
    expect_lcores(placement, {1, 2}, {3}, {4, 5, 6, 7});
    EXPECT_EQ(placement.housekeeping, (Cpus{0, 8})) << "not the siblings of lcores";
    EXPECT_EQ(placement.warnings,
              Texts{"lcores 4-7: building or reducing on a NUMA node where nothing is received (rx is on node 0): the "
                    "data cross between the nodes"});
}

TEST(Placement, IsolatedCoresComeFirstAndTheOthersAreLeftAlone) {
    Cpus isolated(8);
    std::iota(isolated.begin(), isolated.end(), 8);
    const Placement placement =
        place(FakeHost{.cores_per_node = 16, .isolated = isolated}.make(), with_ports({{"det0", 2, 0}}, true));
    expect_lcores(placement, {8, 9}, {10}, {11, 12, 13, 14, 15});
    EXPECT_EQ(placement.lines.front(), "lcore 8: rx 0 det0 queue 0 (node 0, core 8, isolated, no tick)");
    EXPECT_EQ(placement.lines.back(), "other threads (writer, control): CPUs 0-7");
    EXPECT_EQ(placement.warnings, Texts{});
}

TEST(Placement, FewIsolatedCoresAreForRx) {
    const Placement placement =
        place(FakeHost{.cores_per_node = 8, .isolated = {6, 7}}.make(), with_ports({{"det0", 2}}));
    expect_lcores(placement, {6, 7}, {1}, {2});
    EXPECT_EQ(placement.housekeeping, (Cpus{0, 3, 4, 5}));
    EXPECT_EQ(placement.warnings, Texts{});
}

TEST(Placement, TheCardsNodeComesBeforeIsolationAndThatIsSaid) {
    const Placement placement =
        place(FakeHost{.nodes = 2, .cores_per_node = 4, .isolated = {4, 5, 6, 7}}.make(), with_ports({{"det0", 1, 0}}));
    expect_lcores(placement, {1}, {2}, {3});
    EXPECT_EQ(placement.warnings,
              Texts{"lcore 1: receiving on CPUs that the kernel gives to other programs too, while CPUs "
                    "4-7 are isolated"});
}

TEST(Placement, KeepsToTheCpusThatTheProcessMayUse) {
    const Placement placement =
        place(FakeHost{.nodes = 2, .cores_per_node = 8, .usable = {4, 5, 6, 7}}.make(), with_ports({{"det0", 1, 1}}));
    expect_lcores(placement, {5}, {6}, {7});
    EXPECT_EQ(placement.housekeeping, Cpus{4});
    EXPECT_EQ(placement.warnings,
              Texts{"port 'det0' is on NUMA node 1, its packets are taken on another (lcore 5): each "
                    "crosses between the nodes (this process may use no CPU of node 1)"});
}

TEST(Placement, MoreQueuesThanCoresShareThemEvenly) {
    const Placement placement = place(FakeHost{.cores_per_node = 5}.make(), with_ports({{"det0", 5}, {"det1", 1}}));
    expect_lcores(placement, {1, 2}, {3}, {4});
    EXPECT_EQ(rx_of_queues(placement), (Cpus{1, 2, 1, 2, 1, 2}));
    EXPECT_EQ(placement.lines.front(), "lcore 1: rx 0 det0 queues 0,2,4 (node 0, core 1)");
}

TEST(Placement, SixtyFourCpusGetBuildersByRxAndWorkersByNeed) {
    PlacementInput input = with_ports({{"det0", 8, 0}, {"det1", 8, 1}}, true);
    input.build_max = 8;
    const Placement placement = place(FakeHost{.nodes = 2, .cores_per_node = 32}.make(), input);
    EXPECT_EQ(placement.rx, (Cpus{1, 2, 3, 4, 5, 6, 7, 8, 32, 33, 34, 35, 36, 37, 38, 39}));
    EXPECT_EQ(placement.build, (Cpus{9, 10, 11, 12}));
    EXPECT_EQ(placement.work.size(), 32U);
    EXPECT_EQ(placement.warnings, Texts{});
    input.reduces = false;
    EXPECT_EQ(place(FakeHost{.nodes = 2, .cores_per_node = 32}.make(), input).work,
              (Cpus{13, 14, 15, 16, 17, 18, 19, 20}));
}

TEST(Placement, AVeryLargeMachineIsUsedAsFarAsTheRingsGo) {
    PlacementInput input = with_ports({{"det0", 60, 0}, {"det1", 60, 1}}, true);
    input.build_max = 8;
    const Placement placement = place(FakeHost{.nodes = 2, .cores_per_node = 60}.make(), input);
    EXPECT_EQ(placement.rx.size(), 32U);
    EXPECT_EQ(placement.build.size(), 8U);
    EXPECT_EQ(placement.work.size(), 9U);
    EXPECT_LE(rings_between(32, 8, 9), input.rings_max);
    EXPECT_EQ(placement.queues.size(), 120U);
}

TEST(Placement, AQuotaCountsAsSoManyCpus) {
    const FakeHost small{.cores_per_node = 16, .cpu_quota = 2.5};
    EXPECT_FALSE(place(small.make(), with_ports({{"det0", 1}})).pin);
    const FakeHost enough{.cores_per_node = 16, .cpu_quota = 4};
    expect_lcores(place(enough.make(), with_ports({{"det0", 8}}, true)), {1}, {2}, {3});
    const PlacementInput input = with_lcores({1, 2, 3}, {4}, {5});
    EXPECT_EQ(place(enough.make(), input).warnings,
              Texts{"5 lcores poll, and the control group allows the time of 4.0 CPUs: the kernel will stop them for "
                    "milliseconds (idle = \"sleep\" helps)"});
}

TEST(Placement, WhatIsLeftOutGoesBesideWhatIsGiven) {
    const port::HostTopology host = FakeHost{.nodes = 2, .cores_per_node = 4}.make();
    PlacementInput input = with_lcores({5}, {}, {});
    expect_lcores(place(host, input), {5}, {4}, {6});
    input = with_lcores({}, {5}, {6}, 1);
    expect_lcores(place(host, input), {4}, {5}, {6});
    expect_lcores(place(FakeHost{.cores_per_node = 2}.make(), with_lcores({1}, {}, {})), {1}, {1}, {1});
}

TEST(Placement, CpusWithoutALcoreNumberAreNotProposed) {
    PlacementInput input = with_ports({{"det0", 1, 1}});
    input.lcore_ids = 6;
    expect_lcores(place(FakeHost{.nodes = 2, .cores_per_node = 4}.make(), input), {4}, {1}, {2});
}

TEST(Placement, AReplayHasOneReaderAndNothingToLose) {
    PlacementInput input = with_ports({{"det0", 4, 1}});
    input.replay = true;
    const Placement placement = place(FakeHost{.nodes = 2, .cores_per_node = 4}.make(), input);
    EXPECT_EQ(placement.rx.size(), 1U);
    EXPECT_TRUE(placement.queues.empty());
    EXPECT_EQ(placement.housekeeping.size(), 8U);
    input.lcores = {{0}, {0}, {0}, config::IdleMode::pause};
    EXPECT_EQ(place(FakeHost{}.make(), input).warnings, Texts{});
}

struct Warned {
    std::string name;
    FakeHost host;
    PlacementInput input;
    Texts warnings;
};

void PrintTo(const Warned& c, std::ostream* out) {
    *out << c.name;
}

class PlacementWarning : public testing::TestWithParam<Warned> {};

TEST_P(PlacementWarning, NamesTheLcoresAndTheReason) {
    EXPECT_EQ(place(GetParam().host.make(), GetParam().input).warnings, GetParam().warnings);
}

INSTANTIATE_TEST_SUITE_P(
    Placement, PlacementWarning,
    testing::Values(
        Warned{"nothing", {.cores_per_node = 8}, with_lcores({1, 2}, {3}, {4}), {}},
        Warned{
            "core_0",
            {.threads = 2},
            with_lcores({4}, {1}, {2}),
            {"lcore 4: receiving on core 0, where interrupts and the kernel's own work are served; the queue fills up "
             "meanwhile"}},
        Warned{"core_0_is_good_enough_for_work", {}, with_lcores({1}, {2}, {0}), {}},
        Warned{"siblings",
               {.threads = 2},
               with_lcores({1, 5}, {2}, {3}),
               {"lcores 1,5 are threads of one physical core: each gets about half of what it does"}},
        Warned{"fused_stages_are_no_siblings", {.threads = 2}, with_lcores({1}, {1}, {1}), {}},
        Warned{
            "far_from_the_card",
            {.nodes = 2},
            with_lcores({1, 2}, {3}, {3}, 1),
            {"port 'det0' is on NUMA node 1, its packets are taken on another (lcores 1-2): each crosses between the "
             "nodes (CPUs of node 1: 4-7)"}},
        Warned{"half_far_is_assigned_to_the_near_one", {.nodes = 2}, with_lcores({1, 5}, {6}, {7}, 1), {}},
        Warned{"far_from_rx",
               {.nodes = 2},
               with_lcores({1, 2}, {5}, {3, 6}),
               {"lcores 5-6: building or reducing on a NUMA node where nothing is received (rx is on node 0): the data "
                "cross between the nodes"}},
        Warned{"no_such_cpu",
               {},
               with_lcores({1}, {9}, {2}),
               {"lcore 9: this machine has no such CPU, and what runs there floats over CPUs 0-3, among the other "
                "threads"}},
        Warned{
            "not_allowed",
            {.usable = {0, 1}},
            with_lcores({1}, {2}, {3}),
            {"lcores 2-3: this process may not use the CPU (affinity or cpuset), and what runs there floats over CPUs "
             "0-1, among the other threads",
             "3 lcores poll on 2 CPUs: they take turns of milliseconds, and idle = \"spin\" never gives one back"}},
        Warned{
            "not_isolated",
            {.isolated = {2, 3}},
            with_lcores({1}, {2}, {3}),
            {"lcore 1: receiving on CPUs that the kernel gives to other programs too, while CPUs 2-3 are isolated"}}),
    [](const testing::TestParamInfo<Warned>& info) { return info.param.name; });

TEST(Placement, IsInTheReport) {
    const port::HostTopology host = FakeHost{.nodes = 2, .isolated = {5, 6, 7}}.make();
    const nlohmann::json topology = topology_json(host);
    EXPECT_EQ(topology["cpus"], "0-7");
    EXPECT_EQ(topology["isolated"], "5-7");
    EXPECT_EQ(topology["nodes"][1]["cpus"], "4-7");
    const nlohmann::json placement = placement_json(host, place(host, with_ports({{"det0", 1, 1}})));
    EXPECT_EQ(placement["lcores"][0],
              nlohmann::json::parse(
                  R"({"lcore": 5, "rx": [0], "build": [], "work": [], "node": 1, "core": 5, "isolated": true})"));
    EXPECT_EQ(placement["housekeeping"], "0-4");
}

TEST(Placement, SourcesAreAssembledOnTheNodeOfTheirPort) {
    config::RunConfig config;
    config.ports.resize(2);
    config.streams.resize(2);
    for (std::uint32_t stream = 0; stream < 2; ++stream) {
        config.streams[stream].port = stream;
        config.streams[stream].first_source = 6 * stream;
        const std::uint32_t count = stream == 0 ? 6 : 2;  // more behind one card than behind the other
        for (std::uint32_t i = 0; i < count; ++i) config.sources.push_back({stream, 50001 + i, ""});
    }
    const PlacementInput input = with_ports({{"det0", 2, 1}, {"det1", 2, 0}});
    const Placement near = place(FakeHost{.nodes = 2, .cores_per_node = 6}.make(), input);
    EXPECT_EQ(make_owners(config, near), (std::vector<std::uint16_t>{0, 0, 0, 1, 1, 1, 2, 3}));
    const Placement anywhere = place(FakeHost{.cores_per_node = 12}.make(), with_ports({{"det0", 2}, {"det1", 2}}));
    EXPECT_EQ(make_owners(config, anywhere), (std::vector<std::uint16_t>{0, 0, 1, 1, 2, 2, 3, 3}));
}

/// What must hold on any machine, for ports with any queues on any nodes.
void check_any(const port::HostTopology& host, const PlacementInput& input, const Placement& placement) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> queues;
    std::uint32_t wanted = 0;
    for (const auto& port : input.ports) wanted += port.queues;
    for (const Placement::Queue& queue : placement.queues) {
        EXPECT_TRUE(queues.insert({queue.port, queue.queue}).second) << "a queue is served twice";
        ASSERT_LT(queue.rx, placement.rx.size());
        ASSERT_LT(queue.queue, input.ports[queue.port].queues);
    }
    EXPECT_EQ(queues.size(), wanted) << "every queue is served";
    EXPECT_FALSE(placement.housekeeping.empty());
    const Cpus lcores = placement.lcores();
    for (const std::uint32_t lcore : lcores) ASSERT_TRUE(host.find(lcore) != nullptr && host.find(lcore)->usable);
    if (!placement.pin) {
        EXPECT_EQ(lcores.size(), 1U);
        return;
    }
    std::set<std::uint32_t> cores;
    for (const std::uint32_t lcore : lcores)
        EXPECT_TRUE(cores.insert(host.find(lcore)->core).second) << "two lcores on one physical core";
    const std::size_t stages = placement.rx.size() + placement.build.size() + placement.work.size();
    EXPECT_TRUE(lcores.size() == stages || (placement.build == placement.work && lcores.size() == stages - 1));
    for (const std::uint32_t cpu : placement.housekeeping) EXPECT_FALSE(cores.contains(host.find(cpu)->core));
    std::map<int, std::set<std::uint32_t>> idle_cores;
    for (const port::Cpu& cpu : host.cpus)
        if (cpu.usable && !cores.contains(cpu.core)) idle_cores[cpu.node].insert(cpu.core);
    for (const Placement::Queue& queue : placement.queues) {
        const int node = input.ports[queue.port].node;
        if (node == port::any_node || host.find(placement.rx[queue.rx])->node == node) continue;
        // The one core that is idle may be the one that is left to the kernel.
        EXPECT_LE(idle_cores[node].size(), 1U) << "crosses although there is room on the device's node";
    }
}

TEST(Placement, HoldsWhatItPromisesOnAnyMachine) {
    const std::uint32_t seed = std::random_device{}();
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto any = [&](std::uint32_t low, std::uint32_t high) {
        return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
    };
    for (int round = 0; round < 3000 && !testing::Test::HasFailure(); ++round) {
        FakeHost fake{.nodes = static_cast<int>(any(1, 4)), .cores_per_node = any(1, 8), .threads = any(1, 2)};
        const std::uint32_t cpus = static_cast<std::uint32_t>(fake.nodes) * fake.cores_per_node * fake.threads;
        for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) {
            if (round % 3 == 1 && any(0, 3) > 0) fake.isolated.push_back(cpu);
            if (round % 2 == 1 && any(0, 3) > 0) fake.usable.push_back(cpu);
        }
        std::vector<PlacementInput::Port> ports(any(1, 4));
        for (auto& port : ports)
            port = {"p", static_cast<std::uint16_t>(any(1, 6)),
                    static_cast<int>(any(0, static_cast<std::uint32_t>(fake.nodes))) - 1};
        PlacementInput input = with_ports(ports, any(0, 1) == 1);
        input.build_max = any(1, 4);
        const port::HostTopology host = fake.make();
        SCOPED_TRACE(testing::Message() << topology_json(host).dump() << " round " << round);
        check_any(host, input, place(host, input));
    }
}

}  // namespace

}  // namespace weir::plan
