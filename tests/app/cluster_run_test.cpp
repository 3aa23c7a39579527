// A run that is spread over the nodes of a cluster, read as one: which folders are, what is there, and what the books
// of the nodes say when they are held side by side.
#include <gtest/gtest.h>

#include "cluster_folder.hpp"

namespace weir::store::test {
namespace {

class ClusterRunTest : public ClusterFolder {};

TEST_F(ClusterRunTest, TheSharesOfAllBuildersAreOneRun) {
    write_all();
    for (const bool quick : {false, true}) {
        const Read all = read(quick);
        EXPECT_TRUE(all.events.all.verified);
        EXPECT_EQ(all.events.all.events, 16U);
        EXPECT_EQ(all.events.all.complete, 16U);
        EXPECT_EQ(all.events.lowest->id, 0U);
        EXPECT_EQ(all.events.highest->id, 15U);
        EXPECT_EQ(all.events.twice, 0U);
        EXPECT_EQ(all.cluster.members.size(), 4U);
        ASSERT_EQ(all.ledger.pairs.size(), 4U);
        for (const ClusterLedger::Pair& pair : all.ledger.pairs) EXPECT_EQ(pair.is_equal(), true) << pair.readout;
        EXPECT_EQ(all.ledger.blocks.balanced, true);
        EXPECT_EQ(all.ledger.lossless, "yes");
        EXPECT_TRUE(all.says("16 events each"));
    }
}

TEST_F(ClusterRunTest, OneRunAloneIsReadToo) {
    write_builder("bu0", events_of({0, 2}), builder_section("bu0", 2));
    const Read one = read();
    EXPECT_EQ(one.events.all.events, 8U);
    EXPECT_EQ(one.ledger.blocks.balanced, std::nullopt);
    EXPECT_TRUE(one.says("bu1 has left no account"));
    EXPECT_EQ(one.ledger.lossless, "unknown");
    EXPECT_TRUE(one.says("there is no report of ru0"));
    // A builder of which nothing is found: its events are missing here.
    EXPECT_FALSE(one.events.all.verified);
    EXPECT_TRUE(one.says("there is no run of bu1"));
    for (const ClusterLedger::Pair& pair : one.ledger.pairs) EXPECT_EQ(pair.is_equal(), std::nullopt);
}

TEST_F(ClusterRunTest, ABuilderThatWasNotNeededIsNotMissed) {
    write_builder("bu0", events_of({0, 1, 2, 3}), builder_section("bu0", 4));
    write_readouts(4, 0);
    const Read all = read();
    EXPECT_TRUE(all.events.all.verified);
    EXPECT_EQ(all.ledger.lossless, "yes");
    EXPECT_FALSE(all.member("bu1").is_found());
}

TEST_F(ClusterRunTest, ASpareThatIsNotThereIsSaidToBeOne) {
    json config = cluster_config();
    config["node"][3]["spare"] = true;
    write_builder("bu0", events_of({0, 1, 2, 3}), builder_section("bu0", 4), config);
    write_readouts(4, 0);
    EXPECT_NE(inspect_folder().text.find("bu1 builder nothing; it is a spare"), std::string::npos)
        << inspect_folder().text;
    const json nodes = json::parse(inspect_folder({"--json"}).text)["cluster"]["nodes"];
    EXPECT_EQ(nodes[3]["spare"], true);
    EXPECT_EQ(nodes[2]["spare"], false);
}

TEST_F(ClusterRunTest, AnEventInTwoRunsIsAnError) {
    std::vector<TestEvent> second = events_of({1, 3});
    second.push_back(events_of({2}).at(1));
    write_builder("bu0", events_of({0, 2}), builder_section("bu0", 2));
    write_builder("bu1", second, builder_section("bu1", 2));
    write_readouts();
    const Read all = read(true);
    EXPECT_EQ(all.events.twice, 1U);
    ASSERT_EQ(all.events.twice_listed.size(), 1U);
    EXPECT_EQ(all.events.twice_listed[0].id, 9U);
    EXPECT_EQ(all.events.twice_listed[0].runs.size(), 2U);
    EXPECT_FALSE(all.events.all.verified);
    EXPECT_TRUE(all.says("event 0:9 is in bu0 and bu1"));
    EXPECT_EQ(inspect_folder().status, 1);
    EXPECT_EQ(inspect_folder({"--quick"}).status, 1);
}

TEST_F(ClusterRunTest, ManyEventsThatAreThereTwiceAreCounted) {
    std::vector<std::uint64_t> blocks;
    for (std::uint64_t i = 0; i < 8; ++i) blocks.push_back(i);
    write_builder("bu0", events_of(blocks), builder_section("bu0", 8));
    write_builder("bu1", events_of(blocks), builder_section("bu1", 8));
    const Read all = read();
    EXPECT_EQ(all.events.twice, 32U);
    EXPECT_EQ(all.events.distinct, 32U);
    EXPECT_EQ(all.events.twice_listed.size(), ClusterEvents::twice_listed_max);
    EXPECT_EQ(all.events.all.problem_count, 32U);
    EXPECT_TRUE(all.says("12 more events are there more than once"));
}

TEST_F(ClusterRunTest, WhatAKilledBuilderLeftCounts) {
    write_builder("bu0", events_of({0, 2}), builder_section("bu0", 2));
    write_builder("bu1", events_of({1, 3}), {});
    write_readouts();
    const Read all = read();
    EXPECT_EQ(all.member("bu1").runs.size(), 1U);
    EXPECT_EQ(all.cluster.runs[all.member("bu1").runs[0]].state, RunState::left);
    EXPECT_EQ(all.events.all.events, 16U);
    EXPECT_EQ(all.ledger.blocks.unaccounted, 2U);
    EXPECT_EQ(all.ledger.blocks.balanced, true);
    EXPECT_EQ(all.ledger.lossless, "yes");
    EXPECT_FALSE(all.events.all.verified);  // it has no manifest, as `weir inspect` of it says
    const ClusterLedger::Pair& pair = all.ledger.pairs.at(1);
    EXPECT_EQ(pair.builder, "bu1");
    EXPECT_EQ(pair.handed_over, 2U);
    EXPECT_EQ(pair.received, std::nullopt);
    EXPECT_EQ(pair.is_equal(), std::nullopt);
}

TEST_F(ClusterRunTest, ARunThatALaterStartHasClosedIsNoCompleteAccount) {
    write_builder("bu0", events_of({0, 2}), builder_section("bu0", 2));
    write_builder("bu1", events_of({1}), {});
    ASSERT_TRUE(recover_run(folder_ / "bu1", {}).has_value());
    write_builder("bu1-again", events_of({3}), builder_section("bu1", 1));
    write_readouts();
    const Read all = read();
    const ClusterRun::Member& builder = all.member("bu1");
    ASSERT_EQ(builder.runs.size(), 2U);
    EXPECT_EQ(all.cluster.runs[builder.runs[0]].state, RunState::interrupted);
    EXPECT_TRUE(builder.account.has_value());
    EXPECT_FALSE(builder.account_is_whole);
    EXPECT_TRUE(all.events.all.verified);
    EXPECT_EQ(all.ledger.blocks.balanced, true);  // one block is found, without an account
    EXPECT_EQ(all.ledger.blocks.unaccounted, 1U);
    EXPECT_EQ(all.ledger.pairs.at(1).is_equal(), std::nullopt);
    EXPECT_EQ(all.ledger.lossless, "yes");
}

TEST_F(ClusterRunTest, AManagerThatIsKilledTakesAlongWhatItAssigned) {
    json section = builder_section("bu1", 2);
    section["manager"] = {{"manages", true}, {"assigned", 1}, {"assigned_again", 0}};
    write_builder("bu0", events_of({0, 2}), {});
    write_builder("bu1", events_of({1, 3}), section);
    write_readouts();
    const Read all = read();
    EXPECT_EQ(all.ledger.blocks.assigned, 1U);
    EXPECT_FALSE(all.ledger.blocks.assigned_is_all);
    EXPECT_EQ(all.ledger.blocks.balanced, std::nullopt);
    EXPECT_TRUE(all.says("bu0 has left no account of what it built and assigned"));
    EXPECT_EQ(all.ledger.lossless, "yes");  // the readout nodes vouch for it
    EXPECT_NE(inspect_folder().text.find("blocks: 1 or more assigned"), std::string::npos);
}

/// It counts what it had built, and the others list what it had not written of that.
TEST_F(ClusterRunTest, ABuilderWhoseSinksFailed) {
    json section = builder_section("bu0", 2);
    lose_block(section, 3, "builder_down");
    json its = builder_section("bu1", 2);
    its["builder"]["blocks"]["given_up"] = 1;
    write_builder("bu0", events_of({0, 2}), section);
    write_builder("bu1", events_of({1}), its);
    write_readouts();
    const Read all = read();
    EXPECT_EQ(all.ledger.blocks.given_up, 1U);
    EXPECT_EQ(all.ledger.blocks.lost, 0U);
    EXPECT_EQ(all.ledger.blocks.balanced, true);
    EXPECT_EQ(all.ledger.lossless, "no");
    EXPECT_NE(inspect_folder().text.find("1 of those built not written"), std::string::npos);
}

/// Its last answer may not have reached it: the manager has counted a block as built that it has not.
TEST_F(ClusterRunTest, ABuilderWhoseSinksFailedMayNotKnowAllThatCounts) {
    json its = builder_section("bu1", 1);
    its["builder"]["blocks"]["given_up"] = 1;
    write_builder("bu0", events_of({0, 2}), builder_section("bu0", 2));
    write_builder("bu1", events_of({1}), its);
    write_readouts();
    const Read all = read();
    EXPECT_EQ(all.ledger.blocks.balanced, std::nullopt);
    EXPECT_TRUE(all.says("the sinks of bu1 failed"));
}

TEST_F(ClusterRunTest, LostBlocksAreListedAndWhatIsFoundOfThem) {
    json section = builder_section("bu0", 2);
    lose_block(section, 3, "builder_down");
    std::vector<TestEvent> rest = events_of({1, 3});
    rest.pop_back();
    write_builder("bu0", events_of({0, 2}), section);
    write_builder("bu1", rest, {});
    write_readouts();
    // Another node has heard of it, too.
    json report = readout_report("ru1", 2, 2, 16);
    lose_block(report["cluster"], 3, "builder_down");
    write_report("ru1.json", report);
    const Read all = read();
    EXPECT_EQ(all.ledger.lost.size(), 1U);
    EXPECT_EQ(all.ledger.lost_counts.at("builder_down"), 1U);
    EXPECT_EQ(all.events.lost_found, 3U);
    EXPECT_EQ(all.events.lost_found_left, 3U);
    EXPECT_EQ(all.ledger.blocks.lost, 1U);
    EXPECT_EQ(all.ledger.blocks.unaccounted, 1U);
    EXPECT_EQ(all.ledger.blocks.balanced, true);
    EXPECT_EQ(all.ledger.lossless, "no");
    EXPECT_TRUE(
        all.says("1 block of up to 4 event numbers was lost with a builder; 3 of their events are found all the same"));
    EXPECT_TRUE(all.says("ru0 had 16 events, of which 1 or more are nowhere"));
}

TEST_F(ClusterRunTest, ABlockThatIsLostAndFoundWholeIsNoLoss) {
    json section = builder_section("bu0", 2);
    lose_block(section, 3, "builder_down");
    write_builder("bu0", events_of({0, 2}), section);
    write_builder("bu1", events_of({1, 3}), {});
    write_readouts();
    const Read all = read();
    EXPECT_EQ(all.events.lost_found_left, 4U);
    EXPECT_EQ(all.ledger.lossless, "yes");
}

TEST_F(ClusterRunTest, ABlockThatNobodyHadIsNotCountedTwice) {
    json section = builder_section("bu0", 2);
    section["builder"]["blocks"]["empty"] = 1;
    section["manager"]["assigned"] = 5;
    lose_block(section, 4, "nothing_held");
    write_builder("bu0", events_of({0, 2}), section);
    write_builder("bu1", events_of({1, 3}), builder_section("bu1", 2));
    write_readouts(2, 2, 17);
    const Read all = read();
    EXPECT_EQ(all.ledger.blocks.empty, 1U);
    EXPECT_EQ(all.ledger.blocks.lost, 0U);
    EXPECT_EQ(all.ledger.blocks.balanced, true);
    EXPECT_TRUE(all.says("no readout node had anything of 1 block"));
}

TEST_F(ClusterRunTest, BlocksOfWhichNoPartCame) {
    json section = builder_section("bu0", 2);
    section["builder"]["blocks"]["empty"] = 2;
    section["manager"]["assigned"] = 6;
    lose_block(section, 4, "node_down");
    write_builder("bu0", events_of({0, 2}), section);
    write_builder("bu1", events_of({1, 3}), builder_section("bu1", 2));
    write_readouts(2, 2, 0);
    Read all = read();
    EXPECT_TRUE(all.says("nothing of 1 block is here: a readout node that may have had it went away"));
    EXPECT_EQ(all.ledger.lossless, "unknown");
    lose_block(section, 5, "late");
    std::filesystem::remove_all(folder_ / "bu0");
    write_builder("bu0", events_of({0, 2}), section);
    all = read();
    EXPECT_TRUE(all.says("nothing of 1 block is here: readout nodes stood still"));
    EXPECT_EQ(all.ledger.lossless, "no");
    EXPECT_EQ(all.ledger.lost_total(), 2U);
    EXPECT_EQ(all.ledger.blocks.balanced, true);
    const Said said = inspect_folder();
    EXPECT_EQ(said.status, 0);
    EXPECT_NE(said.text.find("no event is there twice; but 2 blocks are lost, see above"), std::string::npos)
        << said.text;
}

TEST_F(ClusterRunTest, TheVerdictAsAnExitStatus) {
    write_builder("bu0", events_of({0, 2}), builder_section("bu0", 2));
    write_builder("bu1", events_of({1, 3}), builder_section("bu1", 2));
    write_readouts(2, 2, 16);
    EXPECT_EQ(read().ledger.lossless, "yes");
    EXPECT_EQ(inspect_folder({"--require-lossless"}).status, 0);
    json section = builder_section("bu0", 2);
    section["builder"]["blocks"]["empty"] = 1;
    section["manager"]["assigned"] = 5;
    lose_block(section, 4, "nothing_held");
    std::filesystem::remove_all(folder_ / "bu0");
    write_builder("bu0", events_of({0, 2}), section);
    write_readouts(2, 2, 17);
    EXPECT_EQ(read().ledger.lossless, "no");  // who had a seventeenth event, and where is it?
    for (const char* required : {"--require-lossless", "--require-lossless=known"})
        EXPECT_EQ(inspect_folder({required}).status, 3) << required;
    EXPECT_EQ(inspect_folder({"--require-lossless", "--json"}).status, 3);
    EXPECT_EQ(inspect_folder({"--require-lossless=perhaps"}).status, 2);
}

TEST_F(ClusterRunTest, MoreLostBlocksThanAListHolds) {
    json section = builder_section("bu0", 2);
    lose_block(section, 3, "builder_down");
    section["lost_blocks"]["builder_down"] = 1500;
    write_builder("bu0", events_of({0, 2}), section);
    const Read all = read();
    EXPECT_EQ(all.ledger.lost_total(), 1500U);
}

TEST_F(ClusterRunTest, NodesThatDoNotAgreeAreNamed) {
    write_builder("bu0", events_of({0, 2}), builder_section("bu0", 2));
    json section = builder_section("bu1", 2);
    section["builder"]["readouts"][0]["received"] = 1;
    write_builder("bu1", events_of({1, 3}), section);
    write_readouts(2, 2, 0);
    const Read all = read();
    EXPECT_EQ(all.ledger.pairs.at(1).is_equal(), false);
    EXPECT_EQ(all.ledger.pairs.at(3).is_equal(), true);
    EXPECT_EQ(all.ledger.lossless, "unknown");
    EXPECT_TRUE(all.says("ru0 says that it handed 2 parts over to bu1, which received 1"));
    const Said said = inspect_folder();
    EXPECT_EQ(said.status, 1);
    EXPECT_NE(said.text.find("ru0 to bu1 2 1 NOT equal"), std::string::npos) << said.text;
    EXPECT_NE(said.text.find("NOT verified, 1 problem: ru0 says that it handed 2 parts over"), std::string::npos)
        << said.text;
    // A part that came late was handed over all the same.
    section["builder"]["readouts"][0]["received_late"] = 1;
    std::filesystem::remove_all(folder_ / "bu1");
    write_builder("bu1", events_of({1, 3}), section);
    EXPECT_EQ(read().ledger.pairs.at(1).is_equal(), true);
}

TEST_F(ClusterRunTest, BlocksThatDoNotBalance) {
    json section = builder_section("bu0", 2);
    section["manager"]["assigned"] = 6;
    write_builder("bu0", events_of({0, 2}), section);
    write_builder("bu1", events_of({1, 3}), builder_section("bu1", 2));
    write_readouts(2, 2, 0);
    Read all = read();
    EXPECT_EQ(all.ledger.blocks.balanced, false);
    EXPECT_TRUE(all.says("nobody says what became of 2 blocks"));
    EXPECT_EQ(all.ledger.lossless, "no");
    // Whoever managed has left nothing.
    section.erase("manager");
    std::filesystem::remove_all(folder_ / "bu0");
    write_builder("bu0", events_of({0, 2}), section);
    all = read();
    EXPECT_EQ(all.ledger.blocks.assigned, std::nullopt);
    EXPECT_EQ(all.ledger.blocks.balanced, std::nullopt);
    EXPECT_EQ(all.ledger.lossless, "unknown");
}

TEST_F(ClusterRunTest, IncompleteEventsAndMissingPartsAreCountedByCause) {
    std::vector<TestEvent> events = events_of({0});
    events[1].cause = Cause::node_down;
    events[1].sources[1] = {1, SourceState::absent, 4, {{0, 4}}, {}, {}};
    json section = builder_section("bu0", 1);
    section["builder"]["blocks"] = {{"complete", 0}, {"incomplete", 1}, {"empty", 0}};
    section["builder"]["readouts"][1]["missing"]["node_down"] = 1;
    write_builder("bu0", events, section);
    const Read all = read();
    EXPECT_EQ(all.events.causes.at(static_cast<std::size_t>(Cause::node_down)), 1U);
    EXPECT_EQ(all.ledger.missing.at("ru1").at("node_down"), 1U);
    EXPECT_EQ(all.ledger.lossless, "no");
    EXPECT_TRUE(all.says("1 of 4 events are incomplete: node_down 1"));
    EXPECT_TRUE(all.says("1 part of ru1 is missing: node_down 1"));
}

TEST_F(ClusterRunTest, ABuildersReportStandsForARunWithoutAnAccount) {
    write_builder("bu0", events_of({0, 2}), false);  // closed, and no word of the cluster
    json report = {{"cluster", builder_section("bu0", 2)}, {"path", "/elsewhere/bu0"}};
    write_report("bu0.json", report);
    write_builder("bu1", events_of({1, 3}), builder_section("bu1", 2));
    write_report("bu1.json", {{"cluster", builder_section("bu1", 2)}, {"path", "bu1"}});  // says what the manifest says
    write_readouts();
    const Read all = read();
    EXPECT_TRUE(all.member("bu0").account_is_whole);
    EXPECT_EQ(all.ledger.blocks.complete, 4U);
    EXPECT_EQ(all.ledger.blocks.balanced, true);
    EXPECT_TRUE(all.events.all.verified);
}

TEST_F(ClusterRunTest, AReportUnderTwoNamesCountsOnce) {
    write_all();
    write_report("copy.json", readout_report("ru0", 2, 2, 16));
    EXPECT_EQ(read().ledger.pairs.at(0).is_equal(), true);
}

TEST_F(ClusterRunTest, WhoseARunIsThatWasNotClosed) {
    write_builder("run-0007-bu1", events_of({1}), {});
    EXPECT_EQ(read().member("bu1").runs.size(), 1U);
    // No name to go by, but only one builder without a run.
    write_builder("share", events_of({0}), {});
    EXPECT_EQ(read().member("bu0").runs.size(), 1U);
    // Nothing to go by.
    write_builder("another", events_of({2}), {});
    const Read all = read();
    EXPECT_EQ(all.member("").runs.size(), 2U);
    EXPECT_EQ(all.events.all.events, 12U);
    EXPECT_NE(inspect_folder().text.find("? builder 4 4 0 .another.part, ended by force"), std::string::npos);
}

TEST_F(ClusterRunTest, TwoSinksOfOneBuilderAreReadOnce) {
    write_all();
    write_builder("bu0-copy", events_of({0, 2}), builder_section("bu0", 2));
    const Read all = read();
    EXPECT_EQ(all.events.twice, 0U);
    EXPECT_TRUE(all.says("bu0-copy is of another sink of the builder of bu0"));
}

TEST_F(ClusterRunTest, WhatElseLiesThereIsSaid) {
    write_all();
    write_run(folder_ / "alone", events_of({9}));
    std::ofstream(folder_ / "empty.json").flush();
    std::ofstream(folder_ / "broken.json") << "{";
    std::ofstream(folder_ / "other.json") << R"({"cluster": 5})";
    std::filesystem::create_directory(folder_ / "notes");
    const Read all = read();
    EXPECT_EQ(all.events.all.events, 16U);
    EXPECT_TRUE(all.says("alone is a run of no cluster"));
    EXPECT_TRUE(all.says("empty.json is empty"));
    EXPECT_TRUE(all.says("broken.json is no JSON"));
    EXPECT_EQ(all.cluster.notes.size(), 3U);
}

TEST_F(ClusterRunTest, AFolderWithoutARunOfAClusterIsRefusedAsBefore) {
    write_run(folder_ / "alone", events_of({0}));
    write_readouts();
    EXPECT_FALSE(find_cluster_run(folder_).has_value());
    EXPECT_FALSE(find_cluster_run(folder_ / "alone").has_value());
    EXPECT_FALSE(find_cluster_run(folder_ / "nothing").has_value());
    const Said said = inspect_folder();
    EXPECT_EQ(said.status, 1);
    EXPECT_NE(said.text.find("is not a run: it has no segment"), std::string::npos) << said.text;
}

TEST_F(ClusterRunTest, NodesMayHaveFoldersOfTheirOwn) {
    write_builder("bu0/det-000001", events_of({0, 2}), builder_section("bu0", 2));
    // Ended by force; and the reports of both builders name runs of the same name.
    write_builder("bu1/det-000001", events_of({1, 3}), {});
    json report = {{"cluster", builder_section("bu0", 2)}, {"path", "/data/det-000001"}};
    write_report("bu0/report.json", report);
    write_report("ru0/report.json", readout_report("ru0", 2, 2, 16));
    write_report("ru1/report.json", readout_report("ru1", 2, 2, 16));
    std::filesystem::create_directories(folder_ / "bu0" / "old");
    write_run(folder_ / "bu0" / "old" / "deeper", events_of({9}));
    const Read all = read();
    EXPECT_EQ(all.events.all.events, 16U);
    ASSERT_EQ(all.member("bu1").runs.size(), 1U);
    EXPECT_EQ(all.cluster.runs[all.member("bu1").runs[0]].name, "bu1/.det-000001.part");
    EXPECT_EQ(all.member("ru0").reports.at(0).name, "ru0/report.json");
    EXPECT_EQ(all.ledger.lossless, "yes");
    EXPECT_TRUE(all.says("bu1/.det-000001.part: the run was not closed"));
}

TEST_F(ClusterRunTest, RunsOfDifferentClustersAreRefused) {
    write_all();
    json config = cluster_config();
    config["node"].push_back({{"name", "bu2"}, {"role", "builder"}, {"manages", true}});
    write_builder("bu2", events_of({4}), {}, config);
    EXPECT_NE(reason_of([&] { static_cast<void>(find_cluster_run(folder_)); }).find("different clusters"),
              std::string::npos);
    EXPECT_EQ(inspect_folder().status, 1);
}

TEST_F(ClusterRunTest, DamageOfOneRunIsDamageOfAll) {
    write_all();
    const auto file = folder_ / "bu1" / "events-000000.weir";
    auto bytes = read_file(file);
    bytes[bytes.size() - 1] ^= std::byte{1};
    write_file(file, bytes);
    EXPECT_EQ(inspect_folder().status, 1);
    const Read all = read();
    EXPECT_TRUE(all.says("bu1: "));
    EXPECT_EQ(all.events.runs.at(0).verified, true);
    EXPECT_EQ(all.events.runs.at(1).verified, false);
    std::filesystem::resize_file(folder_ / "bu1" / "manifest.json", 10);
    EXPECT_EQ(read().cluster.runs.at(1).state, RunState::damaged);
}

TEST_F(ClusterRunTest, InspectSaysItInTextAndJson) {
    write_all();
    const Said text = inspect_folder();
    EXPECT_EQ(text.status, 0);
    for (const char* part :
         {"2 readout nodes, 2 builders, blocks of 4 event numbers", "bu1 builder 8 8 0 bu1",
          "16 events, 16 complete, 0 incomplete; numbers 0 to 15", "ru1 to bu0 2 2 equal",
          "blocks: 4 assigned; 4 built with all parts, 0 without some, 0 empty, 0 lost; they balance", "lossless: yes",
          "verified: "})
        EXPECT_NE(text.text.find(part), std::string::npos) << part << "\n" << text.text;
    const json all = json::parse(inspect_folder({"--json"}).text);
    EXPECT_EQ(all["verified"], true);
    EXPECT_EQ(all["errors"], json::array());
    const json& cluster = all["cluster"];
    EXPECT_EQ(cluster["totals"]["events"], 16);
    EXPECT_EQ(cluster["totals"]["more_than_once"]["total"], 0);
    EXPECT_EQ(cluster["nodes"].size(), 4U);
    EXPECT_EQ(cluster["blocks"]["balanced"], true);
    EXPECT_EQ(cluster["pairs"][0]["equal"], true);
    EXPECT_EQ(cluster["lossless"], "yes");
    const json quick = json::parse(inspect_folder({"--json", "--quick"}).text);
    EXPECT_TRUE(quick["verified"].is_null());
    EXPECT_EQ(quick["cluster"]["totals"], cluster["totals"]);
    EXPECT_FALSE(all.contains("events"));
}

}  // namespace
}  // namespace weir::store::test
