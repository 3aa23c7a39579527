// Where DPDK's memory lies on machines with several nodes, and what is said where a node has too few hugepages.
#include "plan/memory_plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "config/node_view.hpp"
#include "core/error.hpp"
#include "fake_host.hpp"
#include "plan/plan.hpp"

namespace weir::plan {

namespace {

using test::FakeHost;

constexpr const char* two_ports = R"(
[[port]]
name = "det0"
device = "0000:3b:00.0"
queues = 2
[[port]]
name = "det1"
device = "0000:af:00.0"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = "50001-50004"
format = "jungfrau"
[[stream]]
port = "det1"
transport = "udp"
udp_dst = "50001-50002"
format = "jungfrau"
[events]
sources = 6
memory = "256MiB"
[[sink]]
kind = "null"
)";

Plan plan_of(const PlanInput& input, const std::string& text = two_ports) {
    const config::RunConfig config = config::parse_config(text, "test.toml");
    return make_plan(config, std::vector<stages::SourceGeometry>(config.sources.size(), {1U << 20U, 8192}), input);
}

PlanInput two_nodes() {
    PlanInput input;
    input.host = FakeHost{.nodes = 2, .cores_per_node = 8}.make();
    input.port_nodes = {1, 0};
    return input;
}

std::uint64_t sum(const std::vector<std::uint64_t>& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

TEST(MemoryPlan, CountsTheFlightRecorder) {
    const std::string recorder = "[[sink]]\nkind = \"pcapng\"\npath = \"p\"\nmemory = \"512MiB\"\n";
    const MemoryNeed without = plan_of(two_nodes()).memory;
    const MemoryNeed with = plan_of(two_nodes(), two_ports + recorder).memory;
    EXPECT_EQ(without.record_bytes, 0U);
    EXPECT_EQ(with.record_bytes, std::uint64_t{512} << 20U);
    EXPECT_GE(with.sum(), without.sum() + with.record_bytes);
    EXPECT_NE(with.text().find("flight recorder 512 MiB"), std::string::npos) << with.text();
}

TEST(MemoryPlan, CountsRingsThatTheKernelFills) {
    const auto need_of = [](const std::string& device) {
        const std::string text = "[[port]]\nname = \"a\"\ndevice = \"" + device + R"("
[[stream]]
port = "a"
transport = "udp"
udp_dst = 50001
format = "jungfrau"
[events]
sources = 1
[[sink]]
kind = "null"
)";
        PlanInput input;
        input.host = FakeHost{.nodes = 1, .cores_per_node = 8}.make();
        return plan_of(input, text).memory;
    };
    EXPECT_EQ(need_of("net_af_packet,iface=det0").kernel_rings_bytes, 0U);
    EXPECT_EQ(need_of("kernel,iface=det0").kernel_rings_bytes, std::uint64_t{64} << 20U);
    const MemoryNeed large = need_of("kernel,iface=det0,ring=512");
    EXPECT_EQ(large.kernel_rings_bytes, std::uint64_t{512} << 20U);
    EXPECT_GE(large.sum(), need_of("kernel,iface=det0").sum() + (std::uint64_t{448} << 20U));
    EXPECT_NE(large.text().find("rings of kernel devices 512 MiB"), std::string::npos) << large.text();
}

TEST(MemoryPlan, APoolForEachLcoreWithQueuesOnTheNodeOfTheCard) {
    const Plan plan = plan_of(two_nodes());
    ASSERT_EQ(plan.rx, (std::vector<std::uint32_t>{8, 9, 1}));
    ASSERT_EQ(plan.pools.size(), 3U);
    std::uint32_t buffers = 0;
    for (std::uint32_t rx = 0; rx < 3; ++rx) {
        EXPECT_EQ(plan.pools[rx].rx, rx);
        EXPECT_EQ(plan.pools[rx].node, rx < 2 ? 1 : 0);
        EXPECT_GT(plan.pools[rx].buffers, plan.buffers_per_rx + 1024)
            << "messages, descriptors, and what is on its way";
        buffers += plan.pools[rx].buffers;
    }
    EXPECT_EQ(plan.pool_buffers, buffers);
    EXPECT_EQ(plan.warnings, std::vector<std::string>{});
}

TEST(MemoryPlan, WhatEachNodeTakesAddsUpToAllOfIt) {
    const Plan plan = plan_of(two_nodes());
    ASSERT_EQ(plan.node_memory_bytes.size(), 2U);
    EXPECT_EQ(sum(plan.node_memory_bytes), plan.eal_memory_bytes);
    for (std::size_t node = 0; node < 2; ++node)
        for (const Plan::Pool& pool : plan.pools)
            if (pool.node == static_cast<int>(node)) {
                EXPECT_GT(plan.node_memory_bytes[node], std::uint64_t{pool.buffers} * plan.room_bytes);
            }
    EXPECT_NE(plan.text().find("in 3 pools, one for each lcore with queues"), std::string::npos);
    EXPECT_NE(plan.text().find("\n  node 1: "), std::string::npos);
}

TEST(MemoryPlan, ANodeWithoutHugepagesIsNamedAndTheMemoryTakenElsewhere) {
    PlanInput input = two_nodes();
    input.host.nodes[1].hugepage_bytes = std::uint64_t{96} << 20U;
    input.host.nodes[1].hugepage_free_bytes = std::uint64_t{64} << 20U;
    const Plan plan = plan_of(input);
    EXPECT_EQ(plan.node_memory_bytes[1], 0U) << "not forced at the start";
    EXPECT_GT(plan.node_memory_bytes[0], 0U);
    ASSERT_EQ(plan.warnings.size(), 1U);
    EXPECT_NE(plan.warnings[0].find("NUMA node 1 has 64 MiB of free hugepages"), std::string::npos) << plan.warnings[0];
    EXPECT_NE(plan.warnings[0].find("node1/hugepages"), std::string::npos) << plan.warnings[0];
}

TEST(MemoryPlan, WhatReducersHoldIsSaidBesideWhatDpdkTakes) {
    Plan plan = plan_of(two_nodes());
    EXPECT_EQ(plan.text().find("reducers"), std::string::npos);
    plan.reduce.calibration_bytes = 24U << 20U;
    plan.reduce.pedestal_bytes = (68U << 20U) + 1;
    EXPECT_NE(plan.text().find("\nreducers: 93 MiB of ordinary memory (calibration 24 MiB, pedestals 69 MiB)\n"),
              std::string::npos)
        << plan.text();
}

/// Sources whose message sizes are not known, and more lines of [events].
std::string of_sources(std::uint32_t count, const std::string& events = "") {
    return fmt::format(R"(
[[port]]
name = "det0"
device = "net_null0"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = 19522
format = "ejfat"
source_by = "header"
source_ids = "0-{}"
[events]
sources = {}
{}
[[sink]]
kind = "null"
)",
                       count - 1, count, events);
}

Plan plan_of_sizes_unknown(const std::string& text, std::uint64_t memory_bytes = 0) {
    config::RunConfig config = config::parse_config(text, "test.toml");
    if (memory_bytes > 0) config.events.memory_bytes = memory_bytes;
    PlanInput input;
    input.host = FakeHost{.nodes = 1, .cores_per_node = 2}.make();
    return make_plan(config, std::vector<stages::SourceGeometry>(config.sources.size()), input);
}

TEST(MemoryPlan, EveryPartIsNamedAndInTheSum) {
    const Plan plan = plan_of(two_nodes());
    const MemoryNeed& need = plan.memory;
    EXPECT_EQ(need.dpdk_bytes, plan.eal_memory_bytes);
    EXPECT_GT(need.bookkeeping_bytes, 0U);
    EXPECT_EQ(need.sum(), need.dpdk_bytes + need.copies_bytes + need.bookkeeping_bytes + need.output_bytes);
    EXPECT_NE(plan.text().find("\nmemory: " + need.text()), std::string::npos) << plan.text();
}

TEST(MemoryPlan, AReplaysBuffersAreInTheSumAndNotTakenByEal) {
    PlanInput input = two_nodes();
    const Plan live = plan_of(input);
    EXPECT_EQ(live.buffer_memory_bytes, live.eal_memory_bytes);
    input.replay = true;
    input.capture_bytes = std::uint64_t{1} << 40U;
    input.capture_packets = std::uint64_t{1} << 27U;
    const Plan plan = plan_of(input);
    ASSERT_EQ(plan.pools.size(), 1U);
    EXPECT_GT(plan.memory.dpdk_bytes, std::uint64_t{plan.pools[0].buffers} * plan.room_bytes);
    EXPECT_LT(plan.eal_memory_bytes, std::uint64_t{plan.pools[0].buffers} * plan.room_bytes / 4);
}

Plan plan_of_sizes(const std::vector<stages::SourceGeometry>& geometry, const std::string& assembly = "auto",
                   bool replay = false) {
    const config::RunConfig config =
        config::parse_config(of_sources(geometry.size(), "assembly = \"" + assembly + "\""), "test.toml");
    PlanInput input;
    input.host = FakeHost{.nodes = 1, .cores_per_node = 2}.make();
    input.replay = replay;
    input.capture_packets = 1000;
    return make_plan(config, geometry, input);
}

TEST(MemoryPlan, SmallPayloadIsCopiedWhereSizesAreNotKnown) {
    constexpr stages::SourceGeometry large{1U << 20U, 8192};
    constexpr stages::SourceGeometry small{4096, 64};
    constexpr stages::SourceGeometry unknown{};
    EXPECT_EQ(plan_of_sizes({large, large}).copies.cells, 0U);
    EXPECT_EQ(plan_of_sizes({large, small}).copies.cells, 0U);
    EXPECT_EQ(plan_of_sizes({unknown, large}, "reference").copies.cells, 0U);

    const Plan live = plan_of_sizes({unknown, large});
    const std::string wasteful = std::to_string(live.room_bytes / 4) + " bytes once half the buffers are held, into ";
    EXPECT_GT(live.copies.cells, 0U);
    EXPECT_EQ(live.copies.at_once_bytes, 128U);
    EXPECT_EQ(live.copies.bytes_max, live.room_bytes / 4);
    EXPECT_EQ(live.copies.above_held, live.buffers_per_rx / 2);
    EXPECT_NE(live.text().find("\ncopies: payload up to 128 bytes, and up to " + wasteful), std::string::npos)
        << live.text();

    const Plan replay = plan_of_sizes({unknown, large}, "auto", true);
    EXPECT_EQ(replay.copies.at_once_bytes, 0U) << "what is read from a file is in the cache";
    EXPECT_EQ(replay.copies.bytes_max, live.copies.bytes_max);
    EXPECT_NE(replay.text().find("\ncopies: payload up to " + wasteful), std::string::npos) << replay.text();
}

TEST(MemoryPlan, CellsSayHowManyEventsAreOpenWhereEverythingIsCopied) {
    constexpr stages::SourceGeometry frame{1U << 20U, 8192};
    const Plan plan = plan_of_sizes({frame, frame}, "copy");
    EXPECT_EQ(plan.copies.at_once_bytes, plan.room_bytes);
    // Seven packets fit into a cell of 64 KiB, which has a head.
    EXPECT_EQ(plan.open_max, plan.cells_for_events * 4 / 5 / (2 * ((128 + 6) / 7)));
    EXPECT_NE(plan.text().find("38 cells for copies for an event"), std::string::npos) << plan.text();
    EXPECT_GT(plan_of_sizes({{4 * 65500, 65500}}, "copy").open_max, 0U) << "a payload that no cell has room for";
}

TEST(MemoryPlan, BookkeepingOfVeryManySourcesIsBounded) {
    constexpr std::uint64_t sources = 65536;
    const Plan plan = plan_of_sizes_unknown(of_sources(sources));
    constexpr std::uint64_t fixed = std::uint64_t{1536} << 20U;  // what memory = "1GiB" takes by itself
    EXPECT_LT(plan.memory.sum(), fixed + sources * (std::uint64_t{40} << 10U)) << plan.text();
    EXPECT_GE(plan.open_max, 8U);
    EXPECT_EQ(plan_of_sizes_unknown(of_sources(sources, "window = 32")).open_max, 32U) << "what the operator asks for";
    const Plan fewer = plan_of_sizes_unknown(of_sources(1024));
    EXPECT_EQ(fewer.open_max, 64U);
    EXPECT_EQ(fewer.queued_max, 272U);
    EXPECT_EQ(fewer.horizon, 1024U);
}

TEST(MemoryPlan, ANodeOfAClusterCountsWhatItHoldsOfEvents) {
    const std::string text = R"(
[cluster]
block = 8
credits = 4
memory = "3GiB"
[[node]]
name = "ru0"
address = "127.0.0.1:7471"
role = "readout"
[[node]]
name = "bu0"
address = "127.0.0.1:7472"
role = "builder"
[[port]]
name = "det0"
device = "sim"
[[stream]]
node = "ru0"
port = "det0"
transport = "udp"
udp_dst = "50001-50002"
format = "jungfrau"
[events]
sources = 2
[[sink]]
kind = "null"
)";
    const config::RunConfig whole = config::parse_config(text, "test.toml");
    const std::vector<stages::SourceGeometry> modules(2, {1U << 20U, 8192});
    PlanInput input = two_nodes();
    input.port_nodes = {0};
    const Plan readout = make_plan(config::readout_view(whole, 0), modules, input);
    EXPECT_EQ(readout.memory.parts_bytes, std::uint64_t{3} << 30U);
    const Plan builder = make_plan(config::builder_view(whole, 1), modules, input);
    EXPECT_EQ(builder.memory.parts_bytes, std::uint64_t{4 * 8 * 2} << 20U);
    EXPECT_NE(builder.text().find("parts of events 64 MiB"), std::string::npos) << builder.text();
    const config::RunConfig view = config::readout_view(whole, 0);
    const auto plan_for = [&](std::uint64_t memory_bytes) {
        config::RunConfig other = view;
        other.events.memory_bytes = memory_bytes;
        return make_plan(other, modules, input);
    };
    try {
        check_memory(view, readout, {true, std::uint64_t{1} << 30U, "the machine"}, plan_for);
        ADD_FAILURE() << "not refused";
    } catch (const core::RunError& error) {
        EXPECT_NE(std::string(error.what()).find("less memory in [cluster]"), std::string::npos) << error.what();
    }
}

TEST(MemoryPlan, AHorizonThatIsSetIsKeptAlsoWhereItIsTheUsualOne) {
    EXPECT_EQ(plan_of_sizes_unknown(of_sources(8192)).horizon, 512U);
    EXPECT_EQ(plan_of_sizes_unknown(of_sources(8192, "horizon = 1024")).horizon, 1024U);
    EXPECT_EQ(plan_of_sizes_unknown(of_sources(8192, "horizon = 1025")).horizon, 1025U);
}

std::string refusal(const std::string& text, std::uint64_t free_bytes) {
    const config::RunConfig config = config::parse_config(text, "test.toml");
    const auto plan_for = [&](std::uint64_t memory_bytes) { return plan_of_sizes_unknown(text, memory_bytes); };
    try {
        check_memory(config, plan_of_sizes_unknown(text), {true, free_bytes, "the machine"}, plan_for);
    } catch (const core::RunError& error) {
        return error.what();
    }
    return {};
}

TEST(MemoryPlan, WhatTheMachineDoesNotHaveIsRefusedWithWhatWouldFit) {
    const std::string text = of_sources(2, "memory = \"300GiB\"");
    constexpr std::uint64_t free_bytes = std::uint64_t{21} << 30U;
    const std::string said = refusal(text, free_bytes);
    EXPECT_NE(said.find("21.0 GiB are free of the machine"), std::string::npos) << said;
    const std::size_t at = said.find("memory = \"");
    ASSERT_NE(at, std::string::npos) << said;
    const std::uint64_t fits = std::stoull(said.substr(at + 10)) << 20U;
    EXPECT_GT(fits, free_bytes / 2);
    EXPECT_LE(plan_of_sizes_unknown(text, fits).memory.sum(), free_bytes);
    EXPECT_GT(plan_of_sizes_unknown(text, fits + (1U << 20U)).memory.sum(), free_bytes) << "not the largest";
    EXPECT_EQ(refusal(text, std::uint64_t{400} << 30U), "");
}

TEST(MemoryPlan, WhereNoMemorySettingHelpsTheSourcesAreNamed) {
    const std::string said = refusal(of_sources(65536), std::uint64_t{256} << 20U);
    EXPECT_NE(said.find("65536 sources"), std::string::npos) << said;
    EXPECT_EQ(said.find("would fit"), std::string::npos) << said;
}

TEST(MemoryPlan, CardsNeedFreeHugepages) {
    PlanInput input = two_nodes();
    for (port::NumaNode& node : input.host.nodes) node.hugepage_free_bytes = std::uint64_t{64} << 20U;
    const config::RunConfig config = config::parse_config(two_ports, "test.toml");
    const auto plan_for = [&](std::uint64_t memory_bytes) {
        config::RunConfig other = config;
        other.events.memory_bytes = memory_bytes;
        return make_plan(other, std::vector<stages::SourceGeometry>(config.sources.size(), {1U << 20U, 8192}), input);
    };
    try {
        check_memory(config, plan_for(config.events.memory_bytes), {}, plan_for);
        FAIL();
    } catch (const core::RunError& error) {
        EXPECT_NE(std::string(error.what()).find("128 MiB are free of hugepages"), std::string::npos) << error.what();
    }
}

TEST(MemoryPlan, OnlyCardsNeedHugepages) {
    std::string text = two_ports;
    for (const char* address : {"0000:3b:00.0", "0000:af:00.0"})
        text.replace(text.find(address), 12, std::string("net_null") + (address[5] == '3' ? "0" : "1"));
    PlanInput input = two_nodes();
    for (port::NumaNode& node : input.host.nodes) node.hugepage_bytes = node.hugepage_free_bytes = 0;
    const Plan plan = plan_of(input, text);
    EXPECT_TRUE(plan.node_memory_bytes.empty());
    EXPECT_EQ(plan.warnings, std::vector<std::string>{});
    EXPECT_EQ(plan.pools.size(), 3U);
}

TEST(MemoryPlan, LcoresThatOnlyAssembleHaveNoPoolAndTheirShareIsNotLost) {
    const std::string lcores = "[lcores]\nrx = [9, 10, 11, 12, 13, 14]\nbuild = [15]\nwork = [15]\n";
    const Plan plan = plan_of(two_nodes(), two_ports + lcores);
    ASSERT_EQ(plan.pools.size(), 3U);
    std::uint32_t buffers = 0;
    for (const Plan::Pool& pool : plan.pools) buffers += pool.buffers;
    EXPECT_GT(buffers, 6 * plan.buffers_per_rx);
}

TEST(MemoryPlan, AReplayHasOnePoolForAll) {
    PlanInput input = two_nodes();
    input.replay = true;
    input.capture_bytes = 1U << 30U;
    input.capture_packets = 1U << 20U;
    const Plan plan = plan_of(input, std::string(two_ports) + "[lcores]\nrx = [1, 2]\n");
    ASSERT_EQ(plan.pools.size(), 1U);
    EXPECT_GT(plan.pools[0].buffers, 2 * plan.buffers_per_rx);
    EXPECT_TRUE(plan.node_memory_bytes.empty());
}

}  // namespace

}  // namespace weir::plan
