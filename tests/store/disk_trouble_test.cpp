// What the run writer makes of a disk that fails at any one call, and what a reader finds after a power cut at any one.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.hpp"
#include "disk_model.hpp"
#include "store/manifest.hpp"
#include "support.hpp"

namespace weir::store::test {
namespace {

constexpr int events_count = 14;

const std::vector<TestEvent>& events() {
    static const std::vector<TestEvent> all = [] {
        std::mt19937_64 random(11);
        std::vector<TestEvent> made;
        for (std::uint64_t id = 0; id < events_count; ++id) made.push_back(random_event(random, id, 2, 900));
        return made;
    }();
    return all;
}

/// What became of one run.
struct Outcome {
    bool started = false;
    bool append_failed = false;
    bool closed = false;
    std::uint64_t synced_before_settling = 0;
    std::uint64_t written = 0;  ///< what the account would say
    std::filesystem::path path;
    std::string error;
};

/// A whole run of small segments, synced all the time, as the writer thread does it.
Outcome run_once(const std::filesystem::path& path, const RunWriter** running = nullptr,
                 SyncPolicy policy = SyncPolicy::interval) {
    Outcome outcome;
    RunWriter::Config config;
    config.path = path;
    config.segment_bytes = 4000;
    config.sync_bytes = 1500;
    config.sync = policy;
    config.unsynced_max = 2;
    std::optional<RunWriter> run;
    try {
        run.emplace(config);
    } catch (const core::RunError& error) {
        outcome.error = error.what();
        return outcome;
    }
    if (running != nullptr) *running = &*run;
    outcome.started = true;
    Pump pump(*run);
    const auto attempt = [&](auto action) {
        try {
            action();
            return true;
        } catch (const core::RunError& error) {
            if (outcome.error.empty()) outcome.error = error.what();
            return false;
        }
    };
    for (std::size_t i = 0; i < events().size() && !outcome.append_failed; ++i)
        outcome.append_failed = !attempt([&] {
            pump.put(events()[i]);
            if (i % 2 == 1) pump.flush();
        });
    outcome.synced_before_settling = run->stats().synced_events;
    attempt([&] { run->finish_data(); });
    outcome.written = run->stats().events;
    outcome.closed = attempt([&] { run->close({{"ledger", {{"events", {{"written", outcome.written}}}}}}); });
    EXPECT_EQ(run->stats().events, outcome.written) << "closing changed the account";
    outcome.path = run->path();
    if (running != nullptr) *running = nullptr;
    return outcome;
}

/// Reads what is there: each event must be right. Returns how many there are without a gap from the first one on.
std::size_t check_events(const std::filesystem::path& path, Verification* result = nullptr,
                         std::size_t* all = nullptr) {
    const auto found = read_all(RunReader(path), result);
    std::size_t leading = 0;
    for (std::size_t i = 0; i < events().size(); ++i) {
        const auto event = found.find({events()[i].epoch, events()[i].id});
        if (event == found.end()) continue;
        if (leading == i) ++leading;
        expect_same(events()[i], event->second);
    }
    if (all != nullptr) *all = found.size();
    return leading;
}

std::size_t calls_of_a_run(SyncPolicy policy = SyncPolicy::interval) {
    const TemporaryDirectory directory(memory_folder());
    DiskModel disk(directory.path());
    EXPECT_TRUE(run_once(directory / "run", nullptr, policy).closed);
    return disk.calls();
}

/// One run with one fault; everything that must hold whatever happens.
void check_fault(std::size_t at, const Fault& fault, SyncPolicy policy = SyncPolicy::interval) {
    const TemporaryDirectory directory(memory_folder());
    DiskModel disk(directory.path());
    disk.fail_at(at, fault);
    const Outcome outcome = run_once(directory / "run", nullptr, policy);
    ASSERT_TRUE(disk.met());
    const Call call = disk.met_call();
    if (fault.kind != Fault::Kind::error) {
        EXPECT_TRUE(outcome.closed) << outcome.error;
        Verification result;
        EXPECT_EQ(check_events(directory / "run", &result), events().size());
        EXPECT_TRUE(result.verified);
        return;
    }
    EXPECT_FALSE(outcome.error.empty());
    EXPECT_NE(outcome.error.find(std::strerror(fault.error_number)), std::string::npos) << outcome.error;
    if (!outcome.started) {
        EXPECT_TRUE(std::filesystem::is_empty(directory.path())) << "a run that did not start left something";
        return;
    }
    EXPECT_GE(outcome.written, outcome.synced_before_settling);
    Verification result;
    std::size_t all = 0;
    std::size_t found = check_events(outcome.path, &result, &all);
    if (policy == SyncPolicy::end)
        found = all;  // a full segment may have been set aside
    else
        EXPECT_EQ(found, all) << "an event is missing in the middle";
    // Where nothing can be cut off any more there may be more than the account says; never less.
    if (call == Call::truncate)
        EXPECT_GE(found, outcome.written);
    else
        EXPECT_EQ(found, outcome.written);
    const bool named = outcome.path == directory / "run";
    EXPECT_EQ(std::filesystem::exists(directory / "run"), named);
    EXPECT_TRUE(result.verified || !named) << result.problems.at(0);
    EXPECT_FALSE(outcome.closed && call == Call::sync) << "a sync that failed was tried again until it worked";
}

TEST(DiskTrouble, AnErrorAtAnyCallLeavesWhatTheAccountSays) {
    const std::size_t calls = calls_of_a_run();
    ASSERT_GT(calls, 40U);
    for (std::size_t at = 0; at < calls; ++at) {
        for (const int error_number : {EIO, ENOSPC}) {
            for (const bool for_good : {false, true}) {
                SCOPED_TRACE(testing::Message() << "call " << at << " of " << calls << ": "
                                                << std::strerror(error_number) << (for_good ? " for good" : ""));
                check_fault(at, {Fault::Kind::error, error_number, for_good});
            }
        }
    }
}

TEST(DiskTrouble, AlsoWhereAllIsSyncedAtTheEnd) {
    constexpr auto policy = SyncPolicy::end;
    const std::size_t calls = calls_of_a_run(policy);
    ASSERT_GT(calls, 30U);
    for (std::size_t at = 0; at < calls; ++at) {
        for (const bool for_good : {false, true}) {
            SCOPED_TRACE(testing::Message() << "call " << at << " of " << calls << (for_good ? " for good" : ""));
            check_fault(at, {Fault::Kind::error, EIO, for_good}, policy);
        }
    }
}

TEST(DiskTrouble, AFullSegmentThatCannotBeSyncedIsSetAside) {
    constexpr auto policy = SyncPolicy::end;
    const std::size_t calls = calls_of_a_run(policy);
    std::size_t met = 0;
    for (std::size_t at = 0; at < calls; ++at) {
        const TemporaryDirectory directory(memory_folder());
        DiskModel disk(directory.path());
        disk.fail_at(at, {Fault::Kind::error, EIO, false});
        const Outcome outcome = run_once(directory / "run", nullptr, policy);
        if (disk.met_call() != Call::sync || !outcome.started) continue;
        std::vector<std::string> aside;
        for (const auto& entry : std::filesystem::directory_iterator(outcome.path))
            if (entry.path().extension() == ".unsynced") aside.push_back(entry.path().stem().string());
        if (aside.empty()) continue;  // the last one, which is shortened
        ++met;
        ASSERT_EQ(aside.size(), 1U);
        EXPECT_NE(outcome.error.find(aside[0] + " ("), std::string::npos) << outcome.error;
        EXPECT_FALSE(outcome.closed);
        EXPECT_LT(outcome.written, events().size());
        EXPECT_GT(outcome.written, 0U) << "the others are worth syncing";
    }
    EXPECT_GE(met, 3U);
}

TEST(DiskTrouble, WhatStaysAfterAFailedWriteIsSyncedAtTheEndToo) {
    constexpr auto policy = SyncPolicy::end;
    std::mt19937_64 random(13);
    const std::size_t calls = calls_of_a_run(policy);
    std::size_t met = 0;
    for (std::size_t at = 0; at < calls; ++at) {
        const TemporaryDirectory directory(memory_folder());
        const TemporaryDirectory after(memory_folder());
        std::filesystem::create_directory(directory / "disk");
        DiskModel disk(directory / "disk");
        disk.fail_at(at, {Fault::Kind::error, ENOSPC, false});
        const Outcome outcome = run_once(directory / "disk" / "run", nullptr, policy);
        if (disk.met_call() != Call::write || !outcome.append_failed) continue;
        ++met;
        EXPECT_TRUE(outcome.closed);
        disk.power_cut(after / "disk", random);
        EXPECT_EQ(check_events(after / "disk" / "run"), outcome.written) << "call " << at;
    }
    EXPECT_GT(met, 5U);
}

TEST(DiskTrouble, ShortWritesAndInterruptionsAreNothing) {
    const std::size_t calls = calls_of_a_run();
    for (std::size_t at = 0; at < calls; ++at) {
        SCOPED_TRACE(testing::Message() << "call " << at);
        check_fault(at, {Fault::Kind::short_write, 0, false});
        check_fault(at, {Fault::Kind::interrupted, 0, false});
    }
}

TEST(DiskTrouble, HalfAWriteAndThenAFullDisk) {
    const TemporaryDirectory directory(memory_folder());
    for (const std::uint64_t room : {9'000U, 20'000U}) {
        const auto path = directory / std::to_string(room);
        DiskModel disk(path.parent_path());
        RunWriter run([&] {
            RunWriter::Config config;
            config.path = path;
            return config;
        }());
        Pump pump(run);
        TestEvent event = image_event(0, {std::vector<std::uint16_t>(4000)});
        pump.put(event);
        pump.flush();
        disk.fail_at(disk.calls(), {Fault::Kind::short_write, 0, false});
        pump.put(event = image_event(1, {std::vector<std::uint16_t>(4000)}));
        pump.flush();
        disk.fail_at(disk.calls(), {Fault::Kind::error, ENOSPC, false});
        pump.put(event = image_event(2, {std::vector<std::uint16_t>(4000)}));
        EXPECT_THROW(pump.flush(), core::RunError);
        run.finish_data();
        EXPECT_EQ(run.stats().events, 2U);
        run.close({});
        Verification result;
        EXPECT_EQ(read_all(RunReader(path), &result).size(), 2U);
        EXPECT_TRUE(result.verified);
    }
}

TEST(DiskTrouble, APowerCutAtAnyCallLeavesAllThatWasSynced) {
    const std::uint64_t seed = std::random_device()();
    std::cout << "seed " << seed << '\n';
    std::mt19937_64 random(seed);
    const TemporaryDirectory directory(memory_folder());
    const TemporaryDirectory after(memory_folder());
    std::filesystem::create_directory(directory / "disk");
    DiskModel disk(directory / "disk");
    const RunWriter* run = nullptr;
    bool closing_done = false;
    std::size_t cuts = 0;
    std::size_t tails = 0;
    const auto cut = [&] {
        for (int n = 0; n < 10; ++n) {
            disk.power_cut(after / "disk", random);
            const std::uint64_t promised = closing_done     ? events().size()
                                           : run == nullptr ? 0
                                                            : run->stats().synced_events;
            std::filesystem::path path = after / "disk" / "run";
            if (!std::filesystem::exists(path)) path = after / "disk" / ".run.part";
            ++cuts;
            if (promised == 0 && !std::filesystem::exists(path / segment_name(0))) continue;
            Verification result;
            std::size_t found = 0;
            std::size_t all = 0;
            try {
                // Of what was not synced a later event may be there and an earlier one not.
                found = check_events(path, &result, &all);
            } catch (const core::RunError& error) {
                EXPECT_EQ(promised, 0U) << error.what();
            }
            EXPECT_GE(found, promised) << "seed " << seed << ", call " << disk.calls();
            tails += all > promised ? 1 : 0;
            // The final name is given last: who sees it has everything.
            if (path == after / "disk" / "run") {
                EXPECT_TRUE(result.verified) << "seed " << seed << ": " << result.problems.at(0);
                EXPECT_EQ(found, events().size());
            }
        }
    };
    disk.before_call = cut;
    EXPECT_TRUE(run_once(directory / "disk" / "run", &run).closed);
    closing_done = true;
    cut();
    EXPECT_GT(cuts, 100U);
    EXPECT_GT(tails, 5U) << "what was not synced should be there now and then";
}

}  // namespace
}  // namespace weir::store::test
