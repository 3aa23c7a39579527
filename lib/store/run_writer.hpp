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
#include "store/event_sink.hpp"
#include "store/file.hpp"
#include "store/format.hpp"
#include "store/run_directory.hpp"
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
    void settle() override;

    /// Ends the run: settles it if that was not done, then index and manifest (whose members `manifest_extra` joins:
    /// "ledger", "config", "machine", …) are written, all is synced and the directory gets its final name. Works after
    /// a failed append too, if there is room again; an event that was begun and not finished is cut off. Not after a
    /// failed sync, nor if files were removed: what is there then stays under its hidden name. Throws core::RunError.
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
        return direct_ ? File::direct_alignment : block_align;
    }
    [[nodiscard]] nlohmann::json how() const override;
    [[nodiscard]] std::string how_text() const override;

private:
    struct Segment {
        std::uint64_t bytes = 0;
        std::uint64_t blocks = 0;
        std::uint64_t events = 0;
        std::uint64_t payload_bytes = 0;
        std::uint32_t headers_crc = 0;  ///< CRC-32C over its block headers, which hold the bodies' CRCs
    };
    /// A place in a segment: everything that a cut takes back.
    struct Mark {
        Segment segment;
        std::uint64_t sequence = 0;
        std::uint64_t entries = 0;  ///< of the index, that belong to the lane's events so far
    };
    /// A segment that is being written, and the files that follow it when it is full.
    struct Lane {
        File file;
        std::uint32_t number = 0;  ///< of the segment
        Segment segment;           ///< as far as blocks were handed to the disk
        std::uint64_t sequence = 0;
        std::vector<IndexEntry> entries;  ///< not yet in the index file: of events not yet synced, and a few more
        std::uint64_t entries_before = 0;
        Mark whole;   ///< after the last whole event that was handed to the disk
        Mark done;    ///< after the last one that was written
        Mark synced;  ///< after the last successful sync
        Segment on_device;
        std::uint64_t extended_bytes = 0;  ///< length of the file, where space is set aside
        core::TimeNs since_ns = 0;         ///< steady time of the segment's first event; 0 while it has none
        bool too_long = false;             ///< the file has more than `segment.bytes`, and could not be shortened
        bool shortened = false;            ///< that was not synced yet
    };
    /// A full segment that is yet to be synced. Its file stays open: the kernel may forget an error of writing back
    /// that nobody has seen together with a file that nobody has open.
    struct Unsynced {
        std::uint32_t number = 0;
        Segment on_device;
        File file;
    };
    /// A segment that could not be synced.
    struct SetAside {
        std::uint32_t number = 0;
        bool renamed = false;
    };
    /// One write that is under way.
    struct Batch {
        Lane* lane = nullptr;
        std::uint64_t append = 0;  ///< which call of append() brought it
        Mark whole;                ///< after its last whole event
        WriteQueue::Ticket ticket;
        AlignedBytes copy;  ///< what is written, where it could not be the buffer itself
    };

    static constexpr std::size_t index_entries_per_block = 2048;

    // Blocks become events (run_writer.cpp).
    void take_block(Lane& lane, std::span<std::byte> rest, std::size_t& block_bytes);
    void track_event(Lane& lane, const BlockHeader& header, const std::byte* body, std::size_t block_bytes);
    void stamp(Lane& lane, BlockHeader& header);
    void append_to_lane(std::span<std::byte> blocks);
    [[nodiscard]] bool is_full(const Lane& lane, std::uint64_t more_bytes) const noexcept;
    [[nodiscard]] Mark here(const Lane& lane) const;
    [[nodiscard]] Lane& next_lane();
    void open_segment(Lane& lane);
    void rotate(Lane& lane);

    // Bytes get to the disk (run_writer_disk.cpp).
    void set_up_disk();
    void write_head(Lane& lane, std::span<const std::byte> block);
    void write(Lane& lane, std::span<const std::byte> bytes, const Mark& whole);
    [[nodiscard]] std::span<const std::byte> aligned(Lane& lane, std::span<const std::byte> bytes, AlignedBytes& copy);
    void extend(Lane& lane, std::uint64_t end);
    void advance(Lane& lane, const Mark& whole) noexcept;
    void complete();
    void sync_lane(Lane& lane);
    void check_in_place(const Lane& lane);
    [[nodiscard]] bool cut(Lane& lane, const Mark& mark) noexcept;
    void abandon_writes() noexcept;
    [[noreturn]] void fail(const std::string& what, const Lane* sync_failed = nullptr);

    // The end (run_writer_end.cpp).
    void sync_oldest_segment();
    void sync_full_segments() noexcept;
    void set_aside(const Unsynced& full) noexcept;
    [[nodiscard]] std::string set_aside_text() const;
    void settle_lane(Lane& lane) noexcept;
    void forget(const Segment& segment) noexcept;
    void flush_index(Lane& lane, std::uint64_t keep_below);
    void write_manifest(const nlohmann::json& extra);

    Config config_;
    RunDirectory directory_;
    File index_file_;
    std::uint64_t run_tag_ = 0;
    core::TimeNs created_ns_ = 0;
    core::TimeNs last_sync_ns_ = 0;
    core::TimeNs now_ns_ = 0;  ///< steady time when append() was called
    Stats stats_;
    WriteQueue queue_;
    std::vector<Lane> lanes_;  ///< as many as files at most, each open
    std::size_t turn_ = 0;
    Lane* lane_ = nullptr;           ///< that the last buffer went to
    std::vector<Segment> segments_;  ///< by number; those that lanes have are not up to date
    std::deque<Unsynced> unsynced_;  ///< by number
    std::vector<SetAside> set_aside_;
    std::deque<Batch> batches_;  ///< under way, oldest first
    std::uint64_t appends_ = 0;
    Segment index_;
    IndexEntry open_event_;
    std::uint64_t open_payload_bytes_ = 0;
    bool event_open_ = false;
    bool direct_ = false;
    bool extends_ = false;
    std::string note_;  ///< what was wished for and refused
    bool failed_ = false;
    bool settled_ = false;
    bool gone_ = false;  ///< files were removed, shortened or set aside: there is no run to close any more
    bool closed_ = false;
    std::string failure_;
};

}  // namespace weir::store
