// Formats events into output buffers. See block_writer.hpp.
#include "store/block_writer.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/crc32c.hpp"

namespace weir::store {

namespace {

std::uint32_t ranges_bytes(std::size_t count) {
    return static_cast<std::uint32_t>(count * sizeof(MissingRange));
}

void fill_zeros(std::byte* body, std::size_t stored_bytes) {
    std::memset(body + stored_bytes, 0, padded(stored_bytes) - stored_bytes);
}

}  // namespace

std::size_t missing_ranges(std::span<const assemble::ByteRange> received, std::uint32_t total_bytes,
                           std::span<assemble::ByteRange> out) noexcept {
    std::size_t count = 0;
    std::uint32_t at = 0;
    const auto gap = [&](std::uint32_t end) {
        if (end <= at) return;
        if (count < out.size()) out[count] = {at, end};
        ++count;
    };
    for (const assemble::ByteRange& range : received) {
        gap(std::min(range.begin, total_bytes));
        at = std::max(at, range.end);
    }
    gap(total_bytes);
    return count;
}

void BlockWriter::reset(std::span<std::byte> buffer) noexcept {
    assert(reinterpret_cast<std::uintptr_t>(buffer.data()) % block_align == 0 && buffer.size() >= buffer_bytes_min);
    buffer_ = buffer.first(buffer.size() / block_align * block_align);
    used_ = 0;
    source_block_ = no_block;
    event_block_ = no_block;
}

/// Writes a block's header in front of a body that lies in place already, and moves on after it.
void BlockWriter::place(BlockHeader& header, std::size_t stored_bytes) noexcept {
    std::byte* const at = buffer_.data() + used_;
    std::byte* const body = at + sizeof(BlockHeader);
    fill_zeros(body, stored_bytes);
    header.stored_bytes = static_cast<std::uint32_t>(stored_bytes);
    header.epoch = epoch_;
    header.event = event_;
    header.body_crc = core::crc32c({body, padded(stored_bytes)});
    std::memcpy(at, &header, sizeof header);
    used_ += sizeof header + padded(stored_bytes);
}

bool BlockWriter::put_event(const EventRecord& event) noexcept {
    if (buffer_.size() - used_ < sizeof(BlockHeader) + sizeof(EventBody)) return false;
    assert(!event_open_ && event.complete == (event.cause == Cause::complete));
    EventBody body;
    body.first_ns = event.first_ns;
    body.last_ns = event.last_ns;
    body.payload_bytes = event.payload_bytes;
    body.packets = event.packets;
    body.sources = event.sources;
    body.complete = event.complete ? 1 : 0;
    body.cause = event.cause;
    body.content = event.content;
    body.reduced_bytes = event.reduced_bytes;
    std::memcpy(buffer_.data() + used_ + sizeof(BlockHeader), &body, sizeof body);
    event_ = event.id;
    epoch_ = event.epoch;
    BlockHeader header;
    header.type = BlockType::event;
    header.raw_bytes = sizeof body;
    event_block_ = used_;
    place(header, sizeof body);
    source_block_ = no_block;
    event_open_ = true;
    return true;
}

bool BlockWriter::put_source(const SourceRecord& source, std::span<const assemble::ByteRange> missing) noexcept {
    assert(event_open_ && missing.size() <= missing_count_max);
    const bool joins = source_block_ != no_block;
    const std::size_t record_bytes = padded(sizeof(SourceBody) + ranges_bytes(missing.size()));
    if (buffer_.size() - used_ < record_bytes + (joins ? 0 : sizeof(BlockHeader))) return false;

    SourceBody body;
    body.source = source.source;
    body.state = source.state;
    body.meta_bytes = static_cast<std::uint8_t>(std::min(source.meta.size(), SourceBody::meta_bytes_max));
    body.declared_bytes = source.declared_bytes;
    body.received_bytes = source.received_bytes;
    body.packets = source.packets;
    body.missing_count = static_cast<std::uint32_t>(missing.size());
    body.first_ns = source.first_ns;
    body.last_ns = source.last_ns;
    body.reduced_bytes = source.reduced_bytes;
    std::copy_n(source.meta.begin(), body.meta_bytes, body.meta.begin());

    std::byte* const record = buffer_.data() + used_ + (joins ? 0 : sizeof(BlockHeader));
    std::memcpy(record, &body, sizeof body);
    std::byte* at = record + sizeof body;
    for (const assemble::ByteRange& range : missing) {
        const MissingRange stored{range.begin, range.end - range.begin};
        std::memcpy(at, &stored, sizeof stored);
        at += sizeof stored;
    }
    fill_zeros(record, static_cast<std::size_t>(at - record));

    BlockHeader header;
    if (!joins) {
        header.type = BlockType::source;
        header.raw_bytes = static_cast<std::uint32_t>(record_bytes);
        source_block_ = used_;
        place(header, record_bytes);
        return true;
    }
    // Records fill whole multiples of 64 bytes, so the block's checksum continues over the new one.
    std::byte* const block = buffer_.data() + source_block_;
    std::memcpy(&header, block, sizeof header);
    header.stored_bytes += static_cast<std::uint32_t>(record_bytes);
    header.raw_bytes = header.stored_bytes;
    header.body_crc = core::crc32c({record, record_bytes}, header.body_crc);
    std::memcpy(block, &header, sizeof header);
    used_ += record_bytes;
    return true;
}

std::size_t BlockWriter::payload_room() const noexcept {
    const std::size_t left = buffer_.size() - used_;
    const std::size_t room = left < 2 * block_align ? 0 : left - sizeof(BlockHeader);
    return std::min<std::size_t>(room, body_bytes_max);
}

std::span<std::byte> BlockWriter::open_payload() noexcept {
    assert(event_open_);
    const std::size_t room = payload_room();
    if (room == 0) return {};
    return buffer_.subspan(used_ + sizeof(BlockHeader), room);
}

void BlockWriter::close_payload(std::uint32_t stored_bytes, std::uint32_t raw_bytes, Encoding encoding, bool last,
                                std::uint8_t element_bytes) noexcept {
    assert(stored_bytes <= payload_room() && raw_bytes <= body_bytes_max && is_known(encoding));
    assert(has_elements(encoding) == (element_bytes != 0));
    assert(encoding != Encoding::raw || stored_bytes == raw_bytes);
    BlockHeader header;
    header.type = BlockType::payload;
    header.raw_bytes = raw_bytes;
    header.encoding = encoding;
    header.flags = last ? BlockHeader::end_of_event : 0;
    header.element_bytes = element_bytes;
    place(header, stored_bytes);
    source_block_ = no_block;
    if (last) event_open_ = false;
}

BlockWriter::Mark BlockWriter::mark() const noexcept {
    assert(!event_open_);
    return {used_};
}

void BlockWriter::rewind(Mark mark) noexcept {
    assert(mark.used <= used_ && (event_block_ == no_block || event_block_ >= mark.used));
    used_ = mark.used;
    event_block_ = source_block_ = no_block;
    event_open_ = false;
}

bool BlockWriter::patch_event(const EventResult& result) noexcept {
    if (event_block_ == no_block) return false;
    std::byte* const block = buffer_.data() + event_block_;
    BlockHeader header;
    EventBody body;
    std::memcpy(&header, block, sizeof header);
    std::memcpy(&body, block + sizeof header, sizeof body);
    body.veto = result.veto;
    body.pixels_above = result.pixels_above;
    body.peaks = result.peaks;
    std::memcpy(block + sizeof header, &body, sizeof body);
    header.body_crc = core::crc32c({block + sizeof header, sizeof body});
    std::memcpy(block, &header, sizeof header);
    return true;
}

bool BlockWriter::pad(std::size_t bytes) noexcept {
    assert(bytes > 0 && bytes % block_align == 0);
    if (used_ % bytes == 0) return true;
    const std::size_t fill = bytes - used_ % bytes;
    if (buffer_.size() - used_ < fill) return false;
    BlockHeader header;
    header.type = BlockType::padding;
    const std::size_t body_bytes = fill - sizeof header;
    header.stored_bytes = header.raw_bytes = static_cast<std::uint32_t>(body_bytes);
    std::byte* const block = buffer_.data() + used_;
    std::memset(block + sizeof header, 0, body_bytes);
    header.body_crc = core::crc32c({block + sizeof header, body_bytes});
    std::memcpy(block, &header, sizeof header);
    used_ += fill;
    source_block_ = no_block;
    return true;
}

}  // namespace weir::store
