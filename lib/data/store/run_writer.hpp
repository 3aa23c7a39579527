// Writes a run: a directory of segments with an index and a manifest, under a hidden name until it is complete. For one
// ordinary thread; may block in the file system. It does not buffer: without io_uring what append() returned from is in
// the kernel, with it what it holds no more is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "store/aligned_bytes.hpp"
#include "store/event_blocks.hpp"
#include "store/event_sink.hpp"
#include "store/file.hpp"
#include "store/format.hpp"
#include "store/index_file.hpp"
#include "store/run_directory.hpp"
#include "store/run_lane.hpp"
#include "store/unsynced_segments.hpp"
#include "store/write_method.hpp"
#include "store/write_policy.hpp"
#include "store/write_queue.hpp"

namespace weir::store {

class RunWriter final : public EventSink {
public:
    struct Config {
        std::filesystem::path path;        ///< final path of the run; refused if it exists
        std::string name;                  ///< of the run, for people
        std::optional<std::uint32_t> run;  ///< run number, if the path has one
        /// Of the format, for all blocks of the run: `format_version_reduced` where events or buffers have anything
        /// that version 1 does not know.
        std::uint16_t version = format_version;
        /// JSON text of what is known now (configuration, machine): kept at the head of every segment, so that a killed
        /// run still says what it was.
        std::string start_json = "{}";
        std::uint64_t segment_bytes = std::uint64_t{4}
                                      << 30;  ///< a segment is closed at the first event end beyond this
        core::TimeNs segment_interval_ns = 0;  ///< … and at the first one so long after its first event; 0: not by time
        /// So many segments at most: the last one grows. A manifest with more would be too large to read.
        std::uint64_t segments_max = 200'000;
        std::uint64_t sync_bytes = std::uint64_t{256} << 20;  ///< fdatasync after so many bytes …
        core::TimeNs sync_interval_ns = core::ns_per_s;       ///< … or so long after the last one, whichever is first
        SyncPolicy sync = SyncPolicy::interval;
        /// With SyncPolicy::end so many full segments stay open and unsynced: far fewer than a process may have open.
        std::size_t unsynced_max = 128;

        /// O_DIRECT: past the page cache. The run is then of version 2, because the disk's units are filled up with
        /// padding, and its segments end where buffers end.
        Toggle direct = Toggle::off;
        /// io_uring; `automatic`: with O_DIRECT.
        Toggle uring = Toggle::automatic;
        std::uint32_t queue_depth = 8;  ///< writes under way at once, with io_uring
        /// Segments that are written at the same time, buffers taking turns. More than one makes the run version 2.
        std::uint32_t files = 1;
        /// With O_DIRECT: a segment's space is set aside in steps of this; 0: not. What is too much goes at its end.
        std::uint64_t preallocate_bytes = std::uint64_t{64} << 20;
        WriteQueue::Tamper tamper;  ///< tests
    };

    /// Creates `.NAME.part` beside the final path. Throws core::RunError when either exists, or the parent cannot be
    /// written, or O_DIRECT or io_uring is refused and was asked for with `on`.
    explicit RunWriter(const Config& config);
    /// Without close() the hidden directory stays, readable up to its last whole event.
    ~RunWriter() override;

    /// Appends the blocks of one buffer, in BlockWriter's order, and stamps their headers in place. Buffers that share
    /// an event follow each other. With io_uring the buffer is held() until it is on the disk, and only then its events
    /// count in stats(). Throws core::RunError on a write error: each file is then cut back to its last whole event,
    /// failed() is true, nothing more is taken (further calls throw), and stats().events is the number of events that
    /// stayed; all others that were handed over are lost (the ledger's `dropped.write_error`).
    void append(std::span<std::byte> blocks) override;
    [[nodiscard]] std::size_t held() const noexcept override;
    void collect() override;

    /// Syncs what was written. On an error as append(), but the file is cut back to what its last successful sync
    /// covered; a sync that failed is never tried again. A full segment that was not synced until then and cannot be is
    /// set aside as `NAME.unsynced`, and its events are taken out of stats(). Also looks whether the files are still
    /// where they were created: what somebody has removed is taken out of stats().
    void sync();
    /// sync() if it is due by bytes or time; append() calls it, an idle thread should too.
    void sync_if_due() override;

    /// Nothing more comes: after this stats().events are the events that are on the device, and they do not change any
    /// more. Syncs; after a failed append it syncs what stayed. Throws core::RunError if this finds an error and there
    /// was none before. Call it before the account is drawn up.
    void finish_data() override;

    /// Ends the run: finish_data() if that was not called, then index and manifest (whose members `manifest_extra`
    /// joins: "ledger", "config", "machine", …) are written, all is synced and the directory gets its final name. Works
    /// after a failed append too, if there is room again; an event that was begun and not finished is cut off. Not
    /// after a failed sync, nor if files were removed: what is there then stays under its hidden name. Throws
    /// core::RunError.
    void close(const nlohmann::json& manifest_extra) override;

    /// With io_uring, of what is with the kernel: with O_DIRECT on the device, or on its way there.
    [[nodiscard]] const Stats& stats() const noexcept override { return stats_; }
    [[nodiscard]] bool failed() const noexcept override { return failed_; }
    /// Where the run is now: the hidden directory, after close() the final path.
    [[nodiscard]] const std::filesystem::path& path() const noexcept override { return directory_.path(); }
    /// What may still be written on the run's file system; nothing if the system does not say. May block as a write
    /// does.
    [[nodiscard]] std::optional<std::uint64_t> free_bytes() const noexcept override {
        return directory_.directory().free_bytes();
    }
    [[nodiscard]] std::size_t alignment() const noexcept override {
        return method_.is_direct() ? File::direct_alignment : block_align;
    }
    [[nodiscard]] nlohmann::json how() const override;
    [[nodiscard]] std::string how_text() const override;

private:
    using Mark = RunLane::Mark;
    /// One write that is under way.
    struct Batch {
        RunLane* lane = nullptr;
        std::uint64_t append = 0;  ///< which call of append() brought it
        Mark whole;                ///< after its last whole event
        WriteQueue::Ticket ticket;
        AlignedBytes copy;  ///< what is written, where it could not be the buffer itself
    };

    void append_to_lane(std::span<std::byte> blocks);
    [[nodiscard]] std::size_t take_block(RunLane& lane, std::span<std::byte> rest, std::uint64_t offset);
    [[nodiscard]] bool is_full(const RunLane& lane, std::uint64_t more_bytes) const noexcept;
    [[nodiscard]] RunLane& next_lane();
    void open_segment(RunLane& lane);
    void rotate(RunLane& lane);
    [[nodiscard]] std::span<const std::byte> aligned(RunLane& lane, std::span<const std::byte> bytes,
                                                     AlignedBytes& copy);
    void extend(RunLane& lane, std::uint64_t end);
    void write(RunLane& lane, std::span<const std::byte> bytes, const Mark& whole);
    void complete();
    void sync_lane(RunLane& lane);
    void check_in_place(const RunLane& lane);
    [[nodiscard]] bool cut(RunLane& lane, const Mark& mark) noexcept;
    void abandon_writes() noexcept;
    [[noreturn]] void fail(const std::string& what, const RunLane* sync_failed = nullptr);
    void sync_oldest_segment();
    void sync_full_segments() noexcept;
    void finish_lane(RunLane& lane) noexcept;
    void forget(const SegmentSize& segment) noexcept;
    [[nodiscard]] nlohmann::json manifest_members(const nlohmann::json& extra) const;

    Config config_;
    RunDirectory directory_;
    std::uint64_t run_tag_ = 0;
    core::TimeNs created_ns_ = 0;
    core::TimeNs last_sync_ns_ = 0;
    core::TimeNs now_ns_ = 0;  ///< steady time when append() was called
    Stats stats_;
    IndexFile index_;
    std::vector<RunLane> lanes_;  ///< as many as files at most, each open
    std::size_t turn_ = 0;
    RunLane* lane_ = nullptr;            ///< that the last buffer went to
    std::vector<SegmentSize> segments_;  ///< by number; those that lanes have are not up to date
    UnsyncedSegments unsynced_;
    std::deque<Batch> batches_;  ///< under way, oldest first
    WriteMethod method_;         ///< after what its writes use: the lanes' files and the batches
    std::uint64_t appends_ = 0;
    EventBlocks event_;
    bool extends_ = false;  ///< space is set aside ahead of direct writes
    bool failed_ = false;
    bool data_finished_ = false;
    bool gone_ = false;  ///< files were removed, shortened or set aside: there is no run to close any more
    bool closed_ = false;
    std::string failure_;
};

}  // namespace weir::store
