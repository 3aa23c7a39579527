// Makes events of blocks again. See event_scanner.hpp.
#include "store/event_scanner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace weir::store {

namespace {

/// The ranges are sorted, disjoint and not empty; `bytes` becomes their sum and `end` where the last one ends.
bool ranges_in_order(std::span<const MissingRange> ranges, std::uint64_t& bytes, std::uint64_t& end) {
    bytes = end = 0;
    for (const MissingRange& range : ranges) {
        // Two that touch would be one range.
        if (range.bytes == 0 || (end > 0 && range.offset <= end)) return false;
        end = std::uint64_t{range.offset} + range.bytes;
        bytes += range.bytes;
    }
    return true;
}

}  // namespace

std::string check_source(const SourceInfo& source) {
    std::uint64_t missing = 0;
    std::uint64_t end = 0;
    const bool in_order = ranges_in_order(source.missing, missing, end);
    const bool sums_up = source.received_bytes + missing == source.declared_bytes && end <= source.declared_bytes;
    const bool nothing = source.received_bytes == 0 && source.packets == 0;
    bool good = in_order && source.declared_bytes <= UINT32_MAX && source.received_bytes <= UINT32_MAX;
    switch (source.state) {
        case SourceState::complete:
            good = good && source.missing.empty() && sums_up;
            break;
        case SourceState::partial:
            good = good && !source.missing.empty() && sums_up;
            break;
        case SourceState::absent:
            good = good && nothing && sums_up && source.missing.size() <= 1;
            break;
        case SourceState::size_unknown:
            good = good && source.declared_bytes == 0;
            break;
        case SourceState::absent_unknown:
            good = good && nothing && source.declared_bytes == 0 && source.missing.empty();
            break;
        default:
            good = false;
    }
    return good ? std::string{} : fmt::format("the record of source {} contradicts itself", source.id);
}

namespace {

/// What version 1 has no bytes for is zero there.
bool reductions_are_good(const EventBody& body, std::uint16_t version) {
    if (body.reserved != 0 || static_cast<std::size_t>(body.content) >= content_names.size() ||
        static_cast<std::size_t>(body.veto) >= veto_names.size())
        return false;
    if (body.content == Content::received && body.reduced_bytes != 0) return false;
    if (version >= format_version_reduced) return true;
    return body.content == Content::received && body.veto == Veto::none && body.pixels_above == 0 && body.peaks == 0;
}

}  // namespace

EncodingTotals& EncodingTotals::operator+=(const EncodingTotals& more) {
    blocks += more.blocks;
    raw_bytes += more.raw_bytes;
    sparse_bytes += more.sparse_bytes;
    stored_bytes += more.stored_bytes;
    return *this;
}

void take_event_body(const EventBody& body, EventInfo& event) {
    event.complete = body.complete == 1;
    event.cause = body.cause;
    event.first_ns = body.first_ns;
    event.last_ns = body.last_ns;
    event.payload_bytes = body.payload_bytes;
    event.packets = body.packets;
    event.content = body.content;
    event.veto = body.veto;
    event.pixels_above = body.pixels_above;
    event.peaks = body.peaks;
    event.reduced_bytes = body.reduced_bytes;
}

std::string parse_source(std::span<const std::byte>& bytes, SourceInfo& source) {
    SourceBody body;
    if (bytes.size() < sizeof body) return "a source record is cut off";
    std::memcpy(&body, bytes.data(), sizeof body);
    const std::uint64_t used = sizeof body + std::uint64_t{body.missing_count} * sizeof(MissingRange);
    if (padded(used) > bytes.size()) return "a source record is cut off";
    if (body.meta_bytes > body.meta.size() || !all_zero(std::span(body.meta).subspan(body.meta_bytes)) ||
        body.reserved != 0 || body.reserved_too != 0 || !all_zero(bytes.subspan(used, padded(used) - used)))
        return "reserved bytes of a source record are not zero";
    source.id = body.source;
    source.state = body.state;
    source.declared_bytes = body.declared_bytes;
    source.received_bytes = body.received_bytes;
    source.packets = body.packets;
    source.reduced_bytes = body.reduced_bytes;
    source.first_ns = body.first_ns;
    source.last_ns = body.last_ns;
    source.meta.assign(body.meta.begin(), body.meta.begin() + body.meta_bytes);
    source.missing.resize(body.missing_count);
    if (body.missing_count > 0)
        std::memcpy(source.missing.data(), bytes.data() + sizeof body, body.missing_count * sizeof(MissingRange));
    bytes = bytes.subspan(padded(used));
    return check_source(source);
}

void EventScanner::report(std::uint64_t offset, const std::string& what) {
    if (hooks_.problem) hooks_.problem(fmt::format("{} at byte {}: {}", name_, offset, what));
}

/// The event that is being read cannot be whole any more; what follows up to the next event block belongs to it.
void EventScanner::lose(const std::string& what) {
    if (hooks_.problem)
        hooks_.problem(
            fmt::format("{}: event {}:{} at byte {} is lost: {}", name_, event_.epoch, event_.id, event_.offset, what));
    state_ = State::skipping;
}

EventScanner::SegmentResult EventScanner::scan(const ByteSource& source, std::uint32_t segment,
                                               const std::string& name) {
    SegmentResult result;
    segment_ = segment;
    name_ = name;
    state_ = State::idle;
    result_ = &result;
    BlockReader reader(source, run_tag_);
    reader.expect_version(version_);
    Block block;
    for (;;) {
        const BlockReader::Result next = reader.next(block);
        if (next == BlockReader::Result::end) break;
        if (next == BlockReader::Result::damaged) {
            if (hooks_.problem) hooks_.problem(fmt::format("{} {}", name_, reader.problem()));
            if (state_ == State::sources || state_ == State::payload) {
                // At the end of a segment the event is torn, not lost in the middle; both are said.
                result.torn_event = reader.offset() >= source.size();
                lose("the damage is inside it");
            }
            state_ = State::skipping;
            sequence_.reset();
            continue;
        }
        run_tag_ = reader.run_tag();
        version_ = reader.version();
        check_sequence(block);
        take(block);
    }
    if (state_ == State::sources || state_ == State::payload) {
        result.torn_event = true;
        lose("the segment ends before its last block");
    }
    result.bytes = source.size();
    result.blocks = reader.blocks();
    result.headers_crc = reader.headers_crc();
    result_ = nullptr;
    return result;
}

void EventScanner::read_from(BlockReader& reader, std::uint64_t offset, bool head_only) {
    state_ = State::idle;
    sequence_.reset();
    reader.seek(offset);
    Block block;
    while (reader.next(block) == BlockReader::Result::block) {
        check_sequence(block);
        take(block);
        if (state_ != State::sources && (head_only || state_ != State::payload)) break;
    }
}

bool EventScanner::read_event(const ByteSource& source, std::uint32_t segment, std::uint64_t offset,
                              const std::string& name) {
    segment_ = segment;
    name_ = name;
    SegmentResult result;
    result_ = &result;
    BlockReader reader(source, run_tag_);
    reader.expect_version(version_);
    read_from(reader, offset, false);
    if (result.events == 0) report(offset, "no whole event is here");
    result_ = nullptr;
    return result.events == 1;
}

bool EventScanner::read_head(BlockReader& reader, std::uint32_t segment, std::uint64_t offset,
                             const std::string& name) {
    segment_ = segment;
    name_ = name;
    SegmentResult result;
    result_ = &result;
    read_from(reader, offset, true);
    result_ = nullptr;
    if (state_ == State::payload) return true;
    report(offset, "no event begins here");
    return false;
}

void EventScanner::check_sequence(const Block& block) {
    // Segments of version 2 may be written side by side, so each counts its own blocks.
    if (block.offset == 0 && block.header.version >= format_version_reduced) sequence_ = 0;
    if (sequence_ && *sequence_ != block.header.sequence) {
        report(block.offset,
               fmt::format("this is block {} of the {}, block {} should be here", block.header.sequence,
                           block.header.version < format_version_reduced ? "run" : "segment", *sequence_));
        if (state_ == State::sources || state_ == State::payload) lose("blocks of it are missing");
    }
    sequence_ = block.header.sequence + 1;
}

void EventScanner::take(const Block& block) {
    const BlockHeader& header = block.header;
    const bool is_payload = header.type == BlockType::payload;
    if (!is_payload && (header.raw_bytes != header.stored_bytes || header.encoding != Encoding::raw ||
                        header.flags != 0 || header.element_bytes != 0))
        report(block.offset, "only payload blocks may be encoded or end an event");
    switch (header.type) {
        case BlockType::segment:
            take_segment(block);
            return;
        case BlockType::event:
            take_event(block);
            return;
        case BlockType::source:
        case BlockType::payload:
            break;
        case BlockType::padding:
            if (header.version >= format_version_reduced) return take_padding(block);
            [[fallthrough]];
        default:
            report(block.offset,
                   fmt::format("a block of type {} has no place in a segment", static_cast<int>(header.type)));
            return;
    }
    if (state_ == State::skipping) return;
    if (state_ == State::idle) {
        report(block.offset, "this block belongs to no event");
        state_ = State::skipping;
        return;
    }
    if (header.event != event_.id || header.epoch != event_.epoch) {
        lose("blocks of another event are inside it");
        return;
    }
    event_.stored_bytes += block.bytes();
    if (is_payload) {
        take_payload(block);
    } else {
        take_sources(block);
    }
}

/// Belongs to no event, but may lie in the middle of one.
void EventScanner::take_padding(const Block& block) {
    if (block.offset == 0) report(0, "the segment does not begin with its first block");
    if (block.header.event != 0 || block.header.epoch != 0 || !all_zero(block.body))
        report(block.offset, "a padding block is not empty");
    if (state_ == State::sources || state_ == State::payload) event_.stored_bytes += block.bytes();
}

void EventScanner::take_segment(const Block& block) {
    SegmentBody body;
    if (block.offset != 0 || block.body.size() < sizeof body) {
        report(block.offset, "a segment's first block has no place here");
        return;
    }
    std::memcpy(&body, block.body.data(), sizeof body);
    const bool reserved_zero = body.reserved == 0 && body.reserved_too == decltype(body.reserved_too){};
    if (!reserved_zero || body.json_bytes != block.body.size() - sizeof body)
        report(block.offset, "the segment's first block contradicts itself");
    if (body.segment != segment_)
        report(block.offset, fmt::format("this is segment {}, segment {} should be here", body.segment, segment_));
    result_->head = body;
    const std::span<const std::byte> text = block.body.subspan(sizeof body);
    result_->start_json.assign(reinterpret_cast<const char*>(text.data()), text.size());
}

void EventScanner::take_event(const Block& block) {
    if (state_ == State::sources || state_ == State::payload) lose("the next event begins before its last block");
    EventBody body;
    event_ = {};
    event_.version = block.header.version;
    event_.id = block.header.event;
    event_.epoch = block.header.epoch;
    event_.segment = segment_;
    event_.offset = block.offset;
    if (block.offset == 0) report(0, "the segment does not begin with its first block");
    if (block.body.size() != sizeof body) {
        lose("its first block has the wrong size");
        return;
    }
    std::memcpy(&body, block.body.data(), sizeof body);
    const bool cause_known = static_cast<std::size_t>(body.cause) < cause_names.size();
    if (body.complete > 1 || !cause_known || (body.complete == 1) != (body.cause == Cause::complete) ||
        !reductions_are_good(body, block.header.version)) {
        lose("its first block contradicts itself");
        return;
    }
    take_event_body(body, event_);
    event_.stored_bytes = block.bytes();
    event_encodings_.clear();
    sources_left_ = body.sources;
    payload_left_ = event_.content_bytes();
    state_ = State::sources;
    if (sources_left_ == 0) begin_payload();
}

void EventScanner::take_sources(const Block& block) {
    if (state_ != State::sources || block.body.empty()) {
        lose("it has more source records than it says");
        return;
    }
    std::span<const std::byte> rest = block.body;
    while (!rest.empty()) {
        SourceInfo source;
        std::string what = parse_source(rest, source);
        if (what.empty() && sources_left_ == 0) what = "it has more source records than it says";
        if (what.empty() && !event_.sources.empty() && source.id <= event_.sources.back().id)
            what = "its sources are not in ascending order";
        if (what.empty() && !event_.reduced() && source.reduced_bytes != 0)
            what = fmt::format("source {} has reduced bytes, but it says that none are", source.id);
        if (what.empty() && event_.complete && source.state != SourceState::complete)
            what = fmt::format("it says that it is complete, but source {} is not", source.id);
        if (!what.empty()) {
            lose(what);
            return;
        }
        --sources_left_;
        event_.sources.push_back(std::move(source));
    }
    if (sources_left_ == 0) begin_payload();
}

void EventScanner::begin_payload() {
    std::uint64_t bytes = 0;
    std::uint64_t reduced_bytes = 0;
    bool overflow = false;
    for (const SourceInfo& source : event_.sources) {
        bytes += source.received_bytes;
        overflow = overflow || source.reduced_bytes > UINT64_MAX - reduced_bytes;
        reduced_bytes += source.reduced_bytes;
    }
    if (overflow || reduced_bytes != event_.reduced_bytes) {
        lose(
            fmt::format("its sources have {} reduced bytes together, it says {}", reduced_bytes, event_.reduced_bytes));
        return;
    }
    if (bytes != event_.payload_bytes) {
        lose(fmt::format("its sources have {} bytes together, it says {}", bytes, event_.payload_bytes));
        return;
    }
    state_ = State::payload;
    if (hooks_.begin) hooks_.begin(event_);
}

void EventScanner::take_payload(const Block& block) {
    if (state_ != State::payload) {
        lose("its payload begins before its last source record");
        return;
    }
    const BlockHeader& header = block.header;
    const auto raw = decoder_.decode(header, block.body);
    const bool last = (header.flags & BlockHeader::end_of_event) != 0;
    const bool sparse_bytes_as_received = is_sparse(header.encoding) && event_.content != Content::pixels;
    if (!raw || sparse_bytes_as_received || (header.flags & ~BlockHeader::end_of_event) != 0) {
        lose(fmt::format("the payload at byte {} cannot be decoded", block.offset));
        return;
    }
    if (raw->size() > payload_left_ || (last && raw->size() < payload_left_)) {
        lose(fmt::format("its payload does not have the {} bytes that it says", event_.content_bytes()));
        return;
    }
    payload_left_ -= raw->size();
    event_encodings_[header.encoding] +=
        EncodingTotals{1, header.raw_bytes, decoder_.sparse_bytes(), header.stored_bytes};
    if (hooks_.payload) hooks_.payload(*raw);
    if (!last) return;
    state_ = State::idle;
    for (const auto& [encoding, totals] : event_encodings_) encodings_[encoding] += totals;
    ++result_->events;
    if (hooks_.end) hooks_.end(event_);
}

}  // namespace weir::store
