// The run writer past the page cache, with io_uring, and with several files at once: what a reader finds is what was
// written, and after any failure the account says what is there.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.hpp"
#include "store/manifest.hpp"
#include "store/write_queue.hpp"
#include "support.hpp"

namespace weir::store::test {
namespace {

/// One way of writing.
struct Way {
    std::string name;
    Toggle direct = Toggle::off;
    Toggle uring = Toggle::off;
    std::uint32_t files = 1;
    std::uint64_t preallocate = 1 << 20;
    std::size_t pad = 0;  ///< what the worker fills buffers up to; 0: the writer has to copy
};

std::vector<Way> ways() {
    return {{"DirectOneByOne", Toggle::automatic, Toggle::off, 1, 1 << 20, 4096},
            {"DirectRing", Toggle::automatic, Toggle::automatic, 1, 1 << 20, 4096},
            {"DirectRingThreeFiles", Toggle::automatic, Toggle::automatic, 3, 1 << 20, 4096},
            {"DirectRingCopies", Toggle::automatic, Toggle::automatic, 2, 0, 0},
            {"RingOnly", Toggle::off, Toggle::automatic, 1, 0, 0},
            {"RingAsked", Toggle::off, Toggle::on, 1, 0, 0},
            {"TwoFiles", Toggle::off, Toggle::off, 2, 0, 0}};
}

RunWriter::Config config_for(const std::filesystem::path& path, const Way& way) {
    RunWriter::Config config;
    config.path = path;
    config.direct = way.direct;
    config.uring = way.uring;
    config.files = way.files;
    config.preallocate_bytes = way.preallocate;
    config.queue_depth = 4;
    config.segment_bytes = 200'000;
    config.sync_bytes = 150'000;
    config.version = way.pad > 0 ? format_version_reduced : format_version;
    return config;
}

/// Events in buffers of their own, as a worker has them: handed over without waiting for those before.
class Feeder {
public:
    Feeder(RunWriter& run, std::size_t pad) : run_(run), pad_(pad) {
        for (int i = 0; i < 12; ++i) memory_.emplace_back(buffer_bytes);
    }
    void put(const std::vector<std::byte>& blocks) {
        while (run_.held() == memory_.size()) run_.collect();
        AlignedBytes& memory = memory_[next_++ % memory_.size()];
        std::copy(blocks.begin(), blocks.end(), memory.span().begin());
        run_.append(memory.span().first(blocks.size()));
    }
    /// Formats an event into one buffer; they are small enough for that.
    void put(const TestEvent& event) {
        AlignedBytes memory(buffer_bytes);
        BlockWriter writer;
        writer.reset(memory.span());
        EventRecord record;
        record.id = event.id;
        record.epoch = event.epoch;
        record.complete = event.cause == Cause::complete;
        record.cause = event.cause;
        record.sources = static_cast<std::uint32_t>(event.sources.size());
        record.payload_bytes = event.received_bytes();
        record.packets = event.id + 1;
        record.first_ns = 1'700'000'000'000'000'000;
        record.last_ns = record.first_ns + 999;
        ASSERT_TRUE(writer.put_event(record));
        for (const TestSource& source : event.sources) {
            SourceRecord of;
            of.source = source.id;
            of.state = source.state;
            of.declared_bytes = source.declared;
            of.received_bytes = source.received.size();
            of.meta = source.meta;
            ASSERT_TRUE(writer.put_source(of, source.missing));
        }
        const std::vector<std::byte> payload = event.payload();
        const std::span<std::byte> room = writer.open_payload();
        ASSERT_GE(room.size(), payload.size());
        std::copy(payload.begin(), payload.end(), room.begin());
        const auto bytes = static_cast<std::uint32_t>(payload.size());
        writer.close_payload(bytes, bytes, Encoding::raw, true);
        if (pad_ > 0) {
            ASSERT_TRUE(writer.pad(pad_));
        }
        put(std::vector<std::byte>(writer.blocks().begin(), writer.blocks().end()));
    }

private:
    static constexpr std::size_t buffer_bytes = 65536;
    RunWriter& run_;
    std::size_t pad_;
    std::vector<AlignedBytes> memory_;
    std::size_t next_ = 0;
};

std::vector<TestEvent> some_events(std::mt19937_64& random, std::uint64_t count) {
    std::vector<TestEvent> events;
    for (std::uint64_t id = 0; id < count; ++id) events.push_back(random_event(random, id, 3, 6000));
    return events;
}

class DirectWrites : public testing::TestWithParam<Way> {};

TEST_P(DirectWrites, AReaderFindsEveryEventAndNothingElse) {
    std::mt19937_64 random(7);
    const TemporaryDirectory directory;
    const std::vector<TestEvent> events = some_events(random, 60);
    {
        RunWriter run(config_for(directory / "run", GetParam()));
        EXPECT_EQ(run.alignment(), run.how()["direct"] ? File::direct_alignment : block_align);
        Feeder feeder(run, GetParam().pad);
        for (const TestEvent& event : events) feeder.put(event);
        run.finish_data();
        EXPECT_EQ(run.held(), 0U);
        EXPECT_EQ(run.stats().events, events.size());
        EXPECT_EQ(run.stats().synced_events, events.size());
        run.close({{"ledger", {{"events", {{"written", events.size()}}}}}});
        EXPECT_GT(run.stats().segments, 2U);
    }
    const RunReader reader(directory / "run");
    Verification result;
    const auto found = read_all(reader, &result);
    EXPECT_TRUE(result.verified) << result.problems.at(0);
    ASSERT_EQ(found.size(), events.size());
    for (const TestEvent& event : events) expect_same(event, found.at({event.epoch, event.id}));
    EXPECT_TRUE(reader.index().has_value());
    // What was set aside and not needed is gone.
    for (const auto& entry : std::filesystem::directory_iterator(directory / "run"))
        if (entry.path().extension() == ".weir") {
            EXPECT_LT(entry.file_size(), 300'000U) << entry.path();
        }
}

TEST_P(DirectWrites, EventsOverSeveralBuffersStayInOneFile) {
    std::mt19937_64 random(8);
    const TemporaryDirectory directory;
    std::vector<TestEvent> events;
    for (std::uint64_t id = 0; id < 12; ++id) events.push_back(random_event(random, id, 3, 60'000));
    {
        RunWriter run(config_for(directory / "run", GetParam()));
        Pump pump(run);
        if (GetParam().pad > 0) pump.pad_buffers(GetParam().pad);
        for (const TestEvent& event : events) {
            pump.put(event);
            pump.flush();
        }
        run.close({{"ledger", {{"events", {{"written", events.size()}}}}}});
    }
    Verification result;
    const auto found = read_all(RunReader(directory / "run"), &result);
    EXPECT_TRUE(result.verified) << result.problems.at(0);
    ASSERT_EQ(found.size(), events.size());
    for (const TestEvent& event : events) expect_same(event, found.at({event.epoch, event.id}));
}

INSTANTIATE_TEST_SUITE_P(Ways, DirectWrites, testing::ValuesIn(ways()),
                         [](const auto& info) { return info.param.name; });

TEST(DirectWrites, AfterAnyFailureTheAccountSaysWhatIsThere) {
    const std::uint64_t seed = std::random_device()();
    std::cout << "seed " << seed << '\n';
    std::mt19937_64 random(seed);
    int failures = 0;
    for (int round = 0; round < 40; ++round) {
        const TemporaryDirectory directory(memory_folder());
        const Way way{"",         Toggle::automatic,
                      Toggle::on, 1 + static_cast<std::uint32_t>(random() % 3),
                      1 << 20,    random() % 2 == 0 ? 4096U : 0U};
        RunWriter::Config config = config_for(directory / "run", way);
        config.version = format_version_reduced;
        const std::uint64_t fatal_at = random() % 60;
        std::uint64_t calls = 0;
        // What a kernel may answer: less, an interruption, "again", and at some time an error.
        config.tamper = [&](std::uint64_t, std::size_t bytes, int result) {
            const std::uint64_t call = calls++;
            if (call == fatal_at) return std::array{-EIO, -ENOSPC, -EDQUOT}[random() % 3];
            switch (random() % 8) {
                case 0:
                    return -EINTR;
                case 1:
                    return -EAGAIN;
                case 2:
                    return static_cast<int>(random() % (bytes + 1));
                default:
                    return result;
            }
        };
        const std::vector<TestEvent> events = some_events(random, 30);
        std::uint64_t written = 0;
        {
            RunWriter run(config);
            Feeder feeder(run, way.pad);
            bool failed = false;
            try {
                for (const TestEvent& event : events) feeder.put(event);
                run.finish_data();
            } catch (const core::RunError&) {
                failed = true;
                ++failures;
                EXPECT_TRUE(run.failed());
                EXPECT_EQ(run.held(), 0U);
                EXPECT_THROW(feeder.put(events[0]), core::RunError);
            }
            run.finish_data();
            written = run.stats().events;
            EXPECT_EQ(run.stats().synced_events, written);
            if (!failed) {
                EXPECT_EQ(written, events.size());
            }
            run.close({{"ledger", {{"events", {{"written", written}}}}}});
            EXPECT_EQ(run.stats().events, written);
        }
        Verification result;
        const auto found = read_all(RunReader(directory / "run"), &result);
        EXPECT_TRUE(result.verified) << "seed " << seed << ": " << result.problems.at(0);
        EXPECT_EQ(found.size(), written) << "seed " << seed;
        for (const auto& [key, event] : found) expect_same(events.at(key.second), event);
    }
    EXPECT_GT(failures, 5);
}

TEST(DirectWrites, AKilledProcessLeavesWhatWasSyncedReadable) {
    const TemporaryDirectory directory;
    std::array<int, 2> ready{};
    ASSERT_EQ(::pipe(ready.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        RunWriter run(config_for(directory / "run", ways()[2]));
        Feeder feeder(run, 4096);
        std::mt19937_64 random(9);
        for (const TestEvent& event : some_events(random, 40)) feeder.put(event);
        while (run.held() > 0) run.collect();
        const auto events = static_cast<char>(run.stats().events);
        static_cast<void>(!::write(ready[1], &events, 1));
        for (;;) ::pause();
    }
    char events = 0;
    ASSERT_EQ(::read(ready[0], &events, 1), 1);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ready[0]);
    ::close(ready[1]);
    EXPECT_EQ(events, 40);
    Verification result;
    const auto found = read_all(RunReader(directory / ".run.part"), &result);
    EXPECT_EQ(found.size(), 40U);
    EXPECT_FALSE(result.verified);
    std::mt19937_64 random(9);
    for (const TestEvent& event : some_events(random, 40)) expect_same(event, found.at({event.epoch, event.id}));
}

TEST(DirectWrites, APolicyOfSyncingIsKept) {
    using Policy = SyncPolicy;
    for (const Policy policy : {Policy::interval, Policy::segment, Policy::end, Policy::never}) {
        std::mt19937_64 random(10);
        const TemporaryDirectory directory;
        RunWriter::Config config = config_for(directory / "run", ways()[1]);
        config.sync = policy;
        const std::vector<TestEvent> events = some_events(random, 60);
        RunWriter run(config);
        Feeder feeder(run, 4096);
        for (const TestEvent& event : events) feeder.put(event);
        while (run.held() > 0) run.collect();
        const bool synced = policy == Policy::interval || policy == Policy::segment;
        EXPECT_EQ(run.stats().synced_events > 0, synced);
        run.finish_data();
        EXPECT_EQ(run.stats().events, events.size());
        EXPECT_EQ(run.stats().synced_events, policy == Policy::never ? 0 : events.size());
        run.close({{"ledger", {{"events", {{"written", events.size()}}}}}});
        Verification result;
        EXPECT_EQ(read_all(RunReader(directory / "run"), &result).size(), events.size());
        EXPECT_TRUE(result.verified);
    }
}

TEST(DirectWrites, AfterPartOfAUnitAWriteGoesOnWhereTheUnitBegan) {
    const TemporaryDirectory directory;
    File file = File::create(directory / "file");
    if (!file.set_direct(true)) GTEST_SKIP() << "this file system takes no O_DIRECT";
    constexpr std::size_t unit = File::direct_alignment;
    using Places = std::vector<std::pair<std::uint64_t, std::size_t>>;
    Places places;
    const auto short_once = [&](std::uint64_t offset, std::size_t bytes, int result) {
        places.emplace_back(offset, bytes);
        return places.size() == 1 ? static_cast<int>(unit) + 904 : result;
    };
    std::optional<WriteQueue> queue;
    try {
        queue.emplace(2, short_once);
    } catch (const core::RunError& error) {
        GTEST_SKIP() << error.what();
    }
    AlignedBytes memory(3 * unit);
    for (std::size_t i = 0; i < memory.span().size(); ++i) memory.span()[i] = static_cast<std::byte>(i * 7 + i / 256);
    WriteQueue::Ticket ticket;
    queue->write(file, 0, memory.span(), ticket);
    queue->drain();
    EXPECT_EQ(places, (Places{{0, 3 * unit}, {unit, 2 * unit}}));
    EXPECT_EQ(ticket.error_number, 0);
    EXPECT_TRUE(std::ranges::equal(read_file(directory / "file"), memory.span()));
}

TEST(DirectWrites, WhatIsRefusedIsSaid) {
    const TemporaryDirectory directory;
    Way way = ways()[1];
    RunWriter run(config_for(directory / "run", way));
    const nlohmann::json how = run.how();
    EXPECT_EQ(how["files"], 1);
    if (how["direct"])
        EXPECT_NE(run.how_text().find("O_DIRECT"), std::string::npos);
    else
        EXPECT_NE(how["note"].get<std::string>().find("O_DIRECT is refused"), std::string::npos);
}

}  // namespace
}  // namespace weir::store::test
