// The cluster against an oracle: random schedules, delays, messages that overtake each other, death and return at any
// moment, slow nodes. WEIR_MODEL_RUNS sets how many runs there are, WEIR_MODEL_SEED with which they begin.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "effort.hpp"
#include "world.hpp"

namespace weir::cluster::test {
namespace {

constexpr Block events_of_a_run = 40;

std::uint64_t number_of(const char* variable, std::uint64_t usual) {
    const char* const set = std::getenv(variable);
    return set == nullptr ? usual : std::strtoull(set, nullptr, 10);
}

Settings random_settings(std::mt19937_64& random) {
    Settings settings;
    settings.nodes = static_cast<std::uint16_t>(2 + random() % 5);
    const bool folded = random() % 2 == 0 || settings.nodes < 3;
    for (NodeId node = 0; node < settings.nodes; ++node) {
        if (folded || node % 2 == 0) settings.readouts.insert(node);
        if (folded || node % 2 == 1) settings.builders.insert(node);
        if (node == 0 || random() % 4 != 0) settings.managers.insert(node);
    }
    for (NodeId node = 2; node < settings.nodes; ++node)  // some builder is none
        if (!settings.readouts.contains(node) && random() % 4 == 0) settings.spares.insert(node);
    const bool alike = random() % 2 == 0;
    for (NodeId node = 0; node < settings.nodes; ++node)
        settings.weights.push_back(alike ? 1 : static_cast<std::uint32_t>(1 + random() % 5));
    settings.strategy = random() % 2 == 0 ? Strategy::pull : Strategy::push;
    settings.keep = random() % 2 == 0 ? Keep::assembled : Keep::written;
    settings.order = static_cast<Order>(random() % 3);
    if (settings.order == Order::listed)
        for (NodeId node = 0; node < settings.nodes; ++node)
            settings.list.insert(settings.list.begin() + static_cast<std::ptrdiff_t>(random() % (node + 1U)), node);
    settings.credits = static_cast<std::uint32_t>(1 + random() % 8);
    settings.parallel = static_cast<std::uint32_t>(1 + random() % 3);
    settings.sends = static_cast<std::uint32_t>(random() % 4);
    settings.barrier = random() % 2 == 0;
    settings.timeout_ns = 400 * core::ns_per_ms;
    settings.join_wait_ns = 200 * core::ns_per_ms;
    if (random() % 3 == 0) settings.slot_ns = core::ns_per_ms / 2;
    settings.seed = random();
    settings.tellers = random() % 2 == 0 ? 0 : 16;
    settings.witness_wait_ns = 4 * core::ns_per_ms;  // to the silence of the world as it is to that of a run
    settings.block = random() % 2 == 0 ? 1 : 2 + random() % 4;
    return settings;
}

/// Of any role, but not the last one. Whoever waits for one of them waits for longer than the run lasts.
void leave_some_out(Settings& settings, std::mt19937_64& random) {
    for (NodeId node = 2; node < settings.nodes; ++node)
        if (random() % 2 == 0) settings.left_out.insert(node);
    settings.join_wait_ns = 1000 * core::ns_per_s;
}

World::Outcome run_one(std::uint64_t seed, const Faults& faults) {
    std::mt19937_64 random(seed);
    Settings settings = random_settings(random);
    if (settings.slot_ns > 0) settings.barrier = false, settings.strategy = Strategy::push;
    if (settings.slot_ns > 0 && settings.order == Order::random) settings.order = Order::linear;
    if (faults.left_out) leave_some_out(settings, random);
    if (faults.manager_dies) settings.spares = {};              // nobody waits for them, so they may come late
    if (faults.takes_no_parts) settings.barrier = false;        // who keeps step waits for the slowest
    if (faults.stalls) settings.join_wait_ns = core::ns_per_s;  // longer than a connection takes, always
    if (settings.barrier || settings.slot_ns > 0) settings.weights.clear();
    World world(settings, faults, events_of_a_run, seed);
    world.run();
    return world.outcome();
}

/// The sum of the outcomes of so many runs, each with a seed of its own.
World::Outcome run_many(std::uint64_t usual, const Faults& faults) {
    const std::uint64_t first = number_of("WEIR_MODEL_SEED", 1);
    const std::uint64_t count = number_of("WEIR_MODEL_RUNS", weir::test::repeated(usual, {.sanitized = 10}));
    World::Outcome all{.runs = 0};
    for (std::uint64_t seed = first; seed < first + count; ++seed) all += run_one(seed, faults);
    EXPECT_EQ(all.runs, count);
    return all;
}

TEST(ClusterModel, WithoutFaultsEveryBlockIsBuiltOnceAndWhole) {
    const World::Outcome all = run_many(300, {});
    EXPECT_GT(all.pieces, 2 * all.runs);
    EXPECT_EQ(all.built, all.runs * events_of_a_run);
    EXPECT_EQ(all.complete, all.built);
    EXPECT_EQ(all.lost, 0U);
}

TEST(ClusterModel, WhatANodeDidNotHaveIsMissingAndNothingElse) {
    const World::Outcome all = run_many(300, {.not_taken = 0.2});
    EXPECT_GT(all.built, all.complete);
    EXPECT_GT(all.complete, 0U);
}

/// Those that a run is started without may come after all, at any time.
TEST(ClusterModel, NobodyWaitsForWhoIsLeftOut) {
    const World::Outcome all = run_many(300, {.left_out = true});
    EXPECT_EQ(all.built, all.runs * events_of_a_run);
    EXPECT_GT(all.complete, 0U);
    EXPECT_EQ(all.lost, 0U);
}

TEST(ClusterModel, SlowNodesAndStalledMessagesCostPartsAtMost) {
    const World::Outcome all = run_many(300, {.not_taken = 0.05, .slow_node = true, .stalls = true});
    EXPECT_GT(all.complete, all.built / 4);
}

/// However long parts wait for each other on their way, the nodes that have them live.
TEST(ClusterModel, ASlowNetworkLosesNothing) {
    const World::Outcome all = run_many(300, {.slow_links = true});
    EXPECT_EQ(all.built, all.runs * events_of_a_run);
    EXPECT_EQ(all.complete, all.built);
    EXPECT_EQ(all.lost, 0U);
}

/// Numbers that nobody has cost nothing, whoever manages.
TEST(ClusterModel, NumbersMayLeap) {
    const World::Outcome all = run_many(300, {.jumps = true});
    EXPECT_EQ(all.built, all.runs * events_of_a_run);
    EXPECT_EQ(all.complete, all.built);
    EXPECT_EQ(all.lost, 0U);
    EXPECT_LE(all.assigned, all.built);
    const World::Outcome with_deaths = run_many(1000, {.crashes = 0.7, .not_taken = 0.2, .jumps = true});
    EXPECT_GT(with_deaths.deaths, with_deaths.runs);
    EXPECT_LT(with_deaths.assigned, 3 * events_of_a_run * with_deaths.runs);
}

/// Those that are left manage, build, and have nobody to ask what there was.
TEST(ClusterModel, AllThatReadOutMayDieAtOnce) {
    const World::Outcome all = run_many(1000, {.not_taken = 0.1, .jumps = true, .readouts_die = true});
    EXPECT_GT(all.deaths, all.runs / 2);
    EXPECT_GT(all.built, 10 * all.runs);
    EXPECT_LT(all.assigned, 3 * events_of_a_run * all.runs);
}

/// Blocks of which the smaller part was told that they count before it could see that it is one may be there twice: its
/// manager soon takes a witness that is in this part as well.
TEST(ClusterModel, WhereANetworkFallsApartOnePartGoesOn) {
    const World::Outcome all = run_many(2000, {.parts = true});
    EXPECT_GT(all.built, 25 * all.runs);
    EXPECT_LE(all.built_twice, 1 + all.built / 500);
}

/// As after a reboot without a clock. Whoever knows of a later life says so, and the next one is later still.
TEST(ClusterModel, ANodeWhoseClockIsBehindComesBack) {
    const World::Outcome all = run_many(1000, {.crashes = 0.7, .clocks_are_lost = true});
    EXPECT_GT(all.turned_away, all.runs / 5);
    EXPECT_GT(all.built, 30 * all.runs);
    EXPECT_LE(all.built_twice, 1 + all.built / 5000);
}

/// Each part would take those that it never saw for nodes that were not started.
TEST(ClusterModel, WhereANetworkIsInPartsAtTheStartOnePartBegins) {
    const World::Outcome all = run_many(2000, {.parts_at_start = true});
    EXPECT_GT(all.built, 20 * all.runs);
    EXPECT_EQ(all.built_twice, 0U);
}

/// Whoever stands still for too long offers again what it has, and blocks that nobody was given meanwhile have it.
TEST(ClusterModel, WhatASilentNodeHasIsNotLostWithItsLife) {
    const World::Outcome all = run_many(1000, {.silences = 0.7});
    EXPECT_GT(all.offered_again, all.runs / 2);
    EXPECT_GT(all.sent_again, all.offered_again / 20);
    EXPECT_LE(all.built_twice, 1 + all.built / 5000);
    run_many(1000, {.crashes = 0.3, .not_taken = 0.1, .silences = 0.5});
}

TEST(ClusterModel, ABuilderThatTakesNoPartsHoldsUpNobody) {
    const World::Outcome all = run_many(300, {.takes_no_parts = true});
    EXPECT_GT(all.built, all.complete);
    EXPECT_GT(all.complete, all.built / 2);
}

TEST(ClusterModel, WhoeverDiesTheOthersGoOnAndEachLossHasACause) {
    const World::Outcome all = run_many(2000, {.crashes = 0.7});
    EXPECT_GT(all.deaths, all.runs);
    EXPECT_GT(all.managers, all.runs);
    EXPECT_GT(all.built, 30 * all.runs);
    // Only where a builder, the manager that had its word and the witness went away together.
    EXPECT_LE(all.built_twice, 1 + all.built / 10000);
}

TEST(ClusterModel, TheNextManagerTakesOverAtOnce) {
    const World::Outcome all = run_many(1000, {.come_back = false, .manager_dies = true});
    EXPECT_GT(all.deaths, all.runs / 2);
    EXPECT_LT(all.longest_interregnum_ns, 100 * core::ns_per_ms);  // the news of the death take 30 ms
}

TEST(ClusterModel, WhoStaysAwayIsDoneWithout) {
    const World::Outcome all = run_many(1000, {.crashes = 0.5, .come_back = false});
    EXPECT_GT(all.deaths, all.runs / 2);
}

/// Also the manager, before others have heard from it that the run has ended.
TEST(ClusterModel, WhoeverLeavesFirstTheOthersHearOfTheEnd) {
    run_many(1000, {.leaves = true});
    run_many(1000, {.slow_node = true, .stalls = true, .leaves = true});
    run_many(1000, {.crashes = 0.5, .come_back = false, .leaves = true});
}

/// Nor is anything done twice, whoever of them manages.
TEST(ClusterModel, BuildersThatLeaveInOrderCostNothing) {
    const World::Outcome all = run_many(2000, {.drains = 1.5});
    EXPECT_GT(all.drained, all.runs / 4);
    EXPECT_EQ(all.built, all.runs * events_of_a_run);
    EXPECT_EQ(all.complete, all.built);
    EXPECT_EQ(all.lost, 0U);
    EXPECT_EQ(all.built_twice, 0U);
}

constexpr Faults everything{
    .crashes = 1.0, .not_taken = 0.05, .slow_node = true, .stalls = true, .silences = 0.5, .drains = 0.5};

TEST(ClusterModel, EverythingAtOnce) {
    const World::Outcome all = run_many(1000, everything);
    EXPECT_GT(all.deaths, all.runs);
    EXPECT_GT(all.drained, all.runs / 20);
}

/// Each was wrong once, and is so rare that the others do not come by it.
TEST(ClusterModel, RunsThatWentWrong) {
    // A builder that came back ignored what it had known to be over.
    EXPECT_NO_THROW(run_one(19428, everything));
    // A manager that had its quorum again waited for a node that waited for it.
    EXPECT_NO_THROW(run_one(89971, {.crashes = 0.3, .not_taken = 0.1, .silences = 0.5}));
    // Who had the first part of all died before the run had begun.
    EXPECT_NO_THROW(run_one(29820, {.not_taken = 0.1, .jumps = true, .readouts_die = true}));
    // A block waited for a life of a node that its builder had never seen.
    EXPECT_NO_THROW(run_one(66499, {.crashes = 0.7, .clocks_are_lost = true}));
}

}  // namespace
}  // namespace weir::cluster::test
