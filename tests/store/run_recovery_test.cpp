// Runs that were killed or lost power, closed by the next start: every whole event stays, what is torn goes, and the
// result verifies as any other run. Also when the recovery is itself interrupted.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.hpp"
#include "store/capture_recovery.hpp"
#include "store/creation_lock.hpp"
#include "store/leftovers.hpp"
#include "store/manifest.hpp"
#include "store/pcapng_file.hpp"
#include "store/run_directory.hpp"
#include "store/run_path.hpp"
#include "store/run_recovery.hpp"
#include "support.hpp"

namespace weir::store::test {
namespace {

using std::filesystem::path;

std::map<Key, Found> events_in(const path& run) {
    return read_all(RunReader(run));
}

std::vector<Key> keys_of(const std::map<Key, Found>& events) {
    std::vector<Key> keys;
    for (const auto& [key, event] : events) keys.push_back(key);
    return keys;
}

/// What two events have in common that a reader sees.
void expect_same_events(const std::map<Key, Found>& found, const std::map<Key, Found>& wanted) {
    ASSERT_EQ(keys_of(found), keys_of(wanted));
    for (const auto& [key, event] : wanted) EXPECT_EQ(found.at(key).payload, event.payload) << key.second;
}

/// The run verifies to the last byte, is not the writer's own, and its index is that of a scan.
void expect_closed(const path& run, std::uint64_t events) {
    const RunReader reader(run);
    const Verification verification = reader.scan({});
    EXPECT_TRUE(verification.verified) << (verification.problems.empty() ? "" : verification.problems.front());
    EXPECT_EQ(verification.events, events);
    EXPECT_TRUE(reader.closed());
    EXPECT_TRUE(reader.manifest().contains(interrupted_key));
    EXPECT_EQ(reader.manifest()["events"], events);
    EXPECT_FALSE(reader.manifest().contains("ledger"));
    ASSERT_TRUE(reader.index().has_value());
    EXPECT_EQ(reader.index()->size(), events);
    EXPECT_FALSE(is_there(hidden_path(run)));
    EXPECT_FALSE(is_there(run / room_name));
}

void copy_tree(const path& from, const path& to) {
    std::filesystem::remove_all(to);
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

void cut_file(const path& file, std::uint64_t bytes) {
    std::filesystem::resize_file(file, bytes);
}

class RunRecovery : public testing::TestWithParam<std::uint16_t> {
protected:
    [[nodiscard]] RunWriter::Config config(std::uint64_t segment_bytes = 1U << 30) const {
        RunWriter::Config config;
        config.path = final_;
        config.name = "recovered";
        config.run = 7;
        config.version = GetParam();
        config.start_json = R"({"config":{"name":"recovered"},"machine":{"host":"here"}})";
        config.segment_bytes = segment_bytes;
        return config;
    }
    /// A writer that is gone without having closed its run.
    void leave_run(std::uint64_t count, std::uint64_t segment_bytes = 1U << 30) {
        RunWriter writer(config(segment_bytes));
        put(writer, count);
    }
    void put(RunWriter& writer, std::uint64_t count) const {
        std::mt19937_64 random(5);
        Pump pump(writer);
        for (std::uint64_t id = 0; id < count; ++id) {
            pump.put(GetParam() >= format_version_reduced ? random_reduced_event(random, id, 2, 90)
                                                          : random_event(random, id, 2, 90));
            pump.flush();
        }
    }
    [[nodiscard]] path segment(std::uint32_t number) const { return hidden_ / segment_name(number); }

    TemporaryDirectory directory_{memory_folder()};
    path final_ = directory_ / "run-000007";
    path hidden_ = hidden_path(final_);
};

TEST_P(RunRecovery, ClosesWhatAKilledWriterLeft) {
    leave_run(20, 4000);
    ASSERT_TRUE(std::filesystem::exists(segment(2)));
    const auto before = events_in(hidden_);
    ASSERT_EQ(before.size(), 20U);
    const auto recovered = recover_run(final_, {});
    ASSERT_TRUE(recovered.has_value());
    EXPECT_EQ(recovered->path, final_);
    EXPECT_EQ(recovered->holds.substr(0, 9), "20 events");
    EXPECT_EQ(recovered->holds.find("given up"), std::string::npos) << recovered->holds;
    expect_closed(final_, 20);
    expect_same_events(events_in(final_), before);
    const nlohmann::json manifest = RunReader(final_).manifest();
    EXPECT_EQ(manifest["run"], 7);
    EXPECT_EQ(manifest["name"], "recovered");
    EXPECT_EQ(manifest["config"]["name"], "recovered");
    EXPECT_EQ(manifest["stopped_by"], "interrupted");
    EXPECT_EQ(manifest["interrupted"]["given_up_bytes"], 0);
}

/// The last segment ends anywhere, or goes on with what a disk without power may have there.
TEST_P(RunRecovery, KeepsEveryWholeEventOfATornSegment) {
    leave_run(6, 1500);
    std::uint32_t last = 0;
    while (std::filesystem::exists(segment(last + 1))) ++last;
    ASSERT_GE(last, 1U);
    const path original = directory_ / "original";
    copy_tree(hidden_, original);
    const auto all = events_in(original);
    const std::vector<std::byte> written = read_file(original / segment_name(last));
    const std::uint64_t size = written.size();
    std::mt19937_64 random(9);
    for (std::uint64_t cut = 0; cut <= size; cut += cut % 64 == 62 ? 1 : 31) {
        SCOPED_TRACE(cut);
        copy_tree(original, hidden_);
        std::filesystem::remove_all(final_);
        cut_file(segment(last), cut);
        const std::uint64_t ways = 3;
        if (const std::uint64_t way = cut % ways; way == 1) {
            cut_file(segment(last), size);  // zeros
        } else if (way == 2) {
            std::ofstream file(segment(last), std::ios::binary | std::ios::app);
            for (std::uint64_t at = cut; at < size; ++at) file.put(static_cast<char>(random()));
        }
        // Whole is what is there as it was, by accident too: an event may end with zeros.
        const std::vector<std::byte> now = read_file(segment(last));
        std::map<Key, Found> wanted = all;
        std::erase_if(wanted, [&](const auto& item) {
            const EventInfo& info = item.second.info;
            const std::uint64_t end = info.offset + info.stored_bytes;
            return info.segment == last &&
                   (end > now.size() || !std::equal(now.begin() + static_cast<std::ptrdiff_t>(info.offset),
                                                    now.begin() + static_cast<std::ptrdiff_t>(end),
                                                    written.begin() + static_cast<std::ptrdiff_t>(info.offset)));
        });
        const auto recovered = recover_run(final_, {});
        ASSERT_TRUE(recovered.has_value());
        expect_closed(final_, wanted.size());
        expect_same_events(events_in(final_), wanted);
    }
}

TEST_P(RunRecovery, AnEventDamagedInTheMiddleBecomesPaddingOrIsLeftAlone) {
    leave_run(8);
    const auto all = events_in(hidden_);
    const EventInfo damaged = all.at({1, 3}).info;
    for (const bool zeros : {true, false}) {
        SCOPED_TRACE(zeros);
        std::vector<std::byte> bytes = read_file(segment(0));
        for (std::uint64_t at = damaged.offset + 64; at < damaged.offset + damaged.stored_bytes; ++at)
            bytes[at] = zeros ? std::byte{0} : std::byte{0x5a};
        write_file(segment(0), bytes);
        const path copy = directory_ / "copy";
        copy_tree(hidden_, copy);
        if (GetParam() < format_version_reduced) {
            const std::string reason = reason_of([&] { static_cast<void>(recover_run(final_, {})); });
            EXPECT_NE(reason.find("whole events are behind them"), std::string::npos) << reason;
            EXPECT_EQ(read_file(segment(0)), bytes) << "it was changed";
            EXPECT_FALSE(is_there(final_));
            continue;
        }
        ASSERT_TRUE(recover_run(final_, {}).has_value());
        expect_closed(final_, 7);
        std::map<Key, Found> wanted = all;
        wanted.erase({1, 3});
        expect_same_events(events_in(final_), wanted);
        std::filesystem::remove_all(final_);
        copy_tree(copy, hidden_);
    }
}

/// Segments of version 2 are written side by side: of any of them the start may be what did not get to the device.
TEST_P(RunRecovery, ASegmentWithoutItsFirstBlockIsAnEmptyOne) {
    leave_run(12, 1500);
    ASSERT_TRUE(std::filesystem::exists(segment(2)));
    const auto all = events_in(hidden_);
    const std::uint32_t number = 1;
    write_file(segment(number), std::vector<std::byte>(700, std::byte{0x77}));
    if (GetParam() < format_version_reduced) {
        EXPECT_NE(reason_of([&] { static_cast<void>(recover_run(final_, {})); }), "no error");
        return;
    }
    ASSERT_TRUE(recover_run(final_, {}).has_value());
    std::map<Key, Found> wanted = all;
    std::erase_if(wanted, [](const auto& item) { return item.second.info.segment == number; });
    ASSERT_LT(wanted.size(), all.size());
    expect_closed(final_, wanted.size());
    expect_same_events(events_in(final_), wanted);
}

TEST_P(RunRecovery, CanItselfBeInterruptedAnywhere) {
    leave_run(12, 1500);
    const path original = directory_ / "original";
    std::uint32_t last = 0;
    while (std::filesystem::exists(segment(last + 1))) ++last;
    cut_file(segment(last), std::filesystem::file_size(segment(last)) - 70);
    copy_tree(hidden_, original);
    const auto wanted = events_in(original);
    int stopped = 0;
    bool done = false;
    for (int allowed = 0; !done && allowed < 1000; ++allowed) {
        copy_tree(original, hidden_);
        std::filesystem::remove_all(final_);
        int reads = 0;
        done = recover_run(final_, [&](std::uint64_t) { return ++reads <= allowed; }).has_value();
        if (!done) {
            ++stopped;
            EXPECT_FALSE(is_there(final_));
            expect_same_events(events_in(hidden_), wanted);
            ASSERT_TRUE(recover_run(final_, {}).has_value());
        }
        expect_closed(final_, wanted.size());
        expect_same_events(events_in(final_), wanted);
    }
    EXPECT_TRUE(done);
    EXPECT_GT(stopped, 2);
}

TEST_P(RunRecovery, LeavesARunAloneThatIsBeingWritten) {
    RunWriter writer(config());
    put(writer, 3);
    EXPECT_FALSE(recover_run(final_, {}).has_value());
    put(writer, 3);
    writer.close({});
    EXPECT_TRUE(RunReader(final_).scan({}).verified);
    EXPECT_FALSE(RunReader(final_).manifest().contains(interrupted_key));
}

/// As another program has it between the directory and its lock.
TEST_P(RunRecovery, LeavesARunAloneThatIsBeingCreated) {
    std::filesystem::create_directory(hidden_);
    {
        const CreationLock creating(directory_.path());
        EXPECT_FALSE(recover_run(final_, {}).has_value());
        EXPECT_TRUE(std::filesystem::is_empty(hidden_));
    }
    EXPECT_EQ(recover_run(final_, {})->holds, "nothing");
    EXPECT_FALSE(is_there(hidden_));
}

TEST_P(RunRecovery, OneWithAManifestOnlyGetsItsName) {
    {
        RunWriter writer(config());
        put(writer, 3);
        writer.close({});
    }
    std::filesystem::rename(final_, hidden_);
    const auto recovered = recover_run(final_, {});
    ASSERT_TRUE(recovered.has_value());
    EXPECT_EQ(recovered->holds, "3 events; it had all but its name");
    EXPECT_TRUE(RunReader(final_).scan({}).verified);
    EXPECT_FALSE(RunReader(final_).manifest().contains(interrupted_key));
}

TEST_P(RunRecovery, WithoutABlockThereIsNothingToKeep) {
    for (const std::size_t bytes : {0U, 63U, 4096U}) {
        leave_run(0);
        write_file(segment(0), std::vector<std::byte>(bytes));
        const auto recovered = recover_run(final_, {});
        ASSERT_TRUE(recovered.has_value());
        EXPECT_TRUE(recovered->path.empty());
        EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
    }
    // Something that is not weir's is not removed with it.
    leave_run(0);
    write_file(segment(0), {});
    write_file(hidden_ / "notes.txt", bytes_of("keep me"));
    EXPECT_NE(reason_of([&] { static_cast<void>(recover_run(final_, {})); }), "no error");
    EXPECT_TRUE(is_there(hidden_ / "notes.txt"));
}

TEST_P(RunRecovery, NeverReplacesARun) {
    leave_run(3);
    std::filesystem::create_directory(final_);
    const std::string reason = reason_of([&] { static_cast<void>(recover_run(final_, {})); });
    EXPECT_NE(reason.find("exists already"), std::string::npos) << reason;
    EXPECT_EQ(events_in(hidden_).size(), 3U);
}

TEST_P(RunRecovery, AMissingSegmentIsNoCrash) {
    leave_run(12, 1500);
    ASSERT_TRUE(std::filesystem::exists(segment(2)));
    std::filesystem::remove(segment(1));
    const std::string reason = reason_of([&] { static_cast<void>(recover_run(final_, {})); });
    EXPECT_NE(reason.find("events-000001.weir is missing"), std::string::npos) << reason;
    EXPECT_TRUE(is_there(hidden_));
}

INSTANTIATE_TEST_SUITE_P(Versions, RunRecovery, testing::Values(format_version, format_version_reduced),
                         [](const auto& version) { return "Version" + std::to_string(version.param); });

// --- what may be left behind where a sink writes ---------------------------------------------------------------------

TEST(Leftovers, AreThoseThatTheTemplateMakes) {
    const TemporaryDirectory directory;
    for (const char* day : {"2026-01-01", "2026-01-02", "today"})
        for (const char* name : {".det-000003.part", ".det-12345678.part", ".other-000003.part", "det-000001",
                                 ".det-x.part", ".det-000004.part.old"})
            std::filesystem::create_directories(directory / day / name);
    const path root = directory.path();
    const auto found = find_leftovers((root / "{date}/{name}-{run:06}").string(), "det");
    EXPECT_EQ(found, (std::vector<path>{root / "2026-01-01/det-000003", root / "2026-01-01/det-12345678",
                                        root / "2026-01-02/det-000003", root / "2026-01-02/det-12345678"}));
    EXPECT_TRUE(find_leftovers((root / "today/det-000003").string(), "det").empty()) << "its one name is in use";
    EXPECT_TRUE(find_leftovers((root / "nowhere/{name}-{run}").string(), "det").empty());
    EXPECT_EQ(find_leftovers((root / "today/{name}-{run}").string(), "d.t").size(), 0U) << "a name is no pattern";
    std::filesystem::create_directory(root / ".det-7-0002.pcapng.zst.part");
    EXPECT_EQ(find_leftovers((root / "{name}-{run}.pcapng.zst").string(), "det"),
              (std::vector<path>{root / "det-7-0002.pcapng.zst"}));
}

// --- captures --------------------------------------------------------------------------------------------------------

class CaptureRecovery : public testing::TestWithParam<std::string> {
protected:
    /// Its writer is gone: `flushed` packets are in the file, and what came after them is not.
    void leave_capture(int flushed) {
        const PcapngInterface interface;
        PcapngFile file(final_, {}, std::span(&interface, 1));
        const std::vector<std::byte> bytes(600, std::byte{1});
        PcapngPacket packet;
        packet.bytes = bytes;
        packet.wire_bytes = 600;
        for (int i = 0; i < flushed + 3; ++i) {
            file.put(packet);
            if (i < flushed) file.flush();
        }
    }
    TemporaryDirectory directory_{memory_folder()};
    path final_ = directory_ / ("c" + GetParam());
    path hidden_ = hidden_path(final_);
};

TEST_P(CaptureRecovery, IsCutAfterWhatIsWhole) {
    leave_capture(5);
    const std::vector<std::byte> whole = read_file(hidden_);
    std::uint64_t kept = 0;
    for (std::size_t cut = 1; cut <= whole.size(); cut += 13) {
        SCOPED_TRACE(cut);
        write_file(hidden_, std::span(whole).first(cut));
        const auto recovered = recover_capture(final_, {});
        ASSERT_TRUE(recovered.has_value());
        EXPECT_FALSE(is_there(hidden_));
        if (recovered->path.empty()) {
            EXPECT_FALSE(is_there(final_));
            EXPECT_EQ(kept, 0U);
            continue;
        }
        const std::vector<std::byte> now = read_file(final_);
        EXPECT_LE(now.size(), cut);
        EXPECT_GE(now.size(), kept) << "more of it was there, and less was kept";
        EXPECT_TRUE(std::equal(now.begin(), now.end(), whole.begin()));
        kept = now.size();
        std::filesystem::remove(final_);
    }
    EXPECT_GT(kept, whole.size() / 2);
    write_file(hidden_, whole);
    EXPECT_EQ(recover_capture(final_, {})->holds, "5 packets");
    EXPECT_EQ(read_file(final_), whole);
}

TEST_P(CaptureRecovery, LeavesOneAloneThatIsBeingWritten) {
    const PcapngInterface interface;
    PcapngFile file(final_, {}, std::span(&interface, 1));
    EXPECT_FALSE(recover_capture(final_, {}).has_value());
    file.close();
    EXPECT_TRUE(is_there(final_));
}

TEST_P(CaptureRecovery, LeavesOneAloneThatIsBeingCreated) {
    write_file(hidden_, {});
    {
        const CreationLock creating(directory_.path());
        EXPECT_FALSE(recover_capture(final_, {}).has_value());
        EXPECT_TRUE(is_there(hidden_));
    }
    EXPECT_EQ(recover_capture(final_, {})->holds, "nothing");
    EXPECT_FALSE(recover_capture(final_, {}).has_value()) << "somebody else has dealt with it";
    EXPECT_FALSE(is_there(hidden_));
}

/// While files are created and closed, somebody looks for leftovers all the time.
TEST_P(CaptureRecovery, NeverTakesAFileAwayFromAWriter) {
    std::atomic<bool> done = false;
    std::thread other([&] {
        while (!done) {
            try {
                static_cast<void>(recover_capture(final_, {}));
            } catch (const core::RunError&) {  // the final file is there
            }
        }
    });
    const PcapngInterface interface;
    for (int i = 0; i < 2000; ++i) {
        PcapngFile file(final_, {}, std::span(&interface, 1));
        EXPECT_NO_THROW(file.close());
        EXPECT_TRUE(std::filesystem::remove(final_));
    }
    done = true;
    other.join();
}

INSTANTIATE_TEST_SUITE_P(Kinds, CaptureRecovery, testing::Values(".pcapng", ".pcapng.zst"),
                         [](const auto& kind) { return kind.param.ends_with("zst") ? "Compressed" : "Plain"; });

}  // namespace
}  // namespace weir::store::test
