// Writes a run: a directory of segments with an index and a manifest, under a hidden name until it is complete. For one
// ordinary thread; may block in the file system. It does not buffer: what append() returned from is in the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "store/file.hpp"
#include "store/format.hpp"
#include "store/run_directory.hpp"

namespace weir::store {

class RunWriter {
public:
    struct Config {
        std::filesystem::path path;        ///< final path of the run; refused if it exists
        std::string name;                  ///< of the run, for people
        std::optional<std::uint32_t> run;  ///< run number, if the path has one
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
    };

    struct Stats {
        std::uint64_t bytes = 0;          ///< in segments
        std::uint64_t blocks = 0;         ///< in segments
        std::uint64_t events = 0;         ///< whole events in segments: the ledger's `written`
        std::uint64_t payload_bytes = 0;  ///< of those events, before encoding
        std::uint64_t synced_bytes = 0;   ///< of `bytes`, on the device if the system told the truth
        std::uint64_t synced_events = 0;
        std::uint64_t segments = 0;
    };

    /// Creates `.NAME.part` beside the final path. Throws core::RunError when either exists, or the parent cannot be
    /// written.
    explicit RunWriter(const Config& config);
    /// Without close() the hidden directory stays, readable up to its last whole event.
    ~RunWriter();
    RunWriter(const RunWriter&) = delete;
    RunWriter& operator=(const RunWriter&) = delete;

    /// Appends the blocks of one buffer, in BlockWriter's order, and stamps their headers in place. Buffers that share
    /// an event follow each other. Throws core::RunError on a write error: the file is then cut back to its last whole
    /// event, failed() is true, nothing more is taken (further calls throw), and stats().events is the number of events
    /// that stayed; all others that were handed over are lost (the ledger's `dropped.write_error`).
    void append(std::span<std::byte> blocks);

    /// Syncs what was appended. On an error as append(), but cut back to what the last successful sync covered; a sync
    /// that failed is never tried again. Also looks whether the files are still where they were created: what somebody
    /// has removed is taken out of stats().
    void sync();
    /// sync() if it is due by bytes or time; append() calls it, an idle thread should too.
    void sync_if_due();

    /// Nothing more comes: after this stats().events are the events that are on the device, and they do not change any
    /// more. Syncs; after a failed append it syncs what stayed. Throws core::RunError if this finds an error and there
    /// was none before. Call it before the account is drawn up.
    void settle();

    /// Ends the run: settles it if that was not done, then index and manifest (whose members `manifest_extra` joins:
    /// "ledger", "config", "machine", …) are written, all is synced and the directory gets its final name. Works after
    /// a failed append too, if there is room again; an event that was begun and not finished is cut off. Not after a
    /// failed sync, nor if files were removed: what is there then stays under its hidden name. Throws core::RunError.
    void close(const nlohmann::json& manifest_extra);

    [[nodiscard]] const Stats& stats() const noexcept { return stats_; }
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    /// Where the run is now: the hidden directory, after close() the final path.
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return directory_.path(); }
    /// What may still be written on the run's file system; nothing if the system does not say. May block as a write
    /// does.
    [[nodiscard]] std::optional<std::uint64_t> free_bytes() const noexcept {
        return directory_.directory().free_bytes();
    }

private:
    struct Segment {
        std::uint64_t bytes = 0;
        std::uint64_t blocks = 0;
        std::uint64_t events = 0;
        std::uint64_t payload_bytes = 0;
        std::uint32_t headers_crc = 0;  ///< CRC-32C over its block headers, which hold the bodies' CRCs
    };
    /// Everything that a cut takes back.
    struct Mark {
        Stats stats;
        Segment segment;
        std::uint64_t sequence = 0;
        std::size_t pending = 0;
    };

    void take_block(std::span<std::byte> rest, std::size_t& block_bytes);
    void track_event(const BlockHeader& header, const std::byte* body, std::size_t block_bytes);
    void write(std::span<const std::byte> bytes);
    void stamp(BlockHeader& header);
    void open_segment();
    [[nodiscard]] bool segment_is_full(std::uint64_t more_bytes) const noexcept;
    void rotate();
    void sync_segment();
    void check_in_place();
    void forget(const Segment& segment) noexcept;
    void flush_index(std::size_t keep_entries_below);
    void write_manifest(const nlohmann::json& extra);
    void cut(const Mark& mark) noexcept;
    [[noreturn]] void fail(const Mark& mark, const std::string& what);
    [[nodiscard]] Mark here() const;

    Config config_;
    RunDirectory directory_;
    File segment_file_;
    File index_file_;
    std::uint64_t run_tag_ = 0;
    core::TimeNs created_ns_ = 0;
    core::TimeNs last_sync_ns_ = 0;
    core::TimeNs now_ns_ = 0;            ///< steady time when append() was called
    core::TimeNs segment_since_ns_ = 0;  ///< steady time of the segment's first event; 0 while it has none
    Stats stats_;
    std::vector<Segment> closed_segments_;
    Segment segment_;
    Segment index_;
    std::uint64_t sequence_ = 0;
    std::vector<IndexEntry>
        pending_;  ///< entries not yet in the index file: those of events not yet synced, and a few more
    Mark whole_;   ///< after the last whole event
    Mark synced_;  ///< after the last successful sync, at a whole event
    IndexEntry open_event_;
    std::uint64_t open_payload_bytes_ = 0;
    bool event_open_ = false;
    bool failed_ = false;
    bool settled_ = false;
    bool gone_ = false;  ///< somebody removed or shortened files: there is no run to close any more
    bool cut_ = false;   ///< the segment was cut, and that was not synced
    bool closed_ = false;
    std::string failure_;
};

}  // namespace weir::store
