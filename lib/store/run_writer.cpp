// Writes a run. See run_writer.hpp.
#include "store/run_writer.hpp"

#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "store/manifest.hpp"
#include "store/run_path.hpp"

namespace weir::store {

namespace {

constexpr std::size_t index_entries_per_block = 2048;
/// A manifest and the index entries of two blocks, generously: what a full disk must still take.
constexpr std::uint64_t room_for_the_end_bytes = std::uint64_t{1} << 20;

core::TimeNs unix_time_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return core::TimeNs{now.tv_sec} * core::ns_per_s + now.tv_nsec;
}

core::TimeNs steady_time_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return core::TimeNs{now.tv_sec} * core::ns_per_s + now.tv_nsec;
}

std::uint64_t random_tag() {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
}

nlohmann::json describe(const std::string& file, std::uint64_t bytes, std::uint64_t blocks, std::uint32_t crc) {
    return {{"file", file}, {"bytes", bytes}, {"blocks", blocks}, {"headers_crc32c", fmt::format("{:08x}", crc)}};
}

}  // namespace

RunWriter::RunWriter(const Config& config) : config_(config), directory_(config.path) {
    run_tag_ = random_tag();
    created_ns_ = unix_time_ns();
    now_ns_ = last_sync_ns_ = steady_time_ns();
    try {
        index_file_ = File::create(directory_.file(index_name));
        index_file_.lock();
        directory_.set_room_aside(room_for_the_end_bytes);
        open_segment();
        directory_.sync_parent();
    } catch (const std::exception&) {
        // Nothing is in it yet; left behind it would only stand in the way of the next try.
        directory_.remove();
        throw;
    }
    synced_ = whole_ = here();
}

RunWriter::~RunWriter() = default;

RunWriter::Mark RunWriter::here() const {
    return {stats_, segment_, sequence_, pending_.size()};
}

/// Gives a header what only the order of blocks decides, and its checksum.
void RunWriter::stamp(BlockHeader& header) {
    header.sequence = sequence_++;
    header.run_tag = run_tag_;
    header.header_crc = core::crc32c({reinterpret_cast<const std::byte*>(&header), header_crc_bytes});
    segment_.headers_crc =
        core::crc32c({reinterpret_cast<const std::byte*>(&header), sizeof header}, segment_.headers_crc);
    ++segment_.blocks;
    ++stats_.blocks;
}

void RunWriter::write(std::span<const std::byte> bytes) {
    segment_file_.write_at(segment_.bytes, bytes);
    segment_.bytes += bytes.size();
    stats_.bytes += bytes.size();
}

void RunWriter::open_segment() {
    const auto number = static_cast<std::uint32_t>(closed_segments_.size());
    segment_file_ = File::create(directory_.file(segment_name(number)));
    segment_ = {};
    segment_since_ns_ = 0;

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
    stamp(header);
    std::memcpy(block.data(), &header, sizeof header);
    write(block);
    directory_.sync();
    ++stats_.segments;
}

/// `more_bytes` are about to be written to it.
bool RunWriter::segment_is_full(std::uint64_t more_bytes) const noexcept {
    if (closed_segments_.size() + 1 >= config_.segments_max) return false;
    const bool by_time = config_.segment_interval_ns > 0 && segment_since_ns_ > 0 &&
                         now_ns_ - segment_since_ns_ >= config_.segment_interval_ns;
    return by_time || segment_.bytes + more_bytes >= config_.segment_bytes;
}

/// The segment is full. Its bytes must be on the device before its file goes out of sight: a later sync covers only the
/// next one.
void RunWriter::rotate() {
    sync();
    File full = std::move(segment_file_);
    closed_segments_.push_back(segment_);
    try {
        open_segment();
    } catch (const std::exception&) {
        // No room for a new segment: the run ends with the full one.
        std::error_code error;
        std::filesystem::remove(directory_.file(segment_name(static_cast<std::uint32_t>(closed_segments_.size()))),
                                error);
        closed_segments_.pop_back();
        segment_file_ = std::move(full);
        throw;
    }
    synced_ = whole_ = here();
    full.close();
}

/// Takes note of the block at the start of `rest`. The caller has made sure that `rest` is not empty.
void RunWriter::take_block(std::span<std::byte> rest, std::size_t& block_bytes) {
    BlockHeader header;
    if (rest.size() < sizeof header) throw core::RunError("internal error: the run writer was given half a block");
    std::memcpy(&header, rest.data(), sizeof header);
    block_bytes = sizeof header + padded(header.stored_bytes);
    const bool starts_event = header.type == BlockType::event;
    const bool continues = event_open_ && header.epoch == open_event_.epoch && header.event == open_event_.event &&
                           (header.type == BlockType::source || header.type == BlockType::payload);
    if (header.magic != block_magic || block_bytes > rest.size() || header.stored_bytes > body_bytes_max ||
        (starts_event ? event_open_ || header.stored_bytes < sizeof(EventBody) : !continues))
        throw core::RunError("internal error: the run writer was given blocks that do not follow each other");
    stamp(header);
    std::memcpy(rest.data(), &header, sizeof header);
    track_event(header, rest.data() + sizeof header, block_bytes);
}

void RunWriter::track_event(const BlockHeader& header, const std::byte* body, std::size_t block_bytes) {
    if (header.type == BlockType::event) {
        EventBody event;
        std::memcpy(&event, body, sizeof event);
        open_payload_bytes_ = event.payload_bytes;
        open_event_ = {header.event, header.epoch, static_cast<std::uint32_t>(closed_segments_.size()), 0, 0};
        event_open_ = true;
    }
    open_event_.bytes += block_bytes;
    if ((header.flags & BlockHeader::end_of_event) == 0) return;
    event_open_ = false;
    ++segment_.events;
    ++stats_.events;
    segment_.payload_bytes += open_payload_bytes_;
    stats_.payload_bytes += open_payload_bytes_;
    pending_.push_back(open_event_);
}

void RunWriter::append(std::span<std::byte> blocks) {
    if (failed_ || settled_) throw core::RunError(failed_ ? failure_ : "internal error: append to a closed run");
    now_ns_ = steady_time_ns();
    try {
        while (!blocks.empty()) {
            if (!event_open_ && segment_is_full(0)) rotate();
            if (segment_since_ns_ == 0) segment_since_ns_ = now_ns_;
            // As many blocks as belong into this segment, in one write.
            std::size_t bytes = 0;
            Mark whole = whole_;
            while (bytes < blocks.size()) {
                if (!event_open_ && bytes > 0 && segment_is_full(bytes)) break;
                const bool starts_event = !event_open_;
                std::size_t block_bytes = 0;
                take_block(blocks.subspan(bytes), block_bytes);
                if (starts_event) open_event_.offset = segment_.bytes + bytes;
                bytes += block_bytes;
                if (event_open_) continue;
                whole = here();
                whole.segment.bytes += bytes;
                whole.stats.bytes += bytes;
            }
            write(blocks.first(bytes));
            whole_ = whole;
            blocks = blocks.subspan(bytes);
        }
    } catch (const std::exception& error) {
        if (failed_) throw;  // a sync on the way has cut further back already
        fail(whole_, error.what());
    }
    sync_if_due();
}

void RunWriter::sync_if_due() {
    if (failed_ || settled_ || whole_.stats.bytes == stats_.synced_bytes) return;
    if (stats_.bytes - stats_.synced_bytes < config_.sync_bytes &&
        steady_time_ns() - last_sync_ns_ < config_.sync_interval_ns)
        return;
    sync();
}

void RunWriter::sync() {
    if (failed_ || settled_) throw core::RunError(failed_ ? failure_ : "internal error: sync of a closed run");
    try {
        sync_segment();
        check_in_place();
        flush_index(index_entries_per_block);
    } catch (const std::exception& error) {
        fail(synced_, error.what());
    }
}

void RunWriter::sync_segment() {
    segment_file_.sync();
    stats_.synced_bytes = whole_.stats.synced_bytes = whole_.stats.bytes;
    stats_.synced_events = whole_.stats.synced_events = whole_.stats.events;
    last_sync_ns_ = steady_time_ns();
    synced_ = whole_;
}

/// A file that was removed takes writes and syncs as before, and nobody will ever see them.
void RunWriter::check_in_place() {
    if (directory_.directory().is_in_place() && segment_file_.is_whole(synced_.segment.bytes)) return;
    throw core::RunError(
        fmt::format("{} was removed, moved or shortened while the run was written to it", directory_.path().string()));
}

/// What was in this segment is lost.
void RunWriter::forget(const Segment& segment) noexcept {
    gone_ = failed_ = true;
    stats_.events -= segment.events;
    stats_.payload_bytes -= segment.payload_bytes;
    stats_.synced_events = stats_.events;
}

void RunWriter::settle() {
    if (settled_) return;
    const bool failed_before = failed_;
    if (event_open_) cut(whole_);
    if (stats_.synced_bytes != stats_.bytes && !segment_file_.sync_failed()) {
        try {
            sync_segment();
        } catch (const std::exception& error) {
            if (!failed_) failure_ = error.what();
            failed_ = true;
            cut(synced_);
        }
    }
    settled_ = true;
    for (std::size_t i = 0; i < closed_segments_.size(); ++i)
        if (!directory_.directory().has_file(segment_name(static_cast<std::uint32_t>(i)), closed_segments_[i].bytes))
            forget(closed_segments_[i]);
    if (!segment_file_.is_whole(segment_.bytes)) forget(segment_);
    if (gone_ && failure_.empty())
        failure_ = fmt::format("files were removed from {} or shortened while the run was written to it",
                               directory_.path().string());
    if (failed_ && !failed_before) throw core::RunError(failure_);
}

/// Moves entries of synced events to the index file, in blocks, while there are at least `keep_entries_below`.
void RunWriter::flush_index(std::size_t keep_entries_below) {
    while (synced_.pending >= keep_entries_below && synced_.pending > 0) {
        const std::size_t count = std::min(index_entries_per_block, synced_.pending);
        const std::size_t bytes = count * sizeof(IndexEntry);
        std::vector<std::byte> block(sizeof(BlockHeader) + padded(bytes));
        std::memcpy(block.data() + sizeof(BlockHeader), pending_.data(), bytes);
        BlockHeader header;
        header.type = BlockType::index;
        header.stored_bytes = header.raw_bytes = static_cast<std::uint32_t>(bytes);
        header.sequence = index_.blocks;
        header.run_tag = run_tag_;
        header.body_crc = core::crc32c(std::span<const std::byte>(block).subspan(sizeof header));
        header.header_crc = core::crc32c({reinterpret_cast<const std::byte*>(&header), header_crc_bytes});
        std::memcpy(block.data(), &header, sizeof header);
        index_file_.write_at(index_.bytes, block);
        index_.headers_crc = core::crc32c(std::span<const std::byte>(block).first(sizeof header), index_.headers_crc);
        index_.bytes += block.size();
        ++index_.blocks;
        pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(count));
        synced_.pending -= count;
        whole_.pending -= count;
    }
}

/// Goes back to `mark`: what lies behind it in the segment file is cut off, so that the file ends with a whole event.
void RunWriter::cut(const Mark& mark) noexcept {
    const std::uint64_t segments = stats_.segments;
    segment_ = mark.segment;
    stats_ = mark.stats;
    stats_.segments = segments;
    sequence_ = mark.sequence;
    pending_.resize(mark.pending);
    event_open_ = false;
    whole_ = mark;
    // If that fails, a torn tail or events that are not in the account are there until close() has tried again. A file
    // that somebody shortened is not made longer: settle() has to see it.
    if (segment_file_.is_whole(segment_.bytes)) segment_file_.truncate(segment_.bytes);
    cut_ = true;
    directory_.release_room();
}

void RunWriter::fail(const Mark& mark, const std::string& what) {
    failed_ = true;
    failure_ = what;
    cut(mark);
    throw core::RunError(what);
}

void RunWriter::close(const nlohmann::json& manifest_extra) {
    if (closed_) return;
    settle();
    if (gone_) throw core::RunError(failure_);
    directory_.release_room();
    if (cut_ && !segment_file_.truncate(segment_.bytes))
        throw core::RunError(write_error_text("cannot shorten", segment_file_.path(), errno));
    cut_ = false;
    if (segment_file_.is_open()) segment_file_.sync();  // the cut; and refused if a sync has failed before
    synced_ = whole_ = here();
    flush_index(1);
    index_file_.sync();
    write_manifest(manifest_extra);
    segment_file_.close();
    directory_.publish_run();
    closed_ = true;
    index_file_.close();  // and its lock
    directory_.sync_parent();
}

void RunWriter::write_manifest(const nlohmann::json& extra) {
    nlohmann::json members = extra.is_object() ? extra : nlohmann::json::object();
    nlohmann::json segments = nlohmann::json::array();
    std::vector<Segment> all = closed_segments_;
    all.push_back(segment_);
    for (std::size_t i = 0; i < all.size(); ++i) {
        segments.push_back(
            describe(segment_name(static_cast<std::uint32_t>(i)), all[i].bytes, all[i].blocks, all[i].headers_crc));
        segments.back()["events"] = all[i].events;
    }
    members["format"] = "weir-run";
    members["version"] = format_version;
    members["name"] = config_.name;
    members["run"] = config_.run ? nlohmann::json(*config_.run) : nlohmann::json();
    members["tag"] = fmt::format("{:016x}", run_tag_);
    members["created_ns"] = created_ns_;
    members["closed_ns"] = unix_time_ns();
    members["events"] = stats_.events;
    members["payload_bytes"] = stats_.payload_bytes;
    members["segments"] = std::move(segments);
    members["index"] = describe(std::string(index_name), index_.bytes, index_.blocks, index_.headers_crc);

    directory_.publish_manifest(manifest_text(members));
}

}  // namespace weir::store
