// What goes into a run comes out of it: events of every kind, over buffers, blocks, segments and encodings.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "support.hpp"

namespace weir::store::test {
namespace {

class RoundTrip : public testing::TestWithParam<bool> {};

TEST_P(RoundTrip, RandomEventsComeBackWithTheirGapsAndBytes) {
    const std::uint64_t seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::vector<TestEvent> events;
    for (std::uint64_t id = 0; id < 60; ++id)
        events.push_back(random_event(random, id * 3, static_cast<std::uint32_t>(random() % 6), 20'000));
    const TemporaryDirectory directory;
    write_run(directory / "run", events, GetParam(), 200'000);

    const RunReader run(directory / "run");
    Verification result;
    const std::map<Key, Found> found = read_all(run, &result);
    EXPECT_TRUE(result.verified) << (result.problems.empty() ? "" : result.problems[0]);
    EXPECT_GT(result.segments, GetParam() ? 0U : 2U);
    ASSERT_EQ(found.size(), events.size());
    for (const TestEvent& event : events) expect_same(event, found.at({event.epoch, event.id}));
}
INSTANTIATE_TEST_SUITE_P(Encodings, RoundTrip, testing::Values(false, true));

TEST(RoundTrip, AnEventMaySpanManyBuffers) {
    std::mt19937_64 random(1);
    TestEvent event;
    event.id = 5;
    for (std::uint32_t s = 0; s < 200; ++s) {
        TestSource source;
        source.id = s;
        source.state = SourceState::partial;
        source.declared = 1024 * 20;
        for (std::uint32_t r = 0; r < 1024; ++r) source.missing.push_back({r * 20, r * 20 + 10});
        source.received.assign(1024 * 10, std::byte{static_cast<unsigned char>(s)});
        event.sources.push_back(std::move(source));
    }
    event.cause = Cause::timeout;
    const TemporaryDirectory directory;
    write_run(directory / "run", {event});
    Verification result;
    const RunReader run(directory / "run");
    const auto found = read_all(run, &result);
    EXPECT_TRUE(result.verified);
    expect_same(event, found.at({0, 5}));
}

TEST(RoundTrip, ARunWithoutEventsAndAnEventWithoutSourcesVerify) {
    const TemporaryDirectory directory;
    write_run(directory / "none", {});
    write_run(directory / "empty", {TestEvent{7, 0, Cause::complete, {}}});
    Verification result;
    EXPECT_TRUE(read_all(RunReader(directory / "none"), &result).empty());
    EXPECT_TRUE(result.verified);
    EXPECT_EQ(read_all(RunReader(directory / "empty"), &result).size(), 1U);
    EXPECT_TRUE(result.verified);
}

TEST(RoundTrip, SingleEventsAreFoundByNumberWithAndWithoutTheIndex) {
    std::mt19937_64 random(2);
    std::vector<TestEvent> events;
    for (std::uint64_t id = 0; id < 30; ++id) events.push_back(random_event(random, id, 2, 3000));
    events.push_back(events[4]);
    events.back().epoch = 9;
    const TemporaryDirectory directory;
    write_run(directory / "run", events, true, 20'000);
    const auto check = [&](const RunReader& run) {
        const auto event = run.find({}, 11);
        ASSERT_TRUE(event.has_value());
        EXPECT_EQ(run.payload(*event, 0), events[11].sources[0].received);
        EXPECT_EQ(run.payload(*event, 2), events[11].sources[1].received);
        EXPECT_FALSE(run.find({}, 999).has_value());
        EXPECT_FALSE(run.find(1, 4).has_value());
        EXPECT_TRUE(run.find(9, 4).has_value());
        EXPECT_THROW(static_cast<void>(run.find({}, 4)), core::RunError);
    };
    check(RunReader(directory / "run"));
    const std::vector<IndexEntry> rebuilt = RunReader(directory / "run").rebuild_index();
    ASSERT_EQ(rebuilt.size(), events.size());
    EXPECT_EQ(rebuilt.back().epoch, 9U);
    std::filesystem::remove(directory / "run" / "index.weir");
    const RunReader without(directory / "run");
    check(without);
    EXPECT_FALSE(without.scan({}).verified);
}

TEST(RoundTrip, PayloadGoesToItsPlaceBetweenTheGaps) {
    TestEvent event;
    event.cause = Cause::evicted;
    event.sources.push_back({0, SourceState::partial, 20, {{0, 2}, {5, 8}, {19, 20}}, bytes_of("abcdefghijklmn"), {}});
    event.sources.push_back({1, SourceState::absent, 5, {{0, 5}}, {}, {}});
    event.sources.push_back({2, SourceState::complete, 3, {}, bytes_of("xyz"), {}});
    const TemporaryDirectory directory;
    write_run(directory / "run", {event});
    const RunReader run(directory / "run");
    std::vector<std::string> places(3, std::string(20, '.'));
    run.read_payload(*run.find({}, 0), [&](std::size_t source, std::uint64_t offset, std::span<const std::byte> bytes) {
        for (std::size_t i = 0; i < bytes.size(); ++i) places[source][offset + i] = static_cast<char>(bytes[i]);
    });
    EXPECT_EQ(places[0], "..abc...defghijklmn.");
    EXPECT_EQ(places[1], std::string(20, '.'));
    EXPECT_EQ(places[2], "xyz" + std::string(17, '.'));
}

TEST(MissingRanges, AreTheGapsUpToTheTotal) {
    const std::vector<assemble::ByteRange> received{{2, 5}, {8, 10}};
    std::vector<assemble::ByteRange> out(8);
    ASSERT_EQ(missing_ranges(received, 12, out), 3U);
    EXPECT_EQ(out[0].begin, 0U);
    EXPECT_EQ(out[0].end, 2U);
    EXPECT_EQ(out[1].begin, 5U);
    EXPECT_EQ(out[1].end, 8U);
    EXPECT_EQ(out[2].begin, 10U);
    EXPECT_EQ(out[2].end, 12U);
    EXPECT_EQ(missing_ranges(std::vector<assemble::ByteRange>{{0, 12}}, 12, out), 0U);
    EXPECT_EQ(missing_ranges({}, 12, out), 1U);
    EXPECT_EQ(missing_ranges({}, 0, out), 0U);
    EXPECT_EQ(missing_ranges(received, 12, std::span(out).first(1)), 3U);
}

TEST(Manifest, KeepsItsMembersAndRefusesOtherText) {
    const std::string text = manifest_text({{"version", format_version}, {"name", "a \xff b"}});
    EXPECT_EQ(parse_manifest(text)["version"], format_version);
    EXPECT_TRUE(nlohmann::json::accept(text));
    EXPECT_THROW(parse_manifest(""), core::RunError);
    EXPECT_THROW(parse_manifest(text.substr(1)), core::RunError);
    EXPECT_THROW(parse_manifest(text + "\n"), core::RunError);
    EXPECT_THROW(parse_manifest(manifest_text({{"version", 99}})), core::RunError);
    EXPECT_TRUE(parse_json(std::string(1000, '[') + std::string(1000, ']')).is_null());
}

}  // namespace
}  // namespace weir::store::test
