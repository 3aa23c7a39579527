// A run's directory while it is written: files that vanish, segments that rotate, two writers for one path, copies.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "effort.hpp"
#include "store/disk_watch.hpp"
#include "store/manifest.hpp"
#include "store/run_directory.hpp"
#include "store/run_path.hpp"
#include "support.hpp"

namespace weir::store::test {
namespace {

RunWriter::Config config_for(const std::filesystem::path& path, std::uint64_t segment_bytes = 1U << 30) {
    RunWriter::Config config;
    config.path = path;
    config.segment_bytes = segment_bytes;
    return config;
}

void put_events(RunWriter& run, std::uint64_t first, std::uint64_t count) {
    Pump pump(run);
    for (std::uint64_t id = first; id < first + count; ++id) {
        pump.put(image_event(id, {std::vector<std::uint16_t>(500, static_cast<std::uint16_t>(id))}));
        pump.flush();
    }
}

nlohmann::json account(const RunWriter& run) {
    return {{"ledger", {{"events", {{"written", run.stats().events}}}}}};
}

// --- files that vanish -----------------------------------------------------------------------------------------------

TEST(RunDirectory, RemovedUnderTheRunIsNoticedAndNothingIsCalledWritten) {
    const TemporaryDirectory directory;
    RunWriter run(config_for(directory / "run", 3000));
    put_events(run, 0, 10);
    std::filesystem::remove_all(run.path());
    // The next sync sees it; a run that syncs rarely at its end.
    EXPECT_NE(reason_of([&] { run.sync(); }).find("removed"), std::string::npos);
    EXPECT_TRUE(run.failed());
    run.finish_data();
    EXPECT_EQ(run.stats().events, 0U);
    EXPECT_NE(reason_of([&] { run.close({}); }).find("removed"), std::string::npos);
    EXPECT_TRUE(std::filesystem::is_empty(directory.path()));

    RunWriter late(config_for(directory / "late"));
    put_events(late, 0, 3);
    std::filesystem::remove_all(late.path());
    EXPECT_NE(reason_of([&] { late.finish_data(); }).find("removed"), std::string::npos);
    EXPECT_EQ(late.stats().events, 0U);
}

TEST(RunDirectory, ARemovedSegmentTakesItsEventsOutOfTheAccount) {
    const TemporaryDirectory directory;
    RunWriter run(config_for(directory / "run", 3000));
    put_events(run, 0, 10);
    ASSERT_GT(run.stats().segments, 3U);
    const std::uint64_t before = run.stats().events;
    std::filesystem::remove(run.path() / segment_name(1));
    EXPECT_NE(reason_of([&] { run.finish_data(); }).find("removed"), std::string::npos);
    EXPECT_LT(run.stats().events, before);
    EXPECT_EQ(read_all(RunReader(run.path())).size(), run.stats().events);
    EXPECT_THROW(run.close(account(run)), core::RunError);
    EXPECT_FALSE(std::filesystem::exists(directory / "run"));
}

TEST(RunDirectory, MovedUnderTheRunKeepsWhatWasSynced) {
    const TemporaryDirectory directory;
    RunWriter run(config_for(directory / "run"));
    put_events(run, 0, 4);
    run.sync();
    std::filesystem::rename(run.path(), directory / "elsewhere");
    put_events(run, 4, 2);
    EXPECT_NE(reason_of([&] { run.sync(); }).find("moved"), std::string::npos);
    run.finish_data();
    EXPECT_GE(run.stats().events, 4U);
    EXPECT_EQ(read_all(RunReader(directory / "elsewhere")).size(), run.stats().events);
    EXPECT_THROW(run.close(account(run)), core::RunError);
}

TEST(RunDirectory, AShortenedSegmentIsNotMadeLongerAgain) {
    const TemporaryDirectory directory;
    RunWriter run(config_for(directory / "run"));
    put_events(run, 0, 4);
    std::filesystem::resize_file(run.path() / segment_name(0), 100);
    EXPECT_NE(reason_of([&] { run.finish_data(); }).find("shortened"), std::string::npos);
    EXPECT_EQ(run.stats().events, 0U);
    EXPECT_EQ(std::filesystem::file_size(run.path() / segment_name(0)), 100U);
}

TEST(RunDirectory, RoomForTheEndIsSetAsideAndGivenBack) {
    const TemporaryDirectory directory;
    RunWriter run(config_for(directory / "run"));
    EXPECT_GE(std::filesystem::file_size(run.path() / room_name), 1U << 20);
    put_events(run, 0, 1);
    run.close(account(run));
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory / "run"))
        names.insert(entry.path().filename().string());
    EXPECT_EQ(names, (std::set<std::string>{segment_name(0), std::string(index_name), std::string(manifest_name)}));
}

// --- segments --------------------------------------------------------------------------------------------------------

TEST(Segments, OfOneEventEachIfTheyAreThatSmall) {
    const TemporaryDirectory directory;
    RunWriter run(config_for(directory / "run", 1));
    put_events(run, 0, 7);
    run.close(account(run));
    Verification result;
    EXPECT_EQ(read_all(RunReader(directory / "run"), &result).size(), 7U);
    EXPECT_TRUE(result.verified);
    const nlohmann::json manifest = RunReader(directory / "run").manifest();
    // The first one has no event: it is full with its first block.
    EXPECT_EQ(manifest["segments"].size(), 8U);
    std::uint64_t events = 0;
    for (std::size_t i = 0; i < manifest["segments"].size(); ++i) {
        const nlohmann::json& segment = manifest["segments"][i];
        EXPECT_EQ(segment["file"], segment_name(static_cast<std::uint32_t>(i)));
        EXPECT_EQ(segment["bytes"], std::filesystem::file_size(directory / "run" / segment["file"]));
        events += segment["events"].get<std::uint64_t>();
    }
    EXPECT_EQ(events, 7U);
}

TEST(Segments, BeginByTimeWithTheEventThatIsLateEnough) {
    const TemporaryDirectory directory;
    RunWriter::Config config = config_for(directory / "run");
    config.segment_interval_ns = 20 * core::ns_per_ms;
    RunWriter run(config);
    put_events(run, 0, 3);
    const std::uint64_t at_once = run.stats().segments;
    ::usleep(25'000);
    run.sync_if_due();
    EXPECT_EQ(run.stats().segments, at_once) << "without events there is nothing to begin";
    put_events(run, 3, 1);
    EXPECT_EQ(run.stats().segments, at_once + 1);
    ::usleep(25'000);
    put_events(run, 4, 1);
    EXPECT_EQ(run.stats().segments, at_once + 2);
    run.close(account(run));
    Verification result;
    EXPECT_EQ(read_all(RunReader(directory / "run"), &result).size(), 5U);
    EXPECT_TRUE(result.verified);
}

TEST(Segments, AreNotMoreThanAManifestCanList) {
    const TemporaryDirectory directory;
    RunWriter::Config config = config_for(directory / "run", 1);
    config.segments_max = 3;
    RunWriter run(config);
    put_events(run, 0, 9);
    EXPECT_EQ(run.stats().segments, 3U);
    run.close(account(run));
    Verification result;
    EXPECT_EQ(read_all(RunReader(directory / "run"), &result).size(), 9U);
    EXPECT_TRUE(result.verified);
}

// --- two writers -----------------------------------------------------------------------------------------------------

/// Runs `action` with 0, 1, ... in so many processes that begin at the same moment; returns their exit statuses.
std::vector<int> together(int count, const std::function<int(int)>& action) {
    std::array<int, 2> start{};
    EXPECT_EQ(::pipe(start.data()), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < count; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::close(start[1]);
            char byte = 0;
            static_cast<void>(!::read(start[0], &byte, 1));  // until the parent closes its end
            ::_exit(action(i));
        }
        children.push_back(child);
    }
    ::close(start[0]);
    ::close(start[1]);
    std::vector<int> results;
    for (const pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        results.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    }
    return results;
}

TEST(TwoWriters, OfOnePathOneGetsItWhoeverIsFirst) {
    const TemporaryDirectory directory(memory_folder());
    for (int round = 0; round < weir::test::repeated(60); ++round) {
        const auto path = directory / std::to_string(round);
        const std::vector<int> results = together(3, [&](int who) {
            try {
                RunWriter run(config_for(path));
                put_events(run, static_cast<std::uint64_t>(who), 1);
                run.close(account(run));
                return 0;
            } catch (const core::RunError& error) {
                return std::string(error.what()).find("exists already") != std::string::npos ? 10 : 1;
            }
        });
        EXPECT_EQ(std::count(results.begin(), results.end(), 0), 1) << "round " << round;
        EXPECT_EQ(std::count(results.begin(), results.end(), 10), 2) << "round " << round;
        EXPECT_TRUE(RunReader(path).scan({}).verified);
        EXPECT_FALSE(std::filesystem::exists(hidden_path(path)));
    }
}

TEST(TwoWriters, TheSecondIsToldWhetherTheFirstStillLives) {
    const TemporaryDirectory directory;
    const auto hidden = directory / ".run.part";
    {
        RunWriter run(config_for(directory / "run"));
        put_events(run, 0, 1);
        EXPECT_TRUE(is_being_written(hidden));
        EXPECT_NE(reason_of([&] { RunWriter again(config_for(directory / "run")); }).find("another weir is writing"),
                  std::string::npos);
    }
    EXPECT_FALSE(is_being_written(hidden));
    const std::string reason = reason_of([&] { RunWriter again(config_for(directory / "run")); });
    EXPECT_NE(reason.find("ended by force"), std::string::npos) << reason;
    EXPECT_NE(reason.find("weir inspect " + hidden.string()), std::string::npos) << reason;
    EXPECT_EQ(read_all(RunReader(hidden)).size(), 1U) << "it was not touched";
}

TEST(RunPath, NumbersStayDifferentWhenStartsRaceAndAreKilled) {
    const TemporaryDirectory directory(memory_folder());
    const std::string pattern = (directory / "run-{run:03}").string();
    std::uint64_t closed = 0;
    for (int round = 0; round < 20; ++round) {
        const std::vector<int> results = together(4, [&](int who) {
            const RunPath path = make_run_path(pattern, "x", 0);
            RunWriter::Config config = config_for(path.path);
            config.run = path.run;
            RunWriter run(config);
            if ((who + round) % 3 == 0) ::raise(SIGKILL);
            run.close(account(run));
            return 0;
        });
        closed += static_cast<std::uint64_t>(std::count(results.begin(), results.end(), 0));
        if (round == 10) std::filesystem::remove(directory / ".weir-run-number");  // as on a restored disk
        if (round == 15) write_file(directory / ".weir-run-number", bytes_of(std::string(11, '\0')));  // a power cut
    }
    std::set<std::string> numbers;
    std::uint64_t whole = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
        if (!entry.is_directory()) continue;
        const RunReader run(entry.path());
        ASSERT_TRUE(run.run().has_value());
        EXPECT_TRUE(numbers.insert(std::to_string(*run.run())).second) << "number " << *run.run() << " was given twice";
        whole += run.closed() ? 1 : 0;
    }
    EXPECT_EQ(numbers.size(), 80U);
    EXPECT_EQ(whole, closed);
}

TEST(RunPath, AMountThatIsRequiredMustBeThere) {
    const TemporaryDirectory directory;
    EXPECT_EQ(reason_of([&] { require_mount_point("/proc"); }), "no error");
    EXPECT_NE(reason_of([&] { require_mount_point(directory.path()); }).find("no file system is mounted at"),
              std::string::npos);
    EXPECT_NE(reason_of([&] { require_mount_point(directory / "no"); }).find("No such file"), std::string::npos);
}

// --- copies ----------------------------------------------------------------------------------------------------------

/// A copy as a program makes it that takes file after file in any order while the writer goes on.
void copy_in_any_order(const std::filesystem::path& from, const std::filesystem::path& to, std::mt19937_64& random,
                       const std::function<void()>& meanwhile) {
    std::vector<std::filesystem::path> names;
    for (const auto& entry : std::filesystem::directory_iterator(from)) names.push_back(entry.path().filename());
    std::shuffle(names.begin(), names.end(), random);
    std::filesystem::create_directory(to);
    for (const auto& name : names) {
        meanwhile();
        std::vector<std::byte> bytes = read_file(from / name);
        if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));  // the rest would have come later
        write_file(to / name, bytes);
    }
}

TEST(Copies, OfARunThatIsBeingWrittenHoldWholeEventsAndSayThatItIsNotClosed) {
    const std::uint64_t seed = std::random_device()();
    std::cout << "seed " << seed << '\n';
    std::mt19937_64 random(seed);
    std::vector<TestEvent> events;
    for (std::uint64_t id = 0; id < 400; ++id) events.push_back(random_event(random, id, 2, 300));
    const TemporaryDirectory directory(memory_folder());
    RunWriter::Config config = config_for(directory / "run", 10'000);
    config.sync_bytes = 4000;
    RunWriter run(config);
    std::size_t next = 0;
    const auto write_more = [&] {
        Pump pump(run);
        for (int n = 0; n < 3 && next < events.size(); ++n) pump.put(events[next++]);
        pump.flush();
    };
    std::size_t found_in_copies = 0;
    for (int round = 0; round < 12; ++round) {
        const auto copy = directory / ("copy" + std::to_string(round));
        for (int n = 0; n < 3; ++n) write_more();
        copy_in_any_order(run.path(), copy, random, write_more);
        Verification result;
        std::map<Key, Found> found;
        try {
            found = read_all(RunReader(copy), &result);
        } catch (const core::RunError&) {
            continue;  // the first segment was not copied
        }
        EXPECT_FALSE(result.verified);
        ASSERT_GE(result.problem_count, 1U);
        EXPECT_NE(result.problems[0].find("not closed"), std::string::npos) << result.problems[0];
        EXPECT_FALSE(is_being_written(copy));
        for (const auto& [key, event] : found) expect_same(events.at(key.second), event);
        found_in_copies += found.size();
        // The original can be read while it is written, all of it.
        EXPECT_EQ(read_all(RunReader(run.path()), &result).size(), next);
        EXPECT_EQ(result.problem_count, 1U) << result.problems.back();
    }
    EXPECT_GT(found_in_copies, 100U) << "seed " << seed;
    run.close(account(run));
    Verification result;
    EXPECT_EQ(read_all(RunReader(directory / "run"), &result).size(), next);
    EXPECT_TRUE(result.verified);
}

// --- how long the disk lasts -----------------------------------------------------------------------------------------

TEST(DiskWatch, KnowsTheRateAndTheTimeThatIsLeft) {
    DiskWatch watch;
    EXPECT_FALSE(watch.outlook().free_bytes.has_value());
    constexpr std::uint64_t mb = 1'000'000;
    watch.update(core::ns_per_s, 0, 1000 * mb);
    EXPECT_EQ(watch.outlook().free_bytes, 1000 * mb);
    EXPECT_FALSE(watch.outlook().seconds_left.has_value());
    for (std::uint64_t s = 1; s <= 30; ++s)
        watch.update(static_cast<core::TimeNs>(s + 1) * core::ns_per_s, 10 * mb * s, (1000 - 10 * s) * mb);
    EXPECT_EQ(watch.outlook().bytes_per_second, 10 * mb);
    EXPECT_EQ(watch.outlook().seconds_left, 70U);
    // Somebody else fills the disk faster.
    watch.update(41 * core::ns_per_s, 400 * mb, 200 * mb);
    EXPECT_GT(*watch.outlook().bytes_per_second, 20 * mb);
    // Nothing is written any more: there is no end.
    for (std::int64_t s = 42; s < 60; ++s) watch.update(s * core::ns_per_s, 400 * mb, 200 * mb);
    EXPECT_EQ(watch.outlook().bytes_per_second, 0U);
    EXPECT_FALSE(watch.outlook().seconds_left.has_value());
    // A file system that does not say.
    watch.update(61 * core::ns_per_s, 500 * mb, {});
    EXPECT_FALSE(watch.outlook().seconds_left.has_value());
    EXPECT_EQ(disk_text(watch.outlook()), "");
}

TEST(DiskWatch, WarnsOnceAndAgainAtHalfOfIt) {
    DiskAlarm alarm(600);
    const auto at = [&](std::uint64_t seconds) { return alarm.update({1, 1, seconds}); };
    EXPECT_FALSE(at(700));
    EXPECT_TRUE(at(599));
    EXPECT_FALSE(at(500));
    EXPECT_TRUE(at(298));
    EXPECT_FALSE(at(700)) << "a little room is not a change";
    EXPECT_FALSE(at(299));
    EXPECT_FALSE(at(5000));
    EXPECT_TRUE(at(590)) << "after there was room it begins anew";
    EXPECT_FALSE(alarm.update({1, 0, {}}));
    DiskAlarm never(0);
    EXPECT_FALSE(never.update({1, 1, 0}));
}

TEST(DiskWatch, IsSaidInWords) {
    EXPECT_EQ(disk_text({500'000, {}, {}}), "0.5 MB free");
    EXPECT_EQ(disk_text({1'200'000'000'000, 100, 12'240}), "1.2 TB free, 3.4 h left");
    EXPECT_EQ(disk_text({34'000'000'000, 100, 90}), "34 GB free, 90 s left");
    EXPECT_EQ(disk_text({34'000'000'000, 100, 900}), "34 GB free, 15 min left");
    EXPECT_EQ(disk_text({9'000'000'000'000'000, 100, 900'000}), "9 PB free, 10 days left");
}

}  // namespace
}  // namespace weir::store::test
