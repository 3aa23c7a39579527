// A segment that is being written, and the segments that follow it in turn: what was handed to the disk, what of it is
// written and synced, and the way back. Many lanes make a run where several files are written at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "store/aligned_bytes.hpp"
#include "store/event_sink.hpp"
#include "store/file.hpp"
#include "store/format.hpp"
#include "store/index_file.hpp"

namespace weir::store {

/// What is in a segment.
struct SegmentSize {
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;
    std::uint64_t events = 0;
    std::uint64_t payload_bytes = 0;
    std::uint32_t headers_crc = 0;  ///< CRC-32C over its block headers, which hold the bodies' CRCs
};

struct RunLane {
    /// A place in a segment: everything that a cut takes back.
    struct Mark {
        SegmentSize segment;
        std::uint64_t sequence = 0;
        std::uint64_t entries = 0;  ///< of the index, that belong to the lane's events so far
    };

    File file;
    std::uint32_t number = 0;  ///< of the segment
    SegmentSize segment;       ///< as far as blocks were handed to the disk
    std::uint64_t sequence = 0;
    std::vector<IndexEntry> entries;  ///< not yet in the index file: of events not yet synced, and a few more
    std::uint64_t entries_before = 0;
    Mark whole;   ///< after the last whole event that was handed to the disk
    Mark done;    ///< after the last one that was written
    Mark synced;  ///< after the last successful sync
    SegmentSize on_device;
    std::uint64_t extended_bytes = 0;  ///< length of the file, where space is set aside
    core::TimeNs since_ns = 0;         ///< steady time of the segment's first event; 0 while it has none
    bool too_long = false;             ///< the file has more than `segment.bytes`, and could not be shortened
    bool shortened = false;            ///< that was not synced yet

    [[nodiscard]] Mark here() const { return {segment, sequence, entries_before + entries.size()}; }

    /// Gives a header what only the order of blocks decides, and its checksum.
    void stamp(BlockHeader& header, std::uint16_t version, std::uint64_t run_tag);
    /// What may be written past the page cache: `bytes` as they are, or a `copy` that is filled up with padding.
    [[nodiscard]] std::span<const std::byte> aligned(std::span<const std::byte> bytes, AlignedBytes& copy,
                                                     std::uint16_t version, std::uint64_t run_tag);
    /// A write that makes its file longer waits for all before it; so the file is made longer ahead of them, in such
    /// steps, until it has `end`. False: there is no room for that; there may be for the write, and if not, it says so.
    [[nodiscard]] bool extend(std::uint64_t end, std::uint64_t step_bytes);
    /// What lies before `mark` is written.
    void advance(const Mark& mark, EventSink::Stats& stats) noexcept;
    /// Goes back to `mark`: what lies after it in the segment file is cut off, so that the file ends with a whole
    /// event. False if the file could not be shortened: a torn tail or events that are not in the account are there
    /// until that has been tried again.
    [[nodiscard]] bool cut(const Mark& mark, EventSink::Stats& stats) noexcept;
    /// All that is written of it is synced, while more may be under way.
    void sync(EventSink::Stats& stats);
    /// Moves entries of synced events to the index, in blocks, while there are at least `keep_below`.
    void flush_index(IndexFile& index, std::uint64_t keep_below, std::uint16_t version);
};

}  // namespace weir::store
