#include "store/run_writer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "core/clock_ns.hpp"
#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "store/manifest.hpp"
#include "store/run_path.hpp"

namespace weir::store {

namespace {

/// A manifest and the index entries of two blocks, generously: what a full disk must still take.
constexpr std::uint64_t room_for_the_end_bytes = std::uint64_t{1} << 20;

std::uint64_t random_tag() {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

RunWriter::RunWriter(const Config& config) : config_(config), directory_(config.path, index_name) {
    run_tag_ = random_tag();
    created_ns_ = core::clock_ns(CLOCK_REALTIME);
    now_ns_ = last_sync_ns_ = core::clock_ns(CLOCK_MONOTONIC);
    config_.files = std::max(config_.files, 1U);
    if (config_.files > 1) config_.version = std::max(config_.version, format_version_reduced);
    lanes_.reserve(config_.files);  // they stay where they are
    try {
        index_ = IndexFile(directory_.take_locked(), run_tag_);
        directory_.set_room_aside(room_for_the_end_bytes);
        method_ = WriteMethod({config_.direct, config_.uring, config_.queue_depth, config_.files, config_.tamper},
                              directory_);
        if (method_.is_direct()) config_.version = std::max(config_.version, format_version_reduced);
        extends_ = method_.is_direct() && config_.preallocate_bytes > 0;
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

/// The lane whose turn it is; the first time each of them begins its first segment.
RunLane& RunWriter::next_lane() {
    if (turn_ == lanes_.size()) {
        lanes_.emplace_back();
        try {
            open_segment(lanes_.back());
        } catch (const std::exception&) {
            lanes_.pop_back();
            throw;
        }
    }
    RunLane& lane = lanes_[turn_];
    turn_ = turn_ + 1 < config_.files ? turn_ + 1 : 0;
    return lane;
}

/// On an error the lane has its old segment, or is good for nothing.
void RunWriter::open_segment(RunLane& lane) {
    const auto number = static_cast<std::uint32_t>(segments_.size());
    lane.file = File::create(directory_.file(segment_name(number)));
    if (method_.is_direct() && !lane.file.set_direct(true)) method_.give_up_direct();
    lane.number = number;
    if (config_.version >= format_version_reduced) lane.sequence = 0;

    SegmentBody body;
    body.segment = number;
    body.run = config_.run.value_or(SegmentBody::no_run);
    body.created_ns = core::clock_ns(CLOCK_REALTIME);
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
    lane.stamp(header, config_.version, run_tag_);
    std::memcpy(block.data(), &header, sizeof header);
    AlignedBytes copy;
    const std::span<const std::byte> head = aligned(lane, block, copy);
    extend(lane, head.size());
    lane.file.write_at(0, head);
    lane.segment.bytes += head.size();
    directory_.sync();
    segments_.push_back(lane.segment);
    ++stats_.segments;
    lane.advance(lane.here(), stats_);
    lane.whole = lane.synced = lane.done;
}

/// `more_bytes` are about to be written to it.
bool RunWriter::is_full(const RunLane& lane, std::uint64_t more_bytes) const noexcept {
    if (segments_.size() >= config_.segments_max) return false;
    const bool by_time =
        config_.segment_interval_ns > 0 && lane.since_ns > 0 && now_ns_ - lane.since_ns >= config_.segment_interval_ns;
    return by_time || lane.segment.bytes + more_bytes >= config_.segment_bytes;
}

/// The segment is full. Its bytes must be on the device before its file goes out of sight: a later sync covers only the
/// next one.
void RunWriter::rotate(RunLane& lane) {
    method_.queue().drain();
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
            fail(fmt::format("{}; {}", error.what(), unsynced_.set_aside_text()));
        }
    segments_[lane.number] = lane.segment;
    RunLane full = std::exchange(lane, RunLane{});
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
        unsynced_.add({full.number, full.segment, full.on_device, std::move(full.file)});
    else
        full.file.close();
}

/// Takes note of the block at the start of `rest`, which goes to `offset`: its length. `rest` must not be empty.
std::size_t RunWriter::take_block(RunLane& lane, std::span<std::byte> rest, std::uint64_t offset) {
    BlockHeader header = event_.next(rest, config_.version);
    lane.stamp(header, config_.version, run_tag_);
    std::memcpy(rest.data(), &header, sizeof header);
    if (const auto whole = event_.take(header, rest.data() + sizeof header, lane.number, offset); whole.has_value()) {
        ++lane.segment.events;
        lane.segment.payload_bytes += whole->payload_bytes;
        lane.entries.push_back(whole->entry);
    }
    return sizeof header + padded(header.stored_bytes);
}

void RunWriter::append_to_lane(std::span<std::byte> blocks) {
    RunLane& lane = *lane_;
    while (!blocks.empty()) {
        if (!event_.is_open() && is_full(lane, 0)) rotate(lane);
        if (lane.since_ns == 0) lane.since_ns = now_ns_;
        // As many blocks as belong into this segment, in one write: of a buffer for a direct write all of them.
        std::size_t bytes = 0;
        Mark whole = lane.whole;
        while (bytes < blocks.size()) {
            if (!method_.is_direct() && !event_.is_open() && bytes > 0 && is_full(lane, bytes)) break;
            bytes += take_block(lane, blocks.subspan(bytes), lane.segment.bytes + bytes);
            if (event_.is_open()) continue;
            whole = lane.here();
            whole.segment.bytes += bytes;
        }
        write(lane, blocks.first(bytes), whole);
        lane.whole = whole;
        blocks = blocks.subspan(bytes);
    }
}

void RunWriter::append(std::span<std::byte> blocks) {
    if (failed_ || data_finished_) throw core::RunError(failed_ ? failure_ : "internal error: append to a closed run");
    now_ns_ = core::clock_ns(CLOCK_MONOTONIC);
    try {
        if (!event_.is_open()) lane_ = &next_lane();
        append_to_lane(blocks);
        ++appends_;
    } catch (const std::exception& error) {
        if (failed_) throw;  // a sync on the way has cut further back already
        fail(error.what());
    }
    collect();
    sync_if_due();
}

std::span<const std::byte> RunWriter::aligned(RunLane& lane, std::span<const std::byte> bytes, AlignedBytes& copy) {
    const std::span<const std::byte> data = lane.aligned(bytes, copy, config_.version, run_tag_);
    event_.pad(data.size() - bytes.size());
    return data;
}

void RunWriter::extend(RunLane& lane, std::uint64_t end) {
    if (extends_ && lane.file.is_direct()) extends_ = lane.extend(end, config_.preallocate_bytes);
}

void RunWriter::write(RunLane& lane, std::span<const std::byte> bytes, const Mark& whole) {
    AlignedBytes copy;
    const std::span<const std::byte> data = aligned(lane, bytes, copy);
    const std::uint64_t offset = lane.segment.bytes;
    extend(lane, offset + data.size());
    if (!method_.queue().is_asynchronous()) {
        lane.file.write_at(offset, data);
        lane.segment.bytes += data.size();
        lane.advance(whole, stats_);
        return;
    }
    Batch& batch = batches_.emplace_back();
    batch.lane = &lane;
    batch.append = appends_;
    batch.whole = whole;
    batch.copy = std::move(copy);
    lane.segment.bytes += data.size();
    method_.queue().write(lane.file, offset, data, batch.ticket);
}

/// Buffers are let go of in the order in which they came.
void RunWriter::complete() {
    while (!batches_.empty() && !batches_.front().ticket.pending) {
        const Batch& batch = batches_.front();
        if (batch.ticket.error_number != 0)
            throw core::RunError(write_error_text("cannot write", batch.lane->file.path(), batch.ticket.error_number));
        batch.lane->advance(batch.whole, stats_);
        batches_.pop_front();
    }
}

std::size_t RunWriter::held() const noexcept {
    return batches_.empty() ? 0 : static_cast<std::size_t>(appends_ - batches_.front().append);
}

void RunWriter::collect() {
    if (failed_ || !method_.queue().is_asynchronous()) return;
    try {
        method_.queue().reap(false);
        complete();
    } catch (const std::exception& error) {
        fail(error.what());
    }
}

void RunWriter::sync_if_due() {
    if (failed_ || data_finished_ || config_.sync != SyncPolicy::interval || stats_.bytes == stats_.synced_bytes)
        return;
    if (stats_.bytes - stats_.synced_bytes < config_.sync_bytes &&
        core::clock_ns(CLOCK_MONOTONIC) - last_sync_ns_ < config_.sync_interval_ns)
        return;
    sync();
}

void RunWriter::sync() {
    if (failed_ || data_finished_) throw core::RunError(failed_ ? failure_ : "internal error: sync of a closed run");
    RunLane* now = nullptr;
    try {
        for (RunLane& lane : lanes_) {
            now = &lane;
            if (lane.done.segment.bytes != lane.on_device.bytes) sync_lane(lane);
        }
    } catch (const std::exception& error) {
        fail(error.what(), now);
    }
}

void RunWriter::sync_lane(RunLane& lane) {
    lane.sync(stats_);
    last_sync_ns_ = core::clock_ns(CLOCK_MONOTONIC);
    if (data_finished_) return;
    check_in_place(lane);
    lane.flush_index(index_, IndexFile::entries_per_block, config_.version);
}

/// A file that was removed takes writes and syncs as before, and nobody will ever see them.
void RunWriter::check_in_place(const RunLane& lane) {
    if (directory_.directory().is_in_place() && lane.file.is_whole(lane.synced.segment.bytes)) return;
    throw core::RunError(
        fmt::format("{} was removed, moved or shortened while the run was written to it", directory_.path().string()));
}

/// After an error nobody knows how long the file is.
bool RunWriter::cut(RunLane& lane, const Mark& mark) noexcept {
    lane.too_long |= failed_;
    return lane.cut(mark, stats_);
}

/// Waits for what is under way and takes note of what was written before the first error of each lane.
void RunWriter::abandon_writes() noexcept {
    try {
        method_.queue().drain();
    } catch (const std::exception&) {
        method_.queue() = WriteQueue();  // its end waits for them as well as it can
    }
    std::vector<const RunLane*> broken;
    for (const Batch& batch : batches_) {
        if (batch.ticket.pending || batch.ticket.error_number != 0) broken.push_back(batch.lane);
        if (std::ranges::find(broken, batch.lane) == broken.end()) batch.lane->advance(batch.whole, stats_);
    }
    batches_.clear();
}

void RunWriter::fail(const std::string& what, const RunLane* sync_failed) {
    abandon_writes();
    failed_ = true;
    failure_ = what;
    event_.drop();
    for (RunLane& lane : lanes_) static_cast<void>(cut(lane, &lane == sync_failed ? lane.synced : lane.done));
    directory_.release_room();
    throw core::RunError(what);
}

/// What was in this segment is lost.
void RunWriter::forget(const SegmentSize& segment) noexcept {
    gone_ = failed_ = true;
    stats_.events -= segment.events;
    stats_.payload_bytes -= segment.payload_bytes;
    stats_.synced_events = std::min(stats_.synced_events, stats_.events);
}

/// Ends it with its last whole event, and syncs it.
void RunWriter::finish_lane(RunLane& lane) noexcept {
    static_cast<void>(cut(lane, lane.done));
    segments_[lane.number] = lane.segment;
    const bool asked = config_.sync != SyncPolicy::never;
    const bool needed = lane.on_device.bytes != lane.segment.bytes || (lane.shortened && method_.is_direct());
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

void RunWriter::sync_oldest_segment() {
    const std::uint32_t number = unsynced_.oldest();
    try {
        unsynced_.sync_oldest(stats_);
    } catch (const core::RunError&) {
        forget(segments_[number]);
        throw;
    }
}

/// After an error of one the others are just as much worth syncing.
void RunWriter::sync_full_segments() noexcept {
    std::string first = failure_;
    while (unsynced_.size() > 0) try {
            sync_oldest_segment();
        } catch (const std::exception& error) {
            if (first.empty()) first = error.what();
        }
    if (unsynced_.any_set_aside()) failure_ = first + "; " + unsynced_.set_aside_text();
}

void RunWriter::finish_data() {
    if (data_finished_) return;
    const bool failed_before = failed_;
    try {
        if (!failed_) {
            method_.queue().drain();
            complete();
        }
    } catch (const std::exception& error) {
        try {
            fail(error.what());
        } catch (const std::exception&) {
            // failure_ says it
        }
    }
    event_.drop();
    data_finished_ = true;
    for (RunLane& lane : lanes_) finish_lane(lane);
    sync_full_segments();
    for (std::uint32_t i = 0; i < segments_.size(); ++i) {
        if (unsynced_.is_set_aside(i)) continue;
        const auto lane = std::ranges::find(lanes_, i, &RunLane::number);
        const bool whole = lane != lanes_.end() ? lane->file.is_whole(segments_[i].bytes)
                                                : directory_.directory().has_file(segment_name(i), segments_[i].bytes);
        if (!whole) forget(segments_[i]);
    }
    if (gone_ && failure_.empty())
        failure_ = fmt::format("files were removed from {} or shortened while the run was written to it",
                               directory_.path().string());
    if (failed_ && !failed_before) throw core::RunError(failure_);
}

void RunWriter::close(const nlohmann::json& manifest_extra) {
    if (closed_) return;
    finish_data();
    if (gone_) throw core::RunError(failure_);
    directory_.release_room();
    for (RunLane& lane : lanes_) {
        if (lane.too_long && !lane.file.truncate(lane.segment.bytes))
            throw core::RunError(write_error_text("cannot shorten", lane.file.path(), errno));
        lane.too_long = false;
        // The cut; and refused if a sync has failed before.
        if (lane.file.is_open() && (config_.sync != SyncPolicy::never || lane.file.sync_failed())) lane.file.sync();
        lane.synced = lane.whole = lane.done = lane.here();
        lane.flush_index(index_, 1, config_.version);
    }
    index_.sync();
    directory_.publish_manifest(manifest_text(manifest_members(manifest_extra)));
    for (RunLane& lane : lanes_) lane.file.close();
    directory_.publish_run();
    closed_ = true;
    index_.close();  // and its lock
    directory_.sync_parent();
}

nlohmann::json RunWriter::manifest_members(const nlohmann::json& extra) const {
    nlohmann::json members = extra.is_object() ? extra : nlohmann::json::object();
    nlohmann::json segments = nlohmann::json::array();
    for (std::uint32_t i = 0; i < segments_.size(); ++i) {
        const SegmentSize& segment = segments_[i];
        segments.push_back(listed_file(segment_name(i), segment.bytes, segment.blocks, segment.headers_crc));
        segments.back()["events"] = segment.events;
    }
    members["format"] = "weir-run";
    members["version"] = config_.version;
    members["name"] = config_.name;
    members["run"] = config_.run ? nlohmann::json(*config_.run) : nlohmann::json();
    members["tag"] = fmt::format("{:016x}", run_tag_);
    members["created_ns"] = created_ns_;
    members["closed_ns"] = core::clock_ns(CLOCK_REALTIME);
    members["events"] = stats_.events;
    members["payload_bytes"] = stats_.payload_bytes;
    members["segments"] = std::move(segments);
    members["index"] = index_.listed();
    members["writing"] = how();
    return members;
}

nlohmann::json RunWriter::how() const {
    return method_.how();
}

std::string RunWriter::how_text() const {
    return method_.how_text();
}

}  // namespace weir::store
