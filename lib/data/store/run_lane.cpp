#include "store/run_lane.hpp"

#include <algorithm>
#include <cstring>

#include "core/crc32c.hpp"
#include "store/manifest.hpp"

namespace weir::store {

void RunLane::stamp(BlockHeader& header, std::uint16_t version, std::uint64_t run_tag) {
    header.version = version;
    header.sequence = sequence++;
    header.run_tag = run_tag;
    header.header_crc = core::crc32c({reinterpret_cast<const std::byte*>(&header), header_crc_bytes});
    segment.headers_crc =
        core::crc32c({reinterpret_cast<const std::byte*>(&header), listed_header_bytes(version)}, segment.headers_crc);
    ++segment.blocks;
}

std::span<const std::byte> RunLane::aligned(std::span<const std::byte> bytes, AlignedBytes& copy, std::uint16_t version,
                                            std::uint64_t run_tag) {
    constexpr std::size_t unit = File::direct_alignment;
    const bool in_place = reinterpret_cast<std::uintptr_t>(bytes.data()) % unit == 0 && bytes.size() % unit == 0;
    if (!file.is_direct() || in_place) return bytes;
    const std::size_t fill = (unit - bytes.size() % unit) % unit;
    copy = AlignedBytes(bytes.size() + fill);
    std::memcpy(copy.span().data(), bytes.data(), bytes.size());
    if (fill == 0) return copy.span();
    const std::span<std::byte> rest = copy.span().subspan(bytes.size());
    std::fill(rest.begin(), rest.end(), std::byte{0});
    BlockHeader header;
    header.type = BlockType::padding;
    header.stored_bytes = header.raw_bytes = static_cast<std::uint32_t>(fill - sizeof header);
    header.body_crc = core::crc32c(std::span<const std::byte>(rest).subspan(sizeof header));
    stamp(header, version, run_tag);
    std::memcpy(rest.data(), &header, sizeof header);
    return copy.span();
}

bool RunLane::extend(std::uint64_t end, std::uint64_t step_bytes) {
    while (extended_bytes < end) {
        if (file.extend(extended_bytes, step_bytes) != 0) return false;
        extended_bytes += step_bytes;
    }
    return true;
}

void RunLane::advance(const Mark& mark, EventSink::Stats& stats) noexcept {
    stats.bytes += mark.segment.bytes - done.segment.bytes;
    stats.blocks += mark.segment.blocks - done.segment.blocks;
    stats.events += mark.segment.events - done.segment.events;
    stats.payload_bytes += mark.segment.payload_bytes - done.segment.payload_bytes;
    done = mark;
}

bool RunLane::cut(const Mark& mark, EventSink::Stats& stats) noexcept {
    too_long |= segment.bytes != mark.segment.bytes || extended_bytes > mark.segment.bytes;
    const SegmentSize was = done.segment;
    segment = mark.segment;
    sequence = mark.sequence;
    entries.resize(mark.entries - entries_before);
    whole = mark;
    done = mark;
    stats.bytes -= was.bytes - mark.segment.bytes;
    stats.blocks -= was.blocks - mark.segment.blocks;
    stats.events -= was.events - mark.segment.events;
    stats.payload_bytes -= was.payload_bytes - mark.segment.payload_bytes;
    if (!too_long) return true;
    // A file that somebody shortened is not made longer: finish_data() has to see it.
    if (!file.is_whole(mark.segment.bytes) || !file.truncate(mark.segment.bytes)) return false;
    too_long = false;
    shortened = true;
    extended_bytes = 0;
    return true;
}

void RunLane::sync(EventSink::Stats& stats) {
    const Mark mark = done;
    file.sync();
    stats.synced_bytes += mark.segment.bytes - on_device.bytes;
    stats.synced_events += mark.segment.events - on_device.events;
    on_device = mark.segment;
    synced = mark;
    shortened = false;
}

void RunLane::flush_index(IndexFile& index, std::uint64_t keep_below, std::uint16_t version) {
    while (synced.entries - entries_before >= std::max<std::uint64_t>(keep_below, 1)) {
        const auto count = static_cast<std::size_t>(
            std::min<std::uint64_t>(IndexFile::entries_per_block, synced.entries - entries_before));
        index.write({entries.data(), count}, version);
        entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count));
        entries_before += count;
    }
}

}  // namespace weir::store
