// Writes a run: blocks become events, and go to segments. See run_writer.hpp.
#include "store/run_writer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "store/manifest.hpp"
#include "store/store_time.hpp"

namespace weir::store {

namespace {

/// A manifest and the index entries of two blocks, generously: what a full disk must still take.
constexpr std::uint64_t room_for_the_end_bytes = std::uint64_t{1} << 20;

std::uint64_t random_tag() {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

RunWriter::RunWriter(const Config& config) : config_(config), directory_(config.path) {
    run_tag_ = random_tag();
    created_ns_ = unix_time_ns();
    now_ns_ = last_sync_ns_ = steady_time_ns();
    config_.files = std::max(config_.files, 1U);
    if (config_.files > 1) config_.version = std::max(config_.version, format_version_reduced);
    lanes_.reserve(config_.files);  // they stay where they are
    try {
        index_file_ = File::create(directory_.file(index_name));
        index_file_.lock();
        directory_.set_room_aside(room_for_the_end_bytes);
        set_up_disk();
        static_cast<void>(next_lane());
        directory_.sync_parent();
    } catch (const std::exception&) {
        // Nothing is in it yet; left behind it would only stand in the way of the next try.
        directory_.remove();
        throw;
    }
    turn_ = 0;
}

RunWriter::~RunWriter() = default;

RunWriter::Mark RunWriter::here(const Lane& lane) const {
    return {lane.segment, lane.sequence, lane.entries_before + lane.entries.size()};
}

/// The lane whose turn it is; the first time each of them begins its first segment.
RunWriter::Lane& RunWriter::next_lane() {
    if (turn_ == lanes_.size()) {
        lanes_.emplace_back();
        try {
            open_segment(lanes_.back());
        } catch (const std::exception&) {
            lanes_.pop_back();
            throw;
        }
    }
    Lane& lane = lanes_[turn_];
    turn_ = turn_ + 1 < config_.files ? turn_ + 1 : 0;
    return lane;
}

/// Gives a header what only the order of blocks decides, and its checksum.
void RunWriter::stamp(Lane& lane, BlockHeader& header) {
    header.version = config_.version;
    header.sequence = lane.sequence++;
    header.run_tag = run_tag_;
    header.header_crc = core::crc32c({reinterpret_cast<const std::byte*>(&header), header_crc_bytes});
    lane.segment.headers_crc = core::crc32c(
        {reinterpret_cast<const std::byte*>(&header), listed_header_bytes(config_.version)}, lane.segment.headers_crc);
    ++lane.segment.blocks;
}

/// On an error the lane has its old segment, or is good for nothing.
void RunWriter::open_segment(Lane& lane) {
    const auto number = static_cast<std::uint32_t>(segments_.size());
    lane.file = File::create(directory_.file(segment_name(number)));
    if (direct_ && !lane.file.set_direct(true)) direct_ = false;
    lane.number = number;
    if (config_.version >= format_version_reduced) lane.sequence = 0;

    SegmentBody body;
    body.segment = number;
    body.run = config_.run.value_or(SegmentBody::no_run);
    body.created_ns = unix_time_ns();
    nlohmann::json start = nlohmann::json::parse(config_.start_json, nullptr, false);
    if (start.is_discarded()) start = nullptr;
    start = {{"name", config_.name}, {"start", std::move(start)}};
    const std::string text = start.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    body.json_bytes = static_cast<std::uint32_t>(text.size());

    BlockHeader header;
    header.type = BlockType::segment;
    header.stored_bytes = header.raw_bytes = static_cast<std::uint32_t>(sizeof body + text.size());
    std::vector<std::byte> block(sizeof header + padded(header.stored_bytes));
    std::memcpy(block.data() + sizeof header, &body, sizeof body);
    std::memcpy(block.data() + sizeof header + sizeof body, text.data(), text.size());
    header.body_crc = core::crc32c(std::span<const std::byte>(block).subspan(sizeof header));
    stamp(lane, header);
    std::memcpy(block.data(), &header, sizeof header);
    write_head(lane, block);
    directory_.sync();
    segments_.push_back(lane.segment);
    ++stats_.segments;
    advance(lane, here(lane));
    lane.whole = lane.synced = lane.done;
}

/// `more_bytes` are about to be written to it.
bool RunWriter::is_full(const Lane& lane, std::uint64_t more_bytes) const noexcept {
    if (segments_.size() >= config_.segments_max) return false;
    const bool by_time =
        config_.segment_interval_ns > 0 && lane.since_ns > 0 && now_ns_ - lane.since_ns >= config_.segment_interval_ns;
    return by_time || lane.segment.bytes + more_bytes >= config_.segment_bytes;
}

/// The segment is full. Its bytes must be on the device before its file goes out of sight: a later sync covers only the
/// next one.
void RunWriter::rotate(Lane& lane) {
    queue_.drain();
    complete();
    if (!cut(lane, lane.done)) throw core::RunError(write_error_text("cannot shorten", lane.file.path(), errno));
    if (config_.sync == SyncPolicy::interval)
        sync();
    else if (config_.sync == SyncPolicy::segment)
        sync_lane(lane);
    else if (config_.sync == SyncPolicy::end && unsynced_.size() >= config_.unsynced_max)
        try {
            sync_oldest_segment();
        } catch (const core::RunError& error) {
            fail(fmt::format("{}; {}", error.what(), set_aside_text()));
        }
    segments_[lane.number] = lane.segment;
    Lane full = std::exchange(lane, Lane{});
    lane.sequence = full.sequence;
    lane.entries = std::move(full.entries);
    lane.entries_before = full.entries_before;
    try {
        open_segment(lane);
    } catch (const std::exception&) {
        // No room for a new segment: the run ends with the full one.
        std::error_code error;
        std::filesystem::remove(directory_.file(segment_name(static_cast<std::uint32_t>(segments_.size()))), error);
        full.entries = std::move(lane.entries);
        lane = std::move(full);
        throw;
    }
    if (config_.sync == SyncPolicy::end)
        unsynced_.push_back({full.number, full.on_device, std::move(full.file)});
    else
        full.file.close();
}

/// Takes note of the block at the start of `rest`. The caller has made sure that `rest` is not empty.
void RunWriter::take_block(Lane& lane, std::span<std::byte> rest, std::size_t& block_bytes) {
    BlockHeader header;
    if (rest.size() < sizeof header) throw core::RunError("internal error: the run writer was given half a block");
    std::memcpy(&header, rest.data(), sizeof header);
    block_bytes = sizeof header + padded(header.stored_bytes);
    const bool starts_event = header.type == BlockType::event;
    const bool is_padding = header.type == BlockType::padding;
    const bool continues = event_open_ && header.epoch == open_event_.epoch && header.event == open_event_.event &&
                           (header.type == BlockType::source || header.type == BlockType::payload);
    if (header.magic != block_magic || block_bytes > rest.size() || header.stored_bytes > body_bytes_max ||
        (starts_event ? event_open_ || header.stored_bytes < sizeof(EventBody) : !continues && !is_padding))
        throw core::RunError("internal error: the run writer was given blocks that do not follow each other");
    if (config_.version < format_version_reduced && (is_padding || header.encoding > Encoding::zstd))
        throw core::RunError("internal error: the run writer was given a block of a newer version than its run");
    stamp(lane, header);
    std::memcpy(rest.data(), &header, sizeof header);
    if (is_padding && !event_open_) return;
    track_event(lane, header, rest.data() + sizeof header, block_bytes);
}

void RunWriter::track_event(Lane& lane, const BlockHeader& header, const std::byte* body, std::size_t block_bytes) {
    if (header.type == BlockType::event) {
        EventBody event;
        std::memcpy(&event, body, sizeof event);
        open_payload_bytes_ = event.payload_bytes;
        open_event_ = {header.event, header.epoch, lane.number, 0, 0};
        event_open_ = true;
    }
    open_event_.bytes += block_bytes;
    if ((header.flags & BlockHeader::end_of_event) == 0) return;
    event_open_ = false;
    ++lane.segment.events;
    lane.segment.payload_bytes += open_payload_bytes_;
    lane.entries.push_back(open_event_);
}

void RunWriter::append_to_lane(std::span<std::byte> blocks) {
    Lane& lane = *lane_;
    while (!blocks.empty()) {
        if (!event_open_ && is_full(lane, 0)) rotate(lane);
        if (lane.since_ns == 0) lane.since_ns = now_ns_;
        // As many blocks as belong into this segment, in one write: of a buffer for a direct write all of them.
        std::size_t bytes = 0;
        Mark whole = lane.whole;
        while (bytes < blocks.size()) {
            if (!direct_ && !event_open_ && bytes > 0 && is_full(lane, bytes)) break;
            const bool starts_event = !event_open_;
            std::size_t block_bytes = 0;
            take_block(lane, blocks.subspan(bytes), block_bytes);
            if (starts_event) open_event_.offset = lane.segment.bytes + bytes;
            bytes += block_bytes;
            if (event_open_) continue;
            whole = here(lane);
            whole.segment.bytes += bytes;
        }
        write(lane, blocks.first(bytes), whole);
        lane.whole = whole;
        blocks = blocks.subspan(bytes);
    }
}

void RunWriter::append(std::span<std::byte> blocks) {
    if (failed_ || settled_) throw core::RunError(failed_ ? failure_ : "internal error: append to a closed run");
    now_ns_ = steady_time_ns();
    try {
        if (!event_open_) lane_ = &next_lane();
        append_to_lane(blocks);
        ++appends_;
    } catch (const std::exception& error) {
        if (failed_) throw;  // a sync on the way has cut further back already
        fail(error.what());
    }
    collect();
    sync_if_due();
}

}  // namespace weir::store
