// Damaged runs: any flipped byte is noticed, a run that was cut short keeps its whole events, arbitrary bytes do no
// harm.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include "core/error.hpp"
#include "effort.hpp"
#include "memory_sources.hpp"
#include "store/run_path.hpp"
#include "support.hpp"

namespace weir::store::test {
namespace {

std::vector<std::filesystem::path> files_of(const std::filesystem::path& directory) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<TestEvent> small_events(int count) {
    std::mt19937_64 random(3);
    std::vector<TestEvent> events;
    for (int id = 0; id < count; ++id) events.push_back(random_event(random, static_cast<std::uint64_t>(id), 2, 90));
    return events;
}

bool verifies(const std::filesystem::path& path) {
    try {
        return RunReader(path).scan({}).verified;
    } catch (const core::RunError&) {
        return false;
    }
}

class Damage : public testing::TestWithParam<std::uint16_t> {};

TEST_P(Damage, EveryFlippedByteOfEveryFileIsNoticed) {
    const TemporaryDirectory directory(memory_folder());
    std::mt19937_64 random(3);
    std::vector<TestEvent> events = small_events(3);
    if (GetParam() >= format_version_reduced)
        for (std::uint64_t id = 0; id < 3; ++id) events[id] = random_reduced_event(random, id, 2, 60);
    write_run(directory / "run", events, false, 800, GetParam());
    ASSERT_TRUE(verifies(directory / "run"));
    const auto files = files_of(directory / "run");
    ASSERT_GE(files.size(), 4U);  // two segments, index, manifest
    for (const auto& file : files) {
        const std::vector<std::byte> good = read_file(file);
        std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
        const auto put = [&](std::size_t at, std::byte value) {
            stream.seekp(static_cast<std::streamoff>(at));
            stream.put(static_cast<char>(value)).flush();
        };
        for (std::size_t i = 0; i < good.size(); ++i) {
            // 0x20 turns the case of letters, which a lenient reader of checksums would not see.
            constexpr std::array<std::uint8_t, 3> flips{1, 0x20, 0xff};
            for (std::size_t j = 0; j < weir::test::repeated(flips.size()); ++j) {
                const std::uint8_t flip = flips[(i + j) % flips.size()];
                put(i, good[i] ^ std::byte{flip});
                ASSERT_FALSE(verifies(directory / "run")) << file << " byte " << i << " flip " << int{flip};
            }
            put(i, good[i]);
        }
    }
    EXPECT_TRUE(verifies(directory / "run"));
}

INSTANTIATE_TEST_SUITE_P(Versions, Damage, testing::Values(format_version, format_version_reduced));

TEST(Damage, AMissingLongerOrForeignFileIsNoticed) {
    const TemporaryDirectory directory;
    write_run(directory / "run", small_events(6), false, 800);
    write_run(directory / "other", small_events(6), false, 800);
    for (const auto& file : files_of(directory / "run")) {
        const std::vector<std::byte> good = read_file(file);
        std::filesystem::remove(file);
        EXPECT_FALSE(verifies(directory / "run")) << file << " is gone";
        std::vector<std::byte> longer = good;
        longer.resize(good.size() + block_align);
        write_file(file, longer);
        EXPECT_FALSE(verifies(directory / "run")) << file << " is longer";
        write_file(file, read_file(directory / "other" / file.filename().string()));
        EXPECT_FALSE(verifies(directory / "run")) << file << " is another run's";
        write_file(file, good);
        ASSERT_TRUE(verifies(directory / "run"));
    }
    write_file(directory / "run" / "events-000099.weir", {});
    EXPECT_FALSE(verifies(directory / "run"));
}

/// The events of a segment image, and whether anything was wrong.
std::size_t scan_memory(std::span<const std::byte> bytes, std::size_t& problems,
                        std::vector<EventInfo>* events = nullptr) {
    ScanHooks hooks;
    hooks.problem = [&](const std::string&) { ++problems; };
    hooks.end = [&](const EventInfo& event) {
        if (events != nullptr) events->push_back(event);
    };
    EventScanner scanner(std::move(hooks));
    return scanner.scan(MemorySource(bytes), 0, "segment").events;
}

TEST(Damage, EventsBeforeACutStayReadableWhereverItIs) {
    const TemporaryDirectory directory;
    write_run(directory / "run", small_events(4));
    const std::vector<std::byte> whole = read_file(directory / "run" / "events-000000.weir");
    std::vector<EventInfo> events;
    std::size_t problems = 0;
    ASSERT_EQ(scan_memory(whole, problems, &events), 4U);
    ASSERT_EQ(problems, 0U);
    std::uint64_t head = 0;
    for (std::size_t length = 0; length <= whole.size(); ++length) {
        // An exact-size copy, so that a read beyond the end is seen by the sanitizers.
        const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
        std::size_t expected = 0;
        bool at_an_end = length == 0 || length == events[0].offset;
        for (const EventInfo& event : events) {
            const std::uint64_t end = event.offset + event.stored_bytes;
            expected += end <= length ? 1 : 0;
            at_an_end = at_an_end || end == length;
        }
        problems = 0;
        ASSERT_EQ(scan_memory(cut, problems), expected) << "cut at " << length;
        ASSERT_EQ(problems == 0, at_an_end) << "cut at " << length;
        head = std::max(head, std::uint64_t{length});
    }
    EXPECT_EQ(head, whole.size());
}

TEST(Damage, TheReaderGoesOnBehindADamagedEvent) {
    const TemporaryDirectory directory;
    const std::vector<TestEvent> events = small_events(5);
    write_run(directory / "run", events);
    const RunReader good(directory / "run");
    const EventInfo second = *good.find({}, 1);
    const auto file = directory / "run" / "events-000000.weir";
    const std::vector<std::byte> whole = read_file(file);
    // A header and a body of the second event, and everything of it.
    for (const std::uint64_t from : {second.offset + 1, second.offset + block_align + 1}) {
        std::vector<std::byte> bad = whole;
        bad[from] ^= std::byte{4};
        write_file(file, bad);
        Verification result;
        const auto found = read_all(RunReader(directory / "run"), &result);
        EXPECT_FALSE(result.verified);
        EXPECT_EQ(found.size(), 4U);
        EXPECT_EQ(found.count({events[1].epoch, 1}), 0U);
        expect_same(events[4], found.at({events[4].epoch, 4}));
    }
    std::vector<std::byte> bad = whole;
    std::fill_n(bad.begin() + static_cast<std::ptrdiff_t>(second.offset), second.stored_bytes, std::byte{0x5a});
    write_file(file, bad);
    EXPECT_EQ(read_all(RunReader(directory / "run")).size(), 4U);
    // Whole blocks cut out: every checksum is right, but the sequence is not.
    bad = whole;
    bad.erase(bad.begin() + static_cast<std::ptrdiff_t>(second.offset),
              bad.begin() + static_cast<std::ptrdiff_t>(second.offset + second.stored_bytes));
    std::size_t problems = 0;
    EXPECT_EQ(scan_memory(bad, problems), 4U);
    EXPECT_GT(problems, 0U);
}

TEST(Damage, AKilledRunIsReadableAndSaidToBeUnfinished) {
    const TemporaryDirectory directory;
    const std::vector<TestEvent> events = small_events(8);
    {
        RunWriter::Config config;
        config.path = directory / "run";
        config.segment_bytes = 1500;
        RunWriter run(config);
        Pump pump(run);
        for (const TestEvent& event : events) pump.put(event);
        pump.flush();
    }
    EXPECT_FALSE(std::filesystem::exists(directory / "run"));
    const RunReader run(hidden_path(directory / "run"));
    EXPECT_FALSE(run.closed());
    Verification result;
    const auto found = read_all(run, &result);
    EXPECT_FALSE(result.verified);
    ASSERT_EQ(result.problem_count, 1U) << result.problems.back();
    EXPECT_NE(result.problems[0].find("not closed"), std::string::npos);
    for (const TestEvent& event : events) expect_same(event, found.at({event.epoch, event.id}));
    EXPECT_TRUE(run.find({}, 7).has_value());

    // Killed in the middle of a write.
    const auto last = hidden_path(directory / "run") / "events-000001.weir";
    ASSERT_TRUE(std::filesystem::exists(last));
    std::filesystem::resize_file(last, std::filesystem::file_size(last) - 3);
    EXPECT_EQ(read_all(RunReader(hidden_path(directory / "run")), &result).size(), events.size() - 1);
    EXPECT_NE(result.problems[1].find("torn tail"), std::string::npos);
}

TEST(Damage, WhatIsNoRunIsRefusedWithAReason) {
    const TemporaryDirectory directory;
    write_file(directory / "file", bytes_of("x"));
    std::filesystem::create_directory(directory / "empty");
    std::filesystem::create_directory(directory / ".later.part");
    const auto reason = [&](const std::string& name) {
        try {
            RunReader run(directory / name);
        } catch (const core::RunError& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    EXPECT_NE(reason("nothing").find("does not exist"), std::string::npos);
    EXPECT_NE(reason("file").find("a run is a directory"), std::string::npos);
    EXPECT_NE(reason("empty").find("no segment"), std::string::npos);
    EXPECT_NE(reason("later").find(".later.part"), std::string::npos);
}

TEST(Damage, RecordsThatContradictThemselvesAreRefused) {
    struct Case {
        SourceBody body;
        std::vector<MissingRange> missing;
        bool good;
    };
    const auto body = [](SourceState state, std::uint64_t declared, std::uint64_t received) {
        SourceBody b;
        b.state = state;
        b.declared_bytes = declared;
        b.received_bytes = received;
        return b;
    };
    const Case cases[] = {
        {body(SourceState::complete, 10, 10), {}, true},
        {body(SourceState::complete, 10, 9), {}, false},
        {body(SourceState::partial, 10, 7), {{0, 1}, {5, 2}}, true},
        {body(SourceState::partial, 10, 7), {{5, 2}, {0, 1}}, false},
        {body(SourceState::partial, 10, 7), {{5, 2}, {6, 1}}, false},
        {body(SourceState::partial, 10, 7), {{9, 3}}, false},
        {body(SourceState::partial, 10, 10), {{3, 0}}, false},
        {body(SourceState::partial, std::uint64_t{1} << 40, 0), {{0, 0xffffffff}}, false},
        {body(SourceState::absent, 10, 0), {{0, 10}}, true},
        {body(SourceState::absent, 10, 3), {{3, 7}}, false},
        {body(SourceState::absent_unknown, 0, 0), {}, true},
        {body(SourceState::absent_unknown, 5, 0), {}, false},
        {body(SourceState::size_unknown, 0, 70), {}, true},
        {body(SourceState::size_unknown, 80, 70), {{70, 10}}, false},
        {body(static_cast<SourceState>(9), 10, 10), {}, false},
    };
    for (const Case& c : cases) {
        SourceBody stored = c.body;
        stored.missing_count = static_cast<std::uint32_t>(c.missing.size());
        std::vector<std::byte> bytes(padded(sizeof stored + c.missing.size() * sizeof(MissingRange)));
        std::memcpy(bytes.data(), &stored, sizeof stored);
        if (!c.missing.empty())
            std::memcpy(bytes.data() + sizeof stored, c.missing.data(), c.missing.size() * sizeof(MissingRange));
        std::span<const std::byte> rest = bytes;
        SourceInfo source;
        EXPECT_EQ(parse_source(rest, source).empty(), c.good) << "case " << (&c - cases);
        stored.missing_count = 0xffffffff;
        std::memcpy(bytes.data(), &stored, sizeof stored);
        rest = bytes;
        EXPECT_EQ(parse_source(rest, source), "a source record is cut off");
    }
}

TEST(Damage, BlocksWithGoodChecksumsAndImpossibleContentsAreRefused) {
    const TemporaryDirectory directory;
    write_run(directory / "run", small_events(1), true);
    const std::vector<std::byte> whole = read_file(directory / "run" / "events-000000.weir");
    const auto damage = [&](std::uint64_t at, const BlockChange& change) {
        std::size_t problems = 0;
        EXPECT_EQ(scan_memory(with_changed_block(whole, at, change), problems), 0U);
        EXPECT_GT(problems, 0U);
    };
    const std::uint64_t event = RunReader(directory / "run").find({}, 0)->offset;
    const std::uint64_t source = event + 128;
    BlockHeader header;
    std::memcpy(&header, whole.data() + source, sizeof header);
    const std::uint64_t payload = source + 64 + padded(header.stored_bytes);
    damage(event, [](BlockHeader&, std::byte* body) { body[32] ^= std::byte{1}; });   // number of sources
    damage(event, [](BlockHeader&, std::byte* body) { body[16] ^= std::byte{1}; });   // payload bytes
    damage(event, [](BlockHeader&, std::byte* body) { body[37] = std::byte{200}; });  // cause
    damage(source, [](BlockHeader& h, std::byte*) { h.event += 1; });
    damage(source, [](BlockHeader& h, std::byte*) { h.type = BlockType::payload; });
    damage(payload, [](BlockHeader& h, std::byte*) { h.raw_bytes += 1; });
    damage(payload, [](BlockHeader& h, std::byte*) { h.encoding = static_cast<Encoding>(7); });
    damage(payload, [](BlockHeader& h, std::byte*) { h.flags = 0; });
    damage(payload, [](BlockHeader&, std::byte* body) { body[0] ^= std::byte{0xff}; });  // no zstd frame
    damage(payload, [](BlockHeader& h, std::byte*) { h.type = static_cast<BlockType>(77); });
}

}  // namespace
}  // namespace weir::store::test
