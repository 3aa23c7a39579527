// Writes a run: the index, and what makes it a run at its end. See run_writer.hpp.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "store/manifest.hpp"
#include "store/run_path.hpp"
#include "store/run_writer.hpp"
#include "store/store_time.hpp"

namespace weir::store {

namespace {

nlohmann::json describe(const std::string& file, std::uint64_t bytes, std::uint64_t blocks, std::uint32_t crc) {
    return {{"file", file}, {"bytes", bytes}, {"blocks", blocks}, {"headers_crc32c", fmt::format("{:08x}", crc)}};
}

}  // namespace

/// What was in this segment is lost.
void RunWriter::forget(const Segment& segment) noexcept {
    gone_ = failed_ = true;
    stats_.events -= segment.events;
    stats_.payload_bytes -= segment.payload_bytes;
    stats_.synced_events = std::min(stats_.synced_events, stats_.events);
}

/// Ends it with its last whole event, and syncs it.
void RunWriter::settle_lane(Lane& lane) noexcept {
    static_cast<void>(cut(lane, lane.done));
    segments_[lane.number] = lane.segment;
    const bool asked = config_.sync != SyncPolicy::never;
    const bool needed = lane.on_device.bytes != lane.segment.bytes || (lane.shortened && direct_);
    if (!asked || !needed || lane.file.sync_failed()) return;
    try {
        sync_lane(lane);
    } catch (const std::exception& error) {
        if (!failed_) failure_ = error.what();
        failed_ = true;
        static_cast<void>(cut(lane, lane.synced));
        segments_[lane.number] = lane.segment;
    }
}

/// Nobody knows which of its bytes are on the device, and another sync would not tell. They may be of use to somebody,
/// but must not pass for written: the segment loses its name, and its events.
void RunWriter::set_aside(const Unsynced& full) noexcept {
    forget(segments_[full.number]);
    bool renamed = true;
    try {
        rename_new(full.file.path(), full.file.path().string() + ".unsynced");
    } catch (const std::exception&) {
        renamed = false;
    }
    set_aside_.push_back({full.number, renamed});
}

std::string RunWriter::set_aside_text() const {
    constexpr std::size_t named_max = 8;
    std::string text = "nobody knows what the device has of";
    for (std::size_t i = 0; i < std::min(set_aside_.size(), named_max); ++i) {
        const auto& [number, renamed] = set_aside_[i];
        text += fmt::format("{} {} ({} events, {})", i > 0 ? "," : "", segment_name(number), segments_[number].events,
                            renamed ? "now *.unsynced" : "which could not be renamed either");
    }
    if (set_aside_.size() > named_max) text += fmt::format(" and {} more", set_aside_.size() - named_max);
    return text;
}

void RunWriter::sync_oldest_segment() {
    Unsynced full = std::move(unsynced_.front());
    unsynced_.pop_front();
    try {
        full.file.sync();
        full.file.close();
    } catch (const core::RunError&) {
        set_aside(full);
        throw;
    }
    const Segment& segment = segments_[full.number];
    stats_.synced_bytes += segment.bytes - full.on_device.bytes;
    stats_.synced_events += segment.events - full.on_device.events;
}

/// After an error of one the others are just as much worth syncing.
void RunWriter::sync_full_segments() noexcept {
    std::string first = failure_;
    while (!unsynced_.empty()) try {
            sync_oldest_segment();
        } catch (const std::exception& error) {
            if (first.empty()) first = error.what();
        }
    if (!set_aside_.empty()) failure_ = first + "; " + set_aside_text();
}

void RunWriter::settle() {
    if (settled_) return;
    const bool failed_before = failed_;
    try {
        if (!failed_) {
            queue_.drain();
            complete();
        }
    } catch (const std::exception& error) {
        try {
            fail(error.what());
        } catch (const std::exception&) {
            // failure_ says it
        }
    }
    event_open_ = false;
    settled_ = true;
    for (Lane& lane : lanes_) settle_lane(lane);
    sync_full_segments();
    for (std::uint32_t i = 0; i < segments_.size(); ++i) {
        if (std::ranges::find(set_aside_, i, &SetAside::number) != set_aside_.end()) continue;
        const auto lane = std::ranges::find(lanes_, i, &Lane::number);
        const bool whole = lane != lanes_.end() ? lane->file.is_whole(segments_[i].bytes)
                                                : directory_.directory().has_file(segment_name(i), segments_[i].bytes);
        if (!whole) forget(segments_[i]);
    }
    if (gone_ && failure_.empty())
        failure_ = fmt::format("files were removed from {} or shortened while the run was written to it",
                               directory_.path().string());
    if (failed_ && !failed_before) throw core::RunError(failure_);
}

/// Moves entries of synced events to the index file, in blocks, while there are at least `keep_below`.
void RunWriter::flush_index(Lane& lane, std::uint64_t keep_below) {
    while (lane.synced.entries - lane.entries_before >= std::max<std::uint64_t>(keep_below, 1)) {
        const auto count = static_cast<std::size_t>(
            std::min<std::uint64_t>(index_entries_per_block, lane.synced.entries - lane.entries_before));
        const std::size_t bytes = count * sizeof(IndexEntry);
        std::vector<std::byte> block(sizeof(BlockHeader) + padded(bytes));
        std::memcpy(block.data() + sizeof(BlockHeader), lane.entries.data(), bytes);
        BlockHeader header;
        header.type = BlockType::index;
        header.stored_bytes = header.raw_bytes = static_cast<std::uint32_t>(bytes);
        header.version = config_.version;
        header.sequence = index_.blocks;
        header.run_tag = run_tag_;
        header.body_crc = core::crc32c(std::span<const std::byte>(block).subspan(sizeof header));
        header.header_crc = core::crc32c({reinterpret_cast<const std::byte*>(&header), header_crc_bytes});
        std::memcpy(block.data(), &header, sizeof header);
        index_file_.write_at(index_.bytes, block);
        index_.headers_crc = core::crc32c(std::span<const std::byte>(block).first(listed_header_bytes(config_.version)),
                                          index_.headers_crc);
        index_.bytes += block.size();
        ++index_.blocks;
        lane.entries.erase(lane.entries.begin(), lane.entries.begin() + static_cast<std::ptrdiff_t>(count));
        lane.entries_before += count;
    }
}

void RunWriter::close(const nlohmann::json& manifest_extra) {
    if (closed_) return;
    settle();
    if (gone_) throw core::RunError(failure_);
    directory_.release_room();
    for (Lane& lane : lanes_) {
        if (lane.too_long && !lane.file.truncate(lane.segment.bytes))
            throw core::RunError(write_error_text("cannot shorten", lane.file.path(), errno));
        lane.too_long = false;
        // The cut; and refused if a sync has failed before.
        if (lane.file.is_open() && (config_.sync != SyncPolicy::never || lane.file.sync_failed())) lane.file.sync();
        lane.synced = lane.whole = lane.done = here(lane);
        flush_index(lane, 1);
    }
    index_file_.sync();
    write_manifest(manifest_extra);
    for (Lane& lane : lanes_) lane.file.close();
    directory_.publish_run();
    closed_ = true;
    index_file_.close();  // and its lock
    directory_.sync_parent();
}

void RunWriter::write_manifest(const nlohmann::json& extra) {
    nlohmann::json members = extra.is_object() ? extra : nlohmann::json::object();
    nlohmann::json segments = nlohmann::json::array();
    for (std::uint32_t i = 0; i < segments_.size(); ++i) {
        const Segment& segment = segments_[i];
        segments.push_back(describe(segment_name(i), segment.bytes, segment.blocks, segment.headers_crc));
        segments.back()["events"] = segment.events;
    }
    members["format"] = "weir-run";
    members["version"] = config_.version;
    members["name"] = config_.name;
    members["run"] = config_.run ? nlohmann::json(*config_.run) : nlohmann::json();
    members["tag"] = fmt::format("{:016x}", run_tag_);
    members["created_ns"] = created_ns_;
    members["closed_ns"] = unix_time_ns();
    members["events"] = stats_.events;
    members["payload_bytes"] = stats_.payload_bytes;
    members["segments"] = std::move(segments);
    members["index"] = describe(std::string(index_name), index_.bytes, index_.blocks, index_.headers_crc);
    members["writing"] = how();

    directory_.publish_manifest(manifest_text(members));
}

}  // namespace weir::store
