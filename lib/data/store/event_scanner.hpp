// Makes events of the blocks of a segment again, and checks that every number in them agrees with the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "store/block_reader.hpp"
#include "store/format.hpp"
#include "store/payload_decoder.hpp"

namespace weir::store {

struct SourceInfo {
    std::uint32_t id = 0;
    SourceState state = SourceState::complete;
    std::uint64_t declared_bytes = 0;
    std::uint64_t received_bytes = 0;
    std::uint32_t packets = 0;
    core::TimeNs first_ns = 0;
    core::TimeNs last_ns = 0;
    std::vector<std::byte> meta;
    std::vector<MissingRange> missing;
    std::uint64_t reduced_bytes = 0;  ///< its part of the payload where that is not what was received

    /// Its size is known, received or not.
    [[nodiscard]] bool size_known() const noexcept {
        return state != SourceState::size_unknown && state != SourceState::absent_unknown;
    }
};

struct EventInfo {
    std::uint16_t version = format_version;  ///< of its blocks
    std::uint64_t id = 0;
    std::uint32_t epoch = 0;
    bool complete = false;
    Cause cause = Cause::complete;
    core::TimeNs first_ns = 0;
    core::TimeNs last_ns = 0;
    std::uint64_t payload_bytes = 0;
    std::uint64_t packets = 0;
    Content content = Content::received;
    Veto veto = Veto::none;
    std::uint32_t pixels_above = 0;
    std::uint32_t peaks = 0;
    std::uint64_t reduced_bytes = 0;
    std::vector<SourceInfo> sources;
    // Where it lies.
    std::uint32_t segment = 0;
    std::uint64_t offset = 0;
    std::uint64_t stored_bytes = 0;  ///< known when the event has ended

    [[nodiscard]] bool reduced() const noexcept { return content != Content::received; }
    /// Length of its decoded payload, and of the part of it that is `source`'s.
    [[nodiscard]] std::uint64_t content_bytes() const noexcept { return reduced() ? reduced_bytes : payload_bytes; }
    [[nodiscard]] std::uint64_t content_bytes(const SourceInfo& source) const noexcept {
        return reduced() ? source.reduced_bytes : source.received_bytes;
    }
    /// Its line of the index.
    [[nodiscard]] IndexEntry entry() const noexcept { return {id, epoch, segment, offset, stored_bytes}; }
};

/// What a scan tells, in order. Any may be empty.
struct ScanHooks {
    std::function<void(const EventInfo&)> begin;              ///< everything but the payload is known
    std::function<void(std::span<const std::byte>)> payload;  ///< decoded, in order
    std::function<void(const EventInfo&)> end;                ///< the event was whole; not called for a damaged one
    std::function<void(const std::string&)> problem;          ///< one sentence each
};

/// What payload blocks of one encoding have together.
struct EncodingTotals {
    std::uint64_t blocks = 0;
    std::uint64_t raw_bytes = 0;     ///< decoded
    std::uint64_t sparse_bytes = 0;  ///< as CSR pieces, before their codec; 0 where the encoding is not sparse
    std::uint64_t stored_bytes = 0;

    EncodingTotals& operator+=(const EncodingTotals& more);
};

/// Fed with the segments of a run in order.
class EventScanner {
public:
    explicit EventScanner(ScanHooks hooks) : hooks_(std::move(hooks)) {}

    /// Expected sequence number of the next block; without it, the first block decides.
    void expect_sequence(std::uint64_t sequence) { sequence_ = sequence; }

    struct SegmentResult {
        std::uint64_t bytes = 0;
        std::uint64_t blocks = 0;
        std::uint64_t events = 0;
        std::uint32_t headers_crc = 0;
        bool torn_event = false;          ///< it ended inside an event
        std::optional<SegmentBody> head;  ///< from its first block
        std::string start_json;
    };
    /// Of the events that were whole, by `BlockHeader::encoding`.
    [[nodiscard]] const std::map<Encoding, EncodingTotals>& encodings() const noexcept { return encodings_; }
    /// Reads one segment to its end. `name` is put in front of problems.
    SegmentResult scan(const ByteSource& source, std::uint32_t segment, const std::string& name);
    /// Reads the one event that starts at `offset`. False (and a problem) if there is none.
    bool read_event(const ByteSource& source, std::uint32_t segment, std::uint64_t offset, const std::string& name);
    /// The same up to its payload, which is neither read nor checked: hooks.begin sees the event, hooks.end does not.
    bool read_head(BlockReader& reader, std::uint32_t segment, std::uint64_t offset, const std::string& name);

    [[nodiscard]] std::optional<std::uint64_t> run_tag() const noexcept { return run_tag_; }
    void set_run_tag(std::uint64_t tag) { run_tag_ = tag; }
    [[nodiscard]] std::optional<std::uint16_t> version() const noexcept { return version_; }
    void set_version(std::optional<std::uint16_t> version) { version_ = version; }

private:
    enum class State { idle, sources, payload, skipping };

    void read_from(BlockReader& reader, std::uint64_t offset, bool head_only);
    void take(const Block& block);
    void take_segment(const Block& block);
    void take_event(const Block& block);
    void take_sources(const Block& block);
    void take_payload(const Block& block);
    void take_padding(const Block& block);
    void check_sequence(const Block& block);
    void begin_payload();
    void lose(const std::string& what);
    void report(std::uint64_t offset, const std::string& what);

    ScanHooks hooks_;
    PayloadDecoder decoder_;
    std::optional<std::uint64_t> run_tag_;
    std::optional<std::uint16_t> version_;
    std::optional<std::uint64_t> sequence_;
    State state_ = State::idle;
    EventInfo event_;
    std::uint32_t sources_left_ = 0;
    std::uint64_t payload_left_ = 0;
    std::map<Encoding, EncodingTotals> event_encodings_;  ///< of the event in hand
    std::map<Encoding, EncodingTotals> encodings_;
    std::uint32_t segment_ = 0;
    std::string name_;
    SegmentResult* result_ = nullptr;
};

/// An error text if what is said of a source contradicts itself, else empty.
std::string check_source(const SourceInfo& source);
/// What the body of an event's first block says of it.
void take_event_body(const EventBody& body, EventInfo& event);
/// Reads the first source record of `bytes`, checks it, and takes it off. An error text, or empty.
std::string parse_source(std::span<const std::byte>& bytes, SourceInfo& source);

}  // namespace weir::store
