// Formats events into output buffers, on a worker lcore: no allocation, lock, exception or clock. It does the work that
// grows with the data (checksums of the bodies); the run writer stamps what depends on the order of buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "assemble/message.hpp"
#include "store/format.hpp"

namespace weir::store {

/// What is said about an event before its payload.
struct EventRecord {
    std::uint64_t id = 0;
    std::uint32_t epoch = 0;
    std::uint32_t sources = 0;  ///< how many put_source follow: every expected source, absent ones included
    bool complete = false;
    Cause cause = Cause::complete;    ///< not `complete` exactly when the event is incomplete
    std::uint64_t payload_bytes = 0;  ///< sum of the sources' received_bytes
    std::uint64_t packets = 0;
    core::TimeNs first_ns = 0;
    core::TimeNs last_ns = 0;
    // Version 2.
    Content content = Content::received;
    std::uint64_t reduced_bytes = 0;  ///< sum of the sources' reduced_bytes; 0 exactly when content is `received`
                                      ///< or nothing is left
};

/// What reducers know of an event only after its last pixel. Version 2.
struct EventResult {
    Veto veto = Veto::none;
    std::uint32_t pixels_above = 0;
    std::uint32_t peaks = 0;
};

/// What is said about one source of an event. Sources come in ascending order of `source`.
struct SourceRecord {
    std::uint32_t source = 0;
    SourceState state = SourceState::complete;
    std::uint64_t declared_bytes = 0;  ///< 0 where not known
    std::uint64_t received_bytes = 0;
    std::uint32_t packets = 0;
    core::TimeNs first_ns = 0;
    core::TimeNs last_ns = 0;
    std::span<const std::byte> meta;  ///< detector header; the first 64 bytes are kept
    std::uint64_t reduced_bytes = 0;  ///< version 2: its part of the decoded payload; 0 with content `received`
};

/// The gaps in `received` (sorted, disjoint) up to `total_bytes`, written to `out`. Returns how many there are; at most
/// `received.size() + 1`, and no more than `out.size()` are written.
std::size_t missing_ranges(std::span<const assemble::ByteRange> received, std::uint32_t total_bytes,
                           std::span<assemble::ByteRange> out) noexcept;

/// Use, for every event: put_event, put_source for each source, then open_payload / close_payload until the payload of
/// source 0, 1, … (missing ranges left out) has gone in; the last close says `last`. An event without payload has one
/// empty payload block. Whenever a call has no room it returns false or an empty span and has changed nothing: hand
/// blocks() to the run writer, reset() to a fresh buffer, and make the same call again. It always succeeds in a fresh
/// buffer.
class BlockWriter {
public:
    /// Smallest buffer in which every call succeeds when it is fresh: one source record with `missing_count_max`
    /// ranges.
    static constexpr std::size_t buffer_bytes_min = 32768;
    static constexpr std::size_t missing_count_max = 2048;

    /// `buffer` is 64-byte aligned and at least `buffer_bytes_min` long (asserted); bytes beyond a multiple of 64 are
    /// not used.
    void reset(std::span<std::byte> buffer) noexcept;

    [[nodiscard]] bool put_event(const EventRecord& event) noexcept;
    /// `missing` is sorted, disjoint, non-empty ranges, at most `missing_count_max` of them.
    [[nodiscard]] bool put_source(const SourceRecord& source, std::span<const assemble::ByteRange> missing) noexcept;

    /// Room for payload, 64-byte aligned, to be filled in place or compressed into; empty when a fresh buffer is
    /// needed.
    [[nodiscard]] std::span<std::byte> open_payload() noexcept;
    /// Closes what open_payload gave: the first `stored_bytes` of it are the block's body and decode to `raw_bytes`.
    /// `element_bytes` is what a codec that has_elements() was told; 0 for others.
    void close_payload(std::uint32_t stored_bytes, std::uint32_t raw_bytes, Encoding encoding, bool last,
                       std::uint8_t element_bytes = 0) noexcept;

    /// A place between two events.
    struct Mark {
        std::size_t used = 0;
    };
    [[nodiscard]] Mark mark() const noexcept;
    /// Takes everything after `mark` back, which lies in this buffer: as if the event there had never begun. Also in
    /// the middle of that event.
    void rewind(Mark mark) noexcept;
    /// Writes `result` into the block of the event that was begun last, and its checksum. False, and nothing is
    /// changed, if that block is not in this buffer any more. Only in version 2.
    [[nodiscard]] bool patch_event(const EventResult& result) noexcept;
    /// Fills up to a multiple of `bytes` (itself one of 64) with a padding block, also inside an event. False, and
    /// nothing is changed, if the buffer has no room for that: never if its length is such a multiple. Only in
    /// version 2.
    bool pad(std::size_t bytes) noexcept;

    /// Whole blocks written so far, for RunWriter::append.
    [[nodiscard]] std::span<std::byte> blocks() const noexcept { return buffer_.first(used_); }
    [[nodiscard]] bool empty() const noexcept { return used_ == 0; }
    /// The buffer ends inside an event: the next buffer of this writer must follow it directly in the file.
    [[nodiscard]] bool event_open() const noexcept { return event_open_; }
    /// Bytes that the next open_payload would give.
    [[nodiscard]] std::size_t payload_room() const noexcept;

private:
    void place(BlockHeader& header, std::size_t stored_bytes) noexcept;

    std::span<std::byte> buffer_;
    std::size_t used_ = 0;
    std::size_t event_block_ = no_block;   ///< where the last event's block starts, if that is in this buffer
    std::size_t source_block_ = no_block;  ///< where the source block starts that a further record may join
    std::uint64_t event_ = 0;
    std::uint32_t epoch_ = 0;
    bool event_open_ = false;

    static constexpr std::size_t no_block = ~std::size_t{0};
};

}  // namespace weir::store
