// The runs of a cluster's builders as one run for every reader: which events it has, in which order, which copy of an
// event counts, and that what is made of it is what would be made of one run.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cluster_folder.hpp"
#include "store/run_reader.hpp"

namespace weir::store::test {
namespace {

class ClusterReaderTest : public ClusterFolder {
protected:
    static std::vector<TestEvent> all_events() { return events_of({0, 1, 2, 3}); }

    [[nodiscard]] RunReader reader() const { return open_run(folder_); }

    static std::vector<IndexEntry> all_of(const RunReader& run, std::uint64_t& copies) {
        return run.entries([](const IndexEntry&) { return true; }, &copies);
    }

    /// Of its second source so many of the four bytes are there.
    static TestEvent with_only(TestEvent event, std::uint32_t bytes) {
        TestSource& source = event.sources.at(1);
        event.cause = Cause::timeout;
        source.state = SourceState::partial;
        source.missing = {{bytes, source.declared}};
        source.received.resize(bytes);
        return event;
    }

    /// Both builders have this event, each its own copy of it. Returns the copy that counts: 0 or 1.
    std::uint32_t counts(const TestEvent& first, const TestEvent& second, bool first_is_closed = true) {
        write_builder("bu0", {first}, first_is_closed ? builder_section("bu0", 1) : json());
        write_builder("bu1", {second}, builder_section("bu1", 1));
        return counts();
    }
    [[nodiscard]] std::uint32_t counts() const {
        std::uint64_t copies = 0;
        const auto entries = all_of(reader(), copies);
        EXPECT_EQ(entries.size(), 1U);
        EXPECT_EQ(copies, 1U);
        return entries.at(0).segment;
    }
};

TEST_F(ClusterReaderTest, HasTheEventsOfAllInOrder) {
    write_all();
    const RunReader run = reader();
    std::uint64_t copies = 1;
    const auto entries = all_of(run, copies);
    EXPECT_EQ(copies, 0U);
    const auto expected = all_events();
    ASSERT_EQ(entries.size(), expected.size());
    std::set<std::uint32_t> segments;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(entries[i].event, expected[i].id);
        segments.insert(entries[i].segment);
        const EventInfo event = run.read(entries[i], {});
        EXPECT_EQ(event.segment, entries[i].segment);
        EXPECT_EQ(run.payload(event, 1), expected[i].sources[1].received);
        EXPECT_EQ(run.read_head(entries[i]).segment, entries[i].segment);
    }
    EXPECT_EQ(segments, (std::set<std::uint32_t>{0, 1}));
    EXPECT_EQ(run.find({}, 9)->id, 9U);
    EXPECT_FALSE(run.find({}, 16).has_value());
    EXPECT_EQ(run.index()->size(), 16U);
    EXPECT_EQ(run.segments(), 2U);
    EXPECT_TRUE(run.closed());
    EXPECT_EQ(run.manifest()["config"], cluster_config());
    EXPECT_FALSE(run.manifest().contains("ledger"));
    EXPECT_EQ(run.path(), folder_);
}

TEST_F(ClusterReaderTest, AScanSeesTheEventsAsTheirEntriesNameThem) {
    write_all();
    const RunReader run = reader();
    for (const bool quick : {false, true}) {
        std::uint64_t begun = 0;
        std::vector<EventInfo> seen;
        ScanHooks hooks;
        hooks.begin = [&](const EventInfo& event) { begun += event.segment; };
        hooks.end = [&](const EventInfo& event) { seen.push_back(event); };
        const Verification all = quick ? run.scan_index(hooks, 10) : run.scan(hooks);
        EXPECT_TRUE(all.verified);
        EXPECT_EQ(all.events, 16U);
        EXPECT_EQ(all.segments, 2U);
        EXPECT_EQ(all.payload_read, !quick);
        ASSERT_EQ(seen.size(), quick ? 10U : 16U);
        if (!quick) EXPECT_EQ(begun, 8U);
        for (const EventInfo& event : seen) EXPECT_EQ(run.read_head(event.entry()).id, event.id);
    }
}

TEST_F(ClusterReaderTest, WhatWasNotClosedIsReadTooAndDamageSaysWhere) {
    write_builder("bu0", events_of({0, 2}), builder_section("bu0", 2));
    write_builder("bu1", events_of({1, 3}), {});
    const RunReader run = reader();
    std::uint64_t copies = 0;
    EXPECT_EQ(all_of(run, copies).size(), 16U);
    EXPECT_FALSE(run.closed());
    EXPECT_FALSE(run.index().has_value());
    EXPECT_EQ(run.rebuild_index().size(), 16U);
    const Verification all = run.scan({});
    EXPECT_FALSE(all.verified);
    EXPECT_EQ(all.events, 16U);
    ASSERT_FALSE(all.problems.empty());
    EXPECT_TRUE(all.problems[0].starts_with(".bu1.part: ")) << all.problems[0];
}

TEST_F(ClusterReaderTest, OfCopiesTheCompleteOneCounts) {
    const TestEvent event = all_events().at(5);
    EXPECT_EQ(counts(with_only(event, 2), event), 1U);
}

TEST_F(ClusterReaderTest, OfIncompleteCopiesThatWithMoreCounts) {
    const TestEvent event = all_events().at(5);
    EXPECT_EQ(counts(with_only(event, 1), with_only(event, 3)), 1U);
}

TEST_F(ClusterReaderTest, OfEqualCopiesThatOfAClosedRunCounts) {
    const TestEvent event = all_events().at(5);
    EXPECT_EQ(counts(event, event, false), 1U);
    ASSERT_TRUE(recover_run(folder_ / "bu0", {}).has_value());
    EXPECT_EQ(counts(), 1U) << "a later start has closed it";
}

TEST_F(ClusterReaderTest, ElseTheFirstCounts) {
    const TestEvent event = all_events().at(5);
    EXPECT_EQ(counts(event, event), 0U);
}

TEST_F(ClusterReaderTest, ADamagedCopyDoesNotCount) {
    const TestEvent event = all_events().at(5);
    EXPECT_EQ(counts(event, with_only(event, 1)), 0U);
    const auto file = folder_ / "bu0" / "events-000000.weir";
    auto bytes = read_file(file);
    bytes[bytes.size() - 1] ^= std::byte{1};
    write_file(file, bytes);
    EXPECT_EQ(counts(), 1U);
}

TEST_F(ClusterReaderTest, InspectListsEventsAndGivesSingleOnesBack) {
    std::vector<TestEvent> second = events_of({1, 3});
    second[0] = with_only(second[0], 1);
    write_builder("bu0", events_of({0, 2}), builder_section("bu0", 2));
    write_builder("bu1", second, builder_section("bu1", 2));
    write_readouts();
    EXPECT_EQ(inspect_folder().text.find("received first packet"), std::string::npos);
    const Said table = inspect_folder({"--all"});
    EXPECT_EQ(table.status, 0);
    EXPECT_NE(table.text.find("0 15 complete 8 B"), std::string::npos) << table.text;
    EXPECT_NE(table.text.find("source 1: 1 gap, 3 B missing"), std::string::npos) << table.text;
    EXPECT_NE(table.text.find("16 events, 15 complete, 1 incomplete"), std::string::npos) << table.text;
    const Said rest = inspect_folder({"--incomplete"});
    EXPECT_NE(rest.text.find("0 4 timeout"), std::string::npos) << rest.text;
    EXPECT_EQ(rest.text.find("0 15 complete"), std::string::npos) << rest.text;

    const json listed = json::parse(inspect_folder({"--json", "--incomplete"}).text);
    ASSERT_EQ(listed["events"].size(), 1U);
    EXPECT_EQ(listed["events"][0]["id"], 4);
    EXPECT_EQ(listed["cluster"]["totals"]["events"], 16);
    EXPECT_EQ(json::parse(inspect_folder({"--json", "--all", "--quick"}).text)["events"].size(), 16U);

    const auto out = folder_ / "9.bin";
    EXPECT_EQ(inspect_folder({"--export", "9", out.string()}).status, 0);
    EXPECT_EQ(read_file(out), all_events().at(9).payload());
    EXPECT_EQ(inspect_folder({"--png", "9", (folder_ / "9.png").string(), "--width", "2", "--pixel-bits", "16"}).status,
              0);
    EXPECT_TRUE(std::filesystem::exists(folder_ / "9.png"));
}

/// The same digests, files and events as of one run that has them all.
TEST_F(ClusterReaderTest, IsReadAsOneRunIs) {
    TemporaryDirectory elsewhere;
    const auto one = elsewhere.path() / "one";
    write_run(one, all_events());
    write_all();
    const json folder = json::parse(inspect_folder({"--json", "--digest", "sha256"}).text);
    const json alone = json::parse(execute(app::inspect_entry(), {one.string(), "--json", "--digest", "sha256"}).text);
    ASSERT_EQ(folder["events"].size(), 16U);
    for (std::size_t i = 0; i < 16; ++i) {
        EXPECT_EQ(folder["events"][i]["id"], i);
        EXPECT_EQ(folder["events"][i]["sha256"], alone["events"][i]["sha256"]);
    }
    EXPECT_EQ(execute(app::diff_entry(), {folder_.string(), one.string(), "--quiet"}).status, 0);
    for (const auto& [path, out] : {std::pair(folder_, "a.raw"), {one, "b.raw"}})
        EXPECT_EQ(execute(app::export_entry(), {path.string(), "--to", "raw", "--concatenate", "--out",
                                                (elsewhere.path() / out).string(), "--quiet"})
                      .status,
                  0);
    EXPECT_EQ(read_file(elsewhere.path() / "a.raw"), read_file(elsewhere.path() / "b.raw"));
    std::filesystem::remove_all(folder_ / "bu1");
    EXPECT_EQ(execute(app::diff_entry(), {folder_.string(), one.string(), "--quiet"}).status, 1);
}

TEST_F(ClusterReaderTest, DiffCountsTheCopiesThatItLeavesOut) {
    write_builder("bu0", all_events(), builder_section("bu0", 4));
    write_builder("bu1", events_of({2}), builder_section("bu1", 1));
    const Said said = execute(app::diff_entry(), {folder_.string(), folder_.string(), "--json"});
    EXPECT_EQ(said.status, 0);
    EXPECT_EQ(json::parse(said.text)["totals"]["copies"], 8);
}

}  // namespace
}  // namespace weir::store::test
