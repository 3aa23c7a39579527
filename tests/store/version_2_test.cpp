// Version 2 of the event file: reduced content, results that are known at the end of an event, events taken back,
// padding, and segments that count their own blocks.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "memory_sources.hpp"
#include "store/run_path.hpp"
#include "support.hpp"

namespace weir::store::test {
namespace {

std::vector<TestEvent> reduced_events(std::uint64_t seed, int count, std::uint32_t bytes_max) {
    std::mt19937_64 random(seed);
    std::vector<TestEvent> events;
    for (int id = 0; id < count; ++id)
        events.push_back(random_reduced_event(random, static_cast<std::uint64_t>(id), 3, bytes_max));
    return events;
}

RunWriter::Config config_at(const std::filesystem::path& path, std::uint64_t segment_bytes = std::uint64_t{1} << 30) {
    RunWriter::Config config;
    config.path = path;
    config.version = format_version_reduced;
    config.segment_bytes = segment_bytes;
    return config;
}

TEST(Version2, ReducedEventsComeBackWithWhatReducersSaidOfThem) {
    const std::uint64_t seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const std::vector<TestEvent> events = reduced_events(seed, 60, 9000);
    const TemporaryDirectory directory;
    std::map<Key, bool> patched;
    {
        RunWriter run(config_at(directory / "run", 100'000));
        Pump pump(run);
        pump.pad_buffers(4096);
        for (const TestEvent& event : events) pump.put(event, event.id % 2 == 0);
        pump.flush();
        patched = pump.patched();
        run.close({});
    }
    const RunReader run(directory / "run");
    EXPECT_EQ(run.version(), 2);
    EXPECT_EQ(run.manifest()["version"], 2);
    Verification result;
    const std::map<Key, Found> found = read_all(run, &result);
    EXPECT_TRUE(result.verified) << (result.problems.empty() ? "" : result.problems[0]);
    EXPECT_GT(result.segments, 2U);
    ASSERT_EQ(found.size(), events.size());
    std::size_t with_result = 0;
    for (const TestEvent& event : events) {
        const Found& one = found.at({event.epoch, event.id});
        expect_same(event, one);
        const auto entry = patched.find({event.epoch, event.id});
        const EventResult expected = entry != patched.end() && entry->second ? event.result : EventResult{};
        with_result += entry != patched.end() && entry->second ? 1 : 0;
        EXPECT_EQ(one.info.veto, expected.veto);
        EXPECT_EQ(one.info.pixels_above, expected.pixels_above);
        EXPECT_EQ(one.info.peaks, expected.peaks);
        EXPECT_EQ(run.find(event.epoch, event.id)->stored_bytes, one.info.stored_bytes);
    }
    EXPECT_GT(with_result, 10U);
    const Verification quick = run.scan_index({}, 1000);
    EXPECT_TRUE(quick.verified) << (quick.problems.empty() ? "" : quick.problems[0]);
    EXPECT_EQ(quick.heads, events.size());
}

TEST(Version2, AReducedPayloadIsPlacedSourceBySourceWithoutGaps) {
    TestEvent event;
    event.cause = Cause::timeout;
    event.content = Content::pixels;
    event.sources.push_back(
        {0, SourceState::partial, 20, {{0, 2}, {5, 8}}, bytes_of("abcdefghijklmno"), {}, bytes_of("AAAA")});
    event.sources.push_back({1, SourceState::absent_unknown, 0, {}, {}, {}, bytes_of("BBBBBB")});
    event.sources.push_back({2, SourceState::complete, 3, {}, bytes_of("xyz"), {}, {}});
    event.sources.push_back({3, SourceState::complete, 1, {}, bytes_of("z"), {}, bytes_of("CC")});
    const TemporaryDirectory directory;
    write_run(directory / "run", {event}, false, 1 << 20, format_version_reduced);
    const RunReader run(directory / "run");
    EXPECT_TRUE(run.scan({}).verified);
    std::vector<std::string> places(4, "......");
    const EventInfo info = *run.find({}, 0);
    run.read_payload(info, [&](std::size_t source, std::uint64_t offset, std::span<const std::byte> bytes) {
        for (std::size_t i = 0; i < bytes.size(); ++i) places[source][offset + i] = static_cast<char>(bytes[i]);
    });
    EXPECT_EQ(places, (std::vector<std::string>{"AAAA..", "BBBBBB", "......", "CC...."}));
    EXPECT_EQ(run.payload(info, 1), bytes_of("BBBBBB"));
    EXPECT_EQ(info.payload_bytes, 19U);
}

TEST(Version2, AnEventThatIsTakenBackLeavesNoTrace) {
    const std::vector<TestEvent> events = reduced_events(5, 12, 500);
    const TemporaryDirectory directory;
    for (const bool with_vetoed : {false, true}) {
        RunWriter run(config_at(directory / (with_vetoed ? "vetoed" : "never")));
        Pump pump(run);
        for (const TestEvent& event : events) {
            pump.flush();
            if (with_vetoed) pump.put_and_take_back(events[(event.id * 7 + 3) % events.size()]);
            pump.put(event);
        }
        pump.flush();
        run.close({});
        EXPECT_EQ(run.stats().events, events.size());
    }
    const auto blocks = [&](const char* name) {
        // Tags and times differ; sizes, sequences and bodies do not.
        std::vector<std::byte> bytes = read_file(directory / name / "events-000000.weir");
        std::vector<std::uint32_t> seen;
        for (std::size_t at = 0; at < bytes.size();) {
            BlockHeader header;
            std::memcpy(&header, bytes.data() + at, sizeof header);
            if (header.type != BlockType::segment) seen.push_back(header.body_crc);
            at += sizeof header + padded(header.stored_bytes);
        }
        return seen;
    };
    EXPECT_EQ(blocks("never"), blocks("vetoed"));
    EXPECT_TRUE(RunReader(directory / "vetoed").scan({}).verified);
}

TEST(Version2, AResultIsNotWrittenIntoABlockThatHasLeftTheBuffer) {
    alignas(block_align) std::array<std::byte, BlockWriter::buffer_bytes_min> buffer{};
    BlockWriter writer;
    writer.reset(buffer);
    EXPECT_FALSE(writer.patch_event({Veto::passed, 1, 2}));
    EventRecord record;
    record.complete = true;
    ASSERT_TRUE(writer.put_event(record));
    EXPECT_TRUE(writer.patch_event({Veto::passed, 1, 2}));
    writer.reset(buffer);
    EXPECT_FALSE(writer.patch_event({Veto::passed, 1, 2}));
}

TEST(Version2, EachSegmentCountsItsOwnBlocks) {
    const TemporaryDirectory directory;
    write_run(directory / "run", reduced_events(8, 30, 900), false, 8000, format_version_reduced);
    std::size_t segments = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory / "run")) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with("events-")) continue;
        ++segments;
        const std::vector<std::byte> bytes = read_file(entry.path());
        std::uint64_t sequence = 0;
        for (std::size_t at = 0; at < bytes.size(); ++sequence) {
            BlockHeader header;
            std::memcpy(&header, bytes.data() + at, sizeof header);
            ASSERT_EQ(header.version, 2);
            ASSERT_EQ(header.sequence, sequence) << name;
            at += sizeof header + padded(header.stored_bytes);
        }
    }
    EXPECT_GT(segments, 3U);
}

TEST(Version2, EntriesOfSegmentsWrittenSideBySideMayComeInAnyOrder) {
    const TemporaryDirectory directory;
    write_run(directory / "run", reduced_events(9, 30, 900), false, 8000, format_version_reduced);
    // The entries of the index, last one first, with new checksums here and in the manifest.
    const auto reversed = [](BlockHeader& header, std::byte* body) {
        auto* const entries = reinterpret_cast<std::array<std::byte, sizeof(IndexEntry)>*>(body);
        std::reverse(entries, entries + header.stored_bytes / sizeof(IndexEntry));
    };
    const auto bytes = with_changed_block(read_file(directory / "run" / "index.weir"), 0, reversed);
    write_file(directory / "run" / "index.weir", bytes);
    nlohmann::json manifest = RunReader(directory / "run").manifest();
    manifest["index"]["headers_crc32c"] = fmt::format("{:08x}", core::crc32c(std::span(bytes).first(header_crc_bytes)));
    write_file(directory / "run" / "manifest.json", bytes_of(manifest_text(manifest)));
    const RunReader run(directory / "run");
    const Verification result = run.scan({});
    EXPECT_TRUE(result.verified) << result.problems[0];
    EXPECT_TRUE(run.scan_index({}, 1000).verified);
    EXPECT_TRUE(run.find({}, 17).has_value());
}

TEST(Version2, BlocksThatWereExchangedWithGoodChecksumsAreNoticed) {
    const TemporaryDirectory directory;
    write_run(directory / "run", reduced_events(10, 3, 500), false, 1 << 20, format_version_reduced);
    const auto file = directory / "run" / "events-000000.weir";
    const std::uint64_t at = RunReader(directory / "run").find({}, 1)->offset;
    const auto other_time = [](BlockHeader&, std::byte* body) { body[0] ^= std::byte{1}; };  // of its first packet
    write_file(file, with_changed_block(read_file(file), at, other_time));
    const Verification result = RunReader(directory / "run").scan({});
    ASSERT_EQ(result.problem_count, 1U);
    EXPECT_NE(result.problems[0].find("not as the manifest describes it"), std::string::npos);
}

TEST(Version2, ItsBlocksAreRefusedWhereARunIsOfVersion1) {
    const TemporaryDirectory directory;
    RunWriter::Config config = config_at(directory / "run");
    config.version = format_version;
    RunWriter run(config);
    alignas(block_align) std::array<std::byte, BlockWriter::buffer_bytes_min> buffer{};
    BlockWriter writer;
    writer.reset(buffer);
    EventRecord record;
    record.complete = true;
    ASSERT_TRUE(writer.put_event(record));
    writer.close_payload(0, 0, Encoding::raw, true);
    writer.pad(4096);
    EXPECT_THROW(run.append(writer.blocks()), core::RunError);
}

TEST(Version2, ContradictionsInWhatIsNewAreRefused) {
    TestEvent event;
    event.content = Content::pixels;
    event.sources.push_back({0, SourceState::complete, 3, {}, bytes_of("abc"), {}, bytes_of("0123456789")});
    const TemporaryDirectory directory;
    write_run(directory / "run", {event}, false, 1 << 20, format_version_reduced);
    const std::vector<std::byte> whole = read_file(directory / "run" / "events-000000.weir");
    const std::uint64_t at_event = RunReader(directory / "run").find({}, 0)->offset;
    const std::uint64_t at_source = at_event + 128;
    const std::uint64_t at_payload = at_source + 64 + 128;
    const auto problems_after = [&](std::uint64_t at, const BlockChange& change) {
        const std::vector<std::byte> bad = with_changed_block(whole, at, change);
        std::size_t problems = 0;
        ScanHooks hooks;
        hooks.problem = [&](const std::string&) { ++problems; };
        EventScanner(std::move(hooks)).scan(MemorySource(bad), 0, "segment");
        return problems;
    };
    const auto flip = [](std::size_t at, unsigned value) {
        return [=](BlockHeader&, std::byte* body) { body[at] ^= static_cast<std::byte>(value); };
    };
    EXPECT_EQ(problems_after(at_event, [](BlockHeader&, std::byte*) {}), 0U);
    EXPECT_EQ(problems_after(at_event, flip(40, 1)), 0U);   // pixels above: a number like any other
    EXPECT_GT(problems_after(at_event, flip(38, 1)), 0U);   // as received, and reduced bytes
    EXPECT_GT(problems_after(at_event, flip(38, 8)), 0U);   // a content that does not exist
    EXPECT_GT(problems_after(at_event, flip(39, 7)), 0U);   // a verdict that does not exist
    EXPECT_GT(problems_after(at_event, flip(48, 1)), 0U);   // reduced bytes
    EXPECT_GT(problems_after(at_event, flip(56, 1)), 0U);   // reserved
    EXPECT_GT(problems_after(at_source, flip(48, 1)), 0U);  // reduced bytes of the source
    EXPECT_GT(problems_after(at_source, flip(56, 1)), 0U);  // reserved
    EXPECT_GT(problems_after(at_source, [](BlockHeader& h, std::byte*) { h.element_bytes = 2; }), 0U);
    EXPECT_GT(problems_after(at_payload, [](BlockHeader& h, std::byte*) { h.element_bytes = 2; }), 0U);
    EXPECT_GT(problems_after(at_payload, [](BlockHeader& h, std::byte*) { h.reserved = 1; }), 0U);
    EXPECT_GT(problems_after(at_payload, [](BlockHeader& h, std::byte*) { h.version = 1; }), 0U);
    EXPECT_GT(problems_after(at_payload, [](BlockHeader& h, std::byte*) { h.version = 3; }), 0U);
    for (unsigned encoding = 1; encoding < 256; ++encoding)
        EXPECT_GT(problems_after(at_payload,
                                 [&](BlockHeader& h, std::byte*) { h.encoding = static_cast<Encoding>(encoding); }),
                  0U)
            << encoding;
}

TEST(Version2, AKilledRunIsReadableUpToWhereItWasCut) {
    const std::vector<TestEvent> events = reduced_events(11, 8, 90);
    const TemporaryDirectory directory;
    {
        RunWriter run(config_at(directory / "run"));
        Pump pump(run);
        pump.pad_buffers(512);
        for (const TestEvent& event : events) {
            pump.put(event);
            pump.flush();
        }
    }
    const auto file = hidden_path(directory / "run") / "events-000000.weir";
    const std::vector<std::byte> whole = read_file(file);
    Verification result;
    const auto found = read_all(RunReader(hidden_path(directory / "run")), &result);
    ASSERT_EQ(result.problem_count, 1U) << result.problems.back();
    ASSERT_EQ(found.size(), events.size());
    for (std::size_t length = 0; length <= whole.size(); length += 7) {
        const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
        std::size_t expected = 0;
        for (const auto& [key, one] : found) expected += one.info.offset + one.info.stored_bytes <= length ? 1 : 0;
        ASSERT_EQ(EventScanner({}).scan(MemorySource(cut), 0, "cut").events, expected) << "cut at " << length;
    }
}

}  // namespace
}  // namespace weir::store::test
