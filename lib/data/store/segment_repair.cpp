#include "store/segment_repair.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "store/block_reader.hpp"
#include "store/paced_source.hpp"

namespace weir::store {

void SegmentRepair::give_up(const std::string& why) const {
    throw core::RunError(fmt::format("{}: {}", file_.path().string(), why));
}

/// Where what is to be kept ends; the holes before it are in holes_.
std::uint64_t SegmentRepair::find_holes(std::span<const EventPlace> events) {
    const PacedSource source(file_, pace_);
    BlockReader reader(source, run_tag_);
    reader.expect_version(version_);
    std::optional<Kept> last;
    auto event = events.begin();
    Block block;
    for (;;) {
        const BlockReader::Result result = reader.next(block);
        if (result == BlockReader::Result::end) break;
        if (result == BlockReader::Result::damaged) continue;
        while (event != events.end() && event->offset + event->bytes <= block.offset) ++event;
        const bool in_event = event != events.end() && block.offset >= event->offset;
        const bool head = block.offset == 0 && block.header.type == BlockType::segment;
        const bool padding = block.header.type == BlockType::padding && last.has_value() && block.header.event == 0 &&
                             block.header.epoch == 0 && all_zero(block.body);
        if (!in_event && !head && !padding) continue;
        if (!last.has_value() && !head) give_up("its first block is gone, and events are behind it");
        if (last.has_value() && (block.offset != last->end || block.header.sequence != last->sequence + 1))
            holes_.push_back({last->end, block.offset, last->sequence + 1, block.header.sequence - last->sequence - 1});
        last = {block.offset + block.bytes(), block.header.sequence};
    }
    if (!last.has_value()) give_up("nothing of it is whole");
    return last->end;
}

/// From `from` to the last byte that is not zero: space that was set aside is nothing that was lost.
std::uint64_t SegmentRepair::written_after(std::uint64_t from) const {
    constexpr std::size_t step = std::size_t{1} << 20;
    std::vector<std::byte> bytes(step);
    std::uint64_t end = from;
    for (std::uint64_t at = from;;) {
        keep_pace(pace_, step);
        const std::size_t got = file_.read_at(at, bytes);
        if (got == 0) return end - from;
        for (std::size_t i = got; i > 0; --i)
            if (bytes[i - 1] != std::byte{0}) {
                end = at + i;
                break;
            }
        at += got;
    }
}

std::uint64_t SegmentRepair::mend(std::span<const EventPlace> events) {
    holes_.clear();
    const std::uint64_t size = file_.size();
    const std::uint64_t end = find_holes(events);
    std::uint64_t given_up = written_after(end);
    for (const Hole& hole : holes_) {
        const std::uint64_t bytes = hole.end - hole.begin;
        if (version_ < format_version_reduced)
            give_up(
                fmt::format("{} bytes at byte {} are damaged, and whole events are behind them", bytes, hole.begin));
        const std::uint64_t least = hole.blocks * sizeof(BlockHeader);
        const std::uint64_t most = hole.blocks * (sizeof(BlockHeader) + body_bytes_max);
        if (hole.blocks == 0 || hole.blocks > bytes / sizeof(BlockHeader) || bytes < least || bytes > most)
            give_up(fmt::format("its blocks contradict each other at byte {}", hole.begin));
        given_up += bytes;
    }
    for (const Hole& hole : holes_) fill(hole);
    if (end < size && !file_.truncate(end))
        throw core::RunError(write_error_text("cannot shorten", file_.path(), errno));
    return given_up;
}

/// With empty blocks, and the rest of the bytes in the last ones.
void SegmentRepair::fill(const Hole& hole) {
    std::uint64_t offset = hole.begin;
    for (std::uint64_t i = 0; i < hole.blocks; ++i) {
        const std::uint64_t after = (hole.blocks - i - 1) * sizeof(BlockHeader);
        const std::uint64_t body =
            std::min<std::uint64_t>(hole.end - offset - after - sizeof(BlockHeader), body_bytes_max);
        BlockHeader header;
        header.type = BlockType::padding;
        header.sequence = hole.sequence + i;
        write_block(offset, header, std::vector<std::byte>(sizeof header + body));
        offset += sizeof header + body;
    }
}

/// `block` has the body, after room for the header.
void SegmentRepair::write_block(std::uint64_t offset, BlockHeader header, std::vector<std::byte> block) {
    const std::span<const std::byte> body = std::span<const std::byte>(block).subspan(sizeof header);
    header.version = version_;
    header.run_tag = run_tag_;
    if (header.stored_bytes == 0) header.stored_bytes = header.raw_bytes = static_cast<std::uint32_t>(body.size());
    header.body_crc = core::crc32c(body);
    header.header_crc = core::crc32c({reinterpret_cast<const std::byte*>(&header), header_crc_bytes});
    std::memcpy(block.data(), &header, sizeof header);
    file_.write_at(offset, block);
}

void SegmentRepair::make_empty(std::span<const std::byte> head, std::uint32_t segment, std::uint64_t sequence) {
    BlockHeader header;
    SegmentBody body;
    std::memcpy(&header, head.data(), sizeof header);
    std::memcpy(&body, head.data() + sizeof header, sizeof body);
    body.segment = segment;
    header.sequence = sequence;
    std::vector<std::byte> block(head.begin(), head.end());
    std::memcpy(block.data() + sizeof header, &body, sizeof body);
    if (!file_.truncate(0)) throw core::RunError(write_error_text("cannot empty", file_.path(), errno));
    write_block(0, header, std::move(block));
}

}  // namespace weir::store
