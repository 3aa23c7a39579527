// The run writer's promises: hidden until complete, nothing replaced, errors that say why and leave whole events.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "store/run_path.hpp"
#include "support.hpp"

namespace weir::store::test {
namespace {

RunWriter::Config writer_config(const std::filesystem::path& path) {
    RunWriter::Config config;
    config.path = path;
    return config;
}

TestEvent plain_event(std::uint64_t id, std::size_t bytes) {
    TestEvent event;
    event.id = id;
    event.sources.push_back(
        {0, SourceState::complete, static_cast<std::uint32_t>(bytes), {}, std::vector<std::byte>(bytes), {}});
    return event;
}

TEST(RunWriter, ShowsTheRunUnderItsNameWhenItIsComplete) {
    const TemporaryDirectory directory;
    RunWriter run(writer_config(directory / "run"));
    EXPECT_EQ(run.path(), directory / ".run.part");
    Pump pump(run);
    pump.put(plain_event(1, 100));
    pump.flush();
    EXPECT_FALSE(std::filesystem::exists(directory / "run"));
    EXPECT_TRUE(std::filesystem::exists(directory / ".run.part"));
    EXPECT_EQ(run.stats().events, 1U);
    EXPECT_EQ(run.stats().payload_bytes, 100U);
    run.close({});
    EXPECT_EQ(run.path(), directory / "run");
    EXPECT_FALSE(std::filesystem::exists(directory / ".run.part"));
    EXPECT_EQ(run.stats().synced_events, 1U);
    EXPECT_TRUE(RunReader(directory / "run").scan({}).verified);
    EXPECT_THROW(run.append({}), core::RunError);
}

TEST(RunWriter, ReplacesNothing) {
    const TemporaryDirectory directory;
    std::filesystem::create_directory(directory / "there");
    write_file(directory / "file", {});
    std::filesystem::create_symlink("nowhere", directory / "link");
    for (const char* name : {"there", "file", "link"})
        EXPECT_NE(reason_of([&] { RunWriter run(writer_config(directory / name)); }).find("exists already"),
                  std::string::npos);
    RunWriter first(writer_config(directory / "run"));
    EXPECT_NE(reason_of([&] { RunWriter run(writer_config(directory / "run")); }).find("another weir is writing"),
              std::string::npos);
    // Something took the name while the run was written.
    std::filesystem::create_directory(directory / "run");
    EXPECT_NE(reason_of([&] { first.close({}); }).find("exists"), std::string::npos);
    std::filesystem::remove(directory / "run");
    first.close({});
    EXPECT_TRUE(RunReader(directory / "run").scan({}).verified);
}

TEST(RunWriter, SaysWhyAPlaceCannotBeWritten) {
    const TemporaryDirectory directory;
    EXPECT_NE(reason_of([&] { RunWriter run(writer_config(directory / "no" / "run")); }).find("there is no directory"),
              std::string::npos);
    write_file(directory / "file", {});
    EXPECT_NE(reason_of([&] { RunWriter run(writer_config(directory / "file" / "run")); }).find("Not a directory"),
              std::string::npos);
    const std::string proc = reason_of([&] { RunWriter run(writer_config("/proc/run")); });
    EXPECT_NE(proc.find("the file system of /proc takes no new directories"), std::string::npos) << proc;
    EXPECT_NE(reason_of([&] { RunWriter run(writer_config("")); }).find("not a name"), std::string::npos);
    EXPECT_NE(reason_of([&] { RunWriter run(writer_config(directory / "..")); }).find("not a name"), std::string::npos);
}

TEST(RunWriter, ASlashAtTheEndOfThePathDoesNotMatter) {
    const TemporaryDirectory directory;
    RunWriter run(writer_config((directory / "run").string() + "/"));
    run.close({});
    EXPECT_TRUE(RunReader((directory / "run").string() + "/").scan({}).verified);
}

/// Runs `action` in a child whose files cannot grow beyond `bytes`: the first write over it is short, the next one
/// fails.
int in_a_child_with_small_files(std::uint64_t bytes, const std::function<bool()>& action) {
    const pid_t child = ::fork();
    if (child == 0) {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{bytes, bytes};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        bool good = false;
        try {
            good = action();
        } catch (const std::exception&) {
        }
        ::_exit(good ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(RunWriter, AWriteErrorLeavesTheWholeEventsBeforeIt) {
    const TemporaryDirectory directory;
    const int status = in_a_child_with_small_files(100'000, [&] {
        RunWriter run(writer_config(directory / "run"));
        Pump pump(run);
        std::uint64_t handed = 0;
        std::string reason;
        while (reason.empty() && handed < 100) {
            reason = reason_of([&] {
                pump.put(plain_event(handed++, 40'000));
                pump.flush();
            });
            if (reason == "no error") reason.clear();
        }
        // The third event does not fit; a further call says the same again.
        const bool said = reason.find("File too large") != std::string::npos && run.failed() &&
                          run.stats().events == 2 && reason_of([&] { run.append({}); }) == reason &&
                          reason_of([&] { run.sync(); }) == reason;
        run.close({{"ledger", {{"events", {{"written", run.stats().events}}}}}});
        return said && handed == 3;
    });
    ASSERT_EQ(status, 0);
    Verification result;
    EXPECT_EQ(read_all(RunReader(directory / "run"), &result).size(), 2U);
    EXPECT_TRUE(result.verified) << result.problems[0];
}

TEST(RunWriter, ASegmentThatCannotBeBegunEndsTheRunWithTheOneBefore) {
    const TemporaryDirectory directory;
    RunWriter::Config config = writer_config(directory / "run");
    config.segment_bytes = 5000;
    RunWriter run(config);
    std::filesystem::create_directory(directory / ".run.part" / "events-000001.weir");
    Pump pump(run);
    pump.put(plain_event(1, 6000));
    pump.flush();
    pump.put(plain_event(2, 6000));
    EXPECT_NE(reason_of([&] { pump.flush(); }).find("events-000001.weir"), std::string::npos);
    EXPECT_TRUE(run.failed());
    EXPECT_EQ(run.stats().events, 1U);
    EXPECT_EQ(run.stats().segments, 1U);
    run.close({{"ledger", {{"events", {{"written", 1}}}}}});
    Verification result;
    EXPECT_EQ(read_all(RunReader(directory / "run"), &result).size(), 1U);
    EXPECT_TRUE(result.verified) << result.problems[0];
}

TEST(RunWriter, AnEventThatWasNeverFinishedIsCutOffAtTheEnd) {
    const TemporaryDirectory directory;
    RunWriter run(writer_config(directory / "run"));
    Pump pump(run);
    pump.put(plain_event(1, 10));
    pump.flush();
    alignas(block_align) std::array<std::byte, BlockWriter::buffer_bytes_min> buffer{};
    BlockWriter writer;
    writer.reset(buffer);
    EventRecord record;
    record.id = 2;
    record.complete = true;
    ASSERT_TRUE(writer.put_event(record));
    EXPECT_TRUE(writer.event_open());
    run.append(writer.blocks());
    run.close({});
    Verification result;
    EXPECT_EQ(read_all(RunReader(directory / "run"), &result).size(), 1U);
    EXPECT_TRUE(result.verified);
}

TEST(RunWriter, BlocksThatDoNotFollowEachOtherAreRefused) {
    const TemporaryDirectory directory;
    alignas(block_align) std::array<std::byte, BlockWriter::buffer_bytes_min> buffer{};
    for (int kind = 0; kind < 4; ++kind) {
        RunWriter run(writer_config(directory / std::to_string(kind)));
        BlockWriter writer;
        writer.reset(buffer);
        EventRecord record;
        record.complete = true;
        ASSERT_TRUE(writer.put_event(record));
        std::span<std::byte> blocks = writer.blocks();
        if (kind == 0) blocks = blocks.first(60);  // half a header
        if (kind == 1) blocks = blocks.first(64);  // no body
        if (kind == 2) buffer[0] ^= std::byte{1};  // no magic
        if (kind == 3) run.append(blocks);         // an event inside an event
        EXPECT_NE(reason_of([&] { run.append(blocks); }).find("internal error"), std::string::npos) << kind;
        EXPECT_TRUE(run.failed());
        run.close({});
        EXPECT_TRUE(RunReader(directory / std::to_string(kind)).scan({}).verified);
    }
}

TEST(RunWriter, TheLedgerMustAgreeWithWhatIsThere) {
    const TemporaryDirectory directory;
    RunWriter run(writer_config(directory / "run"));
    run.close({{"ledger", {{"events", {{"written", 1}}}}}});
    const Verification result = RunReader(directory / "run").scan({});
    EXPECT_FALSE(result.verified);
    EXPECT_NE(result.problems.at(0).find("ledger"), std::string::npos);
}

TEST(RunWriter, AKilledProcessLeavesEveryEventItAppended) {
    const TemporaryDirectory directory;
    std::array<int, 2> ready{};
    ASSERT_EQ(::pipe(ready.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        RunWriter run(writer_config(directory / "run"));
        Pump pump(run);
        for (std::uint64_t id = 0; id < 50; ++id) pump.put(plain_event(id, 5000));
        pump.flush();
        static_cast<void>(!::write(ready[1], "x", 1));
        for (;;) ::pause();
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ready[0]);
    ::close(ready[1]);
    Verification result;
    EXPECT_EQ(read_all(RunReader(directory / ".run.part"), &result).size(), 50U);
    EXPECT_FALSE(result.verified);
    EXPECT_EQ(result.problem_count, 1U);
}

TEST(RunWriter, SyncsByBytesAndWhenIdleByTime) {
    const TemporaryDirectory directory;
    RunWriter::Config config = writer_config(directory / "run");
    config.sync_bytes = 10'000;
    config.sync_interval_ns = 3600 * core::ns_per_s;
    RunWriter run(config);
    Pump pump(run);
    pump.put(plain_event(1, 1000));
    pump.flush();
    EXPECT_EQ(run.stats().synced_events, 0U);
    pump.put(plain_event(2, 20'000));
    pump.flush();
    EXPECT_EQ(run.stats().synced_events, 2U);
    EXPECT_EQ(run.stats().synced_bytes, run.stats().bytes);

    config.path = directory / "timed";
    config.sync_bytes = ~std::uint64_t{0};
    config.sync_interval_ns = core::ns_per_ms;
    RunWriter timed(config);
    Pump other(timed);
    other.put(plain_event(1, 1000));
    other.flush();
    ::usleep(2000);
    timed.sync_if_due();
    EXPECT_EQ(timed.stats().synced_events, 1U);
}

TEST(RunWriter, TheIndexIsWrittenInPiecesAndStaysRight) {
    const TemporaryDirectory directory;
    RunWriter::Config config = writer_config(directory / "run");
    config.sync_bytes = 1 << 20;
    RunWriter run(config);
    Pump pump(run, 1 << 20);
    for (std::uint64_t id = 0; id < 9000; ++id) pump.put(plain_event(id, 1));
    pump.flush();
    run.close({});
    const RunReader reader(directory / "run");
    EXPECT_TRUE(reader.scan({}).verified);
    EXPECT_GT(reader.manifest()["index"]["blocks"], 4);
    EXPECT_EQ(reader.find({}, 8999)->id, 8999U);
}

TEST(RunPath, TemplatesAreExpanded) {
    const PathValues values{"beam", 42, "2026-10-03"};
    EXPECT_EQ(expand_path_template("/data/{name}-{run:06}", values), "/data/beam-000042");
    EXPECT_EQ(expand_path_template("{date}/{run}{run:03}x", values), "2026-10-03/42042x");
    EXPECT_EQ(expand_path_template("plain", values), "plain");
    for (const char* bad : {"{nam}", "{run:6}", "{run:00}", "{run:0x}", "{", "a}", "{run", "{}", "{{run}}"})
        EXPECT_THROW(expand_path_template(bad, values), core::UsageError) << bad;
    EXPECT_THROW(expand_path_template("{name}", {"a/b", 1, ""}), core::UsageError);
    EXPECT_EQ(hidden_path("/data/run"), "/data/.run.part");
    EXPECT_EQ(hidden_path("run/"), ".run.part");
}

TEST(RunPath, RunNumbersGoOnAfterARestart) {
    const TemporaryDirectory directory;
    EXPECT_EQ(next_run_number(directory.path()), 1U);
    EXPECT_EQ(next_run_number(directory.path()), 2U);
    const std::string pattern = (directory / "{date}").string() + "/{name}-{run:04}";
    constexpr core::TimeNs now_ns = 1'700'000'000 * core::ns_per_s;
    const RunPath first = make_run_path(pattern, "x", now_ns);
    EXPECT_EQ(first.path, directory / "2023-11-14/x-0001");
    EXPECT_EQ(first.run, 1U);
    EXPECT_EQ(make_run_path(pattern, "x", now_ns).path, directory / "2023-11-14/x-0002");
    EXPECT_FALSE(make_run_path((directory / "plain").string(), "x", now_ns).run.has_value());
    EXPECT_FALSE(std::filesystem::exists(directory / "plain"));

    std::ofstream(directory / ".weir-run-number") << "000000041";  // shorter, as a person writes it
    EXPECT_EQ(next_run_number(directory.path()), 42U);
    std::ofstream(directory / ".weir-run-number") << "what";
    EXPECT_THROW(next_run_number(directory.path()), core::RunError);
    EXPECT_THROW(next_run_number(directory / "missing"), core::RunError);
    EXPECT_THROW(make_run_path((directory / "{nme}").string(), "x", now_ns), core::UsageError);
}

TEST(RunPath, ProcessesThatStartTogetherGetDifferentNumbers) {
    const TemporaryDirectory directory;
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            for (int n = 0; n < 10; ++n) next_run_number(directory.path());
            ::_exit(0);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
    EXPECT_EQ(next_run_number(directory.path()), 41U);
}

}  // namespace
}  // namespace weir::store::test
