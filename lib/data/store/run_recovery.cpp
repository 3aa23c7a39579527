#include "store/run_recovery.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "store/block_reader.hpp"
#include "store/event_scanner.hpp"
#include "store/file.hpp"
#include "store/index_file.hpp"
#include "store/json_members.hpp"
#include "store/manifest.hpp"
#include "store/paced_source.hpp"
#include "store/run_contents.hpp"
#include "store/run_directory.hpp"
#include "store/run_path.hpp"
#include "store/segment_repair.hpp"

namespace weir::store {

namespace {

using nlohmann::json;

std::string event_count_text(std::uint64_t events) {
    return fmt::format("{} event{}", events, events == 1 ? "" : "s");
}

/// What one reading of a segment found.
struct SegmentScan {
    EventScanner::SegmentResult result;
    std::vector<IndexEntry> entries;
    std::uint64_t payload_bytes = 0;
    std::uint64_t problems = 0;
    std::string problem;  ///< the first one

    [[nodiscard]] std::vector<EventPlace> places() const {
        std::vector<EventPlace> places;
        for (const IndexEntry& entry : entries) places.push_back({entry.offset, entry.bytes});
        return places;
    }
};

class Recovery {
public:
    Recovery(const RunContents& run, RunDirectory directory, const ReadPace& pace)
        : run_(run), directory_(std::move(directory)), pace_(pace) {}

    Recovered execute() {
        check_names();
        IndexFile index(directory_.take_locked(), *run_.run_tag);
        for (std::uint32_t i = 0; i < run_.segments.size(); ++i) {
            const SegmentScan segment = whole_segment(i);
            take_note(i, segment);
            add_to_index(index, segment.entries);
        }
        flush_index(index);
        index.sync();
        directory_.release_room();
        directory_.publish_manifest(manifest_text(members(index.listed())));
        directory_.publish_run();
        index.close();
        directory_.sync_parent();
        return {directory_.path(), holds()};
    }

private:
    void check_names() const {
        for (std::uint32_t i = 0; i < run_.segments.size(); ++i)
            if (run_.segments[i] != segment_name(i))
                throw core::RunError(fmt::format("{} is missing", segment_name(i)));
        if (!run_.run_tag || !run_.version)
            throw core::RunError(fmt::format("the first block of {} is not whole", segment_name(0)));
    }

    [[nodiscard]] bool is_version_1() const { return *run_.version < format_version_reduced; }
    [[nodiscard]] std::uint64_t first_sequence() const { return is_version_1() ? blocks_ : 0; }

    [[nodiscard]] SegmentScan scan(const File& file, std::uint32_t number) const {
        SegmentScan found;
        ScanHooks hooks;
        hooks.end = [&](const EventInfo& event) {
            found.entries.push_back(event.entry());
            found.payload_bytes += event.payload_bytes;
        };
        hooks.problem = [&](const std::string& text) {
            if (found.problems++ == 0) found.problem = text;
        };
        EventScanner scanner(std::move(hooks));
        run_.identify(scanner);
        scanner.expect_sequence(first_sequence());
        found.result = scanner.scan(PacedSource(file, pace_), number, segment_name(number));
        return found;
    }

    /// As it is, or mended. What was handed to the kernel before the crash may not be on the device.
    SegmentScan whole_segment(std::uint32_t number) {
        File file = File::open_to_mend(directory_.file(segment_name(number)));
        SegmentScan segment = scan(file, number);
        if (segment.problems > 0 || !segment.result.head) {
            mend(file, number, segment);
            segment = scan(file, number);
            if (segment.problems > 0) throw core::RunError(segment.problem);
        }
        file.sync();
        file.close();
        return segment;
    }

    void mend(File& file, std::uint32_t number, const SegmentScan& segment) {
        if (is_version_1() && number + 1 < run_.segments.size())
            throw core::RunError(fmt::format("{}, and other segments follow it", segment.problem));
        SegmentRepair repair(file, *run_.run_tag, *run_.version, pace_);
        if (segment.entries.empty() && !segment.result.head && number > 0) {
            given_up_bytes_ += file.size();
            repair.make_empty(first_block(), number, first_sequence());
        } else {
            given_up_bytes_ += repair.mend(segment.places());
        }
    }

    [[nodiscard]] std::vector<std::byte> first_block() const {
        const File file = File::open_to_read(directory_.file(segment_name(0)));
        const PacedSource source(file, pace_);
        BlockReader reader(source, run_.run_tag, BlockReader::window_bytes_heads);
        Block block;
        if (reader.next(block) != BlockReader::Result::block)
            throw core::RunError(fmt::format("{} {}", segment_name(0), reader.problem()));
        std::vector<std::byte> bytes(block.bytes());
        bytes.resize(file.read_at(0, bytes));
        return bytes;
    }

    void take_note(std::uint32_t number, const SegmentScan& segment) {
        const EventScanner::SegmentResult& result = segment.result;
        listed_.push_back(listed_file(segment_name(number), result.bytes, result.blocks, result.headers_crc));
        listed_.back()["events"] = result.events;
        events_ += result.events;
        payload_bytes_ += segment.payload_bytes;
        blocks_ += result.blocks;
    }

    void add_to_index(IndexFile& index, const std::vector<IndexEntry>& entries) {
        for (const IndexEntry& entry : entries) {
            entries_.push_back(entry);
            if (entries_.size() == IndexFile::entries_per_block) flush_index(index);
        }
    }
    void flush_index(IndexFile& index) {
        if (!entries_.empty()) index.write(entries_, *run_.version);
        entries_.clear();
    }

    [[nodiscard]] json members(const json& index) const {
        json members = json::object();
        const json& start = at_or_null(run_.start, "start");
        for (const char* key : {"config", "machine", "payload", "image"})
            if (start.is_object() && start.contains(key)) members[key] = start[key];
        const core::TimeNs now = core::clock_ns(CLOCK_REALTIME);
        members[interrupted_key] = {{"closed_by", "the next start"}, {"given_up_bytes", given_up_bytes_}};
        members["stopped_by"] = interrupted_key;
        members["format"] = "weir-run";
        members["version"] = *run_.version;
        members["name"] = text_at(run_.start, "name");
        members["run"] = run_.run ? json(*run_.run) : json();
        members["tag"] = fmt::format("{:016x}", *run_.run_tag);
        members["created_ns"] = run_.created_ns;
        members["closed_ns"] = now;
        members["events"] = events_;
        members["payload_bytes"] = payload_bytes_;
        members["segments"] = listed_;
        members["index"] = index;
        return members;
    }

    [[nodiscard]] std::string holds() const {
        constexpr double megabyte = 1e6;
        std::string text =
            fmt::format("{}, {:.1f} MB", event_count_text(events_), static_cast<double>(payload_bytes_) / megabyte);
        if (given_up_bytes_ > 0)
            text += fmt::format("; {} bytes that are no whole event are given up", given_up_bytes_);
        return text;
    }

    const RunContents& run_;
    RunDirectory directory_;
    const ReadPace& pace_;
    json listed_ = json::array();
    std::uint64_t events_ = 0;
    std::uint64_t payload_bytes_ = 0;
    std::uint64_t blocks_ = 0;
    std::uint64_t given_up_bytes_ = 0;
    std::vector<IndexEntry> entries_;
};

bool has_a_block(const std::filesystem::path& path) {
    const FileSource file(path);
    BlockReader reader(file);
    Block block;
    BlockReader::Result result = BlockReader::Result::damaged;
    while (result == BlockReader::Result::damaged) result = reader.next(block);
    return result == BlockReader::Result::block;
}

/// What a run has before its first block is on the device, and nothing else.
bool holds_nothing(const std::filesystem::path& hidden) {
    const std::array known{std::filesystem::path(index_name), std::filesystem::path(room_name),
                           std::filesystem::path(segment_name(0))};
    for (const auto& entry : std::filesystem::directory_iterator(hidden)) {
        const std::filesystem::path name = entry.path().filename();
        if (!entry.is_regular_file() || std::ranges::find(known, name) == known.end()) return false;
        if (name == index_name && entry.file_size() > 0) return false;
        if (name == segment_name(0) && has_a_block(entry.path())) return false;
    }
    return true;
}

}  // namespace

std::optional<Recovered> recover_run(const std::filesystem::path& final_path, const ReadPace& pace) {
    std::optional<RunDirectory> adopted = RunDirectory::adopt(final_path, index_name);
    if (!adopted) return {};
    RunDirectory& directory = *adopted;
    const std::filesystem::path hidden = directory.path();
    try {
        if (holds_nothing(hidden)) {
            directory.remove();
            return Recovered{{}, "nothing"};
        }
        const RunContents run(hidden);
        if (run.closed) {
            directory.release_room();
            directory.publish_run();
            directory.sync_parent();
            const std::uint64_t events = number_at(run.manifest, "events").value_or(0);
            return Recovered{directory.path(), fmt::format("{}; it had all but its name", event_count_text(events))};
        }
        return Recovery(run, std::move(directory), pace).execute();
    } catch (const ReadingStopped&) {
        return {};
    } catch (const std::filesystem::filesystem_error& error) {
        throw core::RunError(error.what());
    }
}

}  // namespace weir::store
