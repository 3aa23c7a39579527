// Writes a run. See run_writer.hpp.
#include "store/run_writer.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
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

bool is_there(const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

void make_run_directory(const std::filesystem::path& final_path, const std::filesystem::path& hidden) {
    if (!final_path.has_filename() || final_path.filename() == "." || final_path.filename() == "..")
        throw core::RunError(
            fmt::format("cannot write a run to \"{}\": not a name for a new directory", final_path.string()));
    if (is_there(final_path))
        throw core::RunError(
            fmt::format("{} exists already; choose another path, or move it away", final_path.string()));
    if (::mkdir(hidden.c_str(), 0755) == 0) return;
    if (errno == EEXIST)
        throw core::RunError(
            fmt::format("{0} exists already: a run to {1} is still going on or was ended by force; look at it with "
                        "`weir inspect {0}`, "
                        "then move it away",
                        hidden.string(), final_path.string()));
    const int error_number = errno;
    if (error_number == ENOENT)
        throw core::RunError(fmt::format("cannot write a run to {}: there is no directory {}", final_path.string(),
                                         final_path.parent_path().string()));
    throw core::RunError(system_error_text("cannot create", hidden, error_number));
}

nlohmann::json describe(const std::string& file, std::uint64_t bytes, std::uint64_t blocks, std::uint32_t crc) {
    return {{"file", file}, {"bytes", bytes}, {"blocks", blocks}, {"headers_crc32c", fmt::format("{:08x}", crc)}};
}

}  // namespace

RunWriter::RunWriter(const Config& config) : config_(config) {
    if (!config_.path.has_filename()) config_.path = config_.path.parent_path();
    hidden_path_ = hidden_path(config_.path);
    current_path_ = hidden_path_;
    make_run_directory(config_.path, hidden_path_);
    run_tag_ = random_tag();
    created_ns_ = unix_time_ns();
    last_sync_ns_ = steady_time_ns();
    try {
        directory_ = Directory(hidden_path_);
        index_file_ = File::create(hidden_path_ / index_name);
        open_segment();
        Directory(config_.path.parent_path()).sync();
    } catch (const core::RunError&) {
        // Nothing is in it yet; left behind it would only stand in the way of the next try.
        std::error_code error;
        std::filesystem::remove_all(hidden_path_, error);
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
    segment_file_ = File::create(hidden_path_ / segment_name(number));
    segment_ = {};

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

/// The segment is full. Its bytes must be on the device before its file goes out of sight: a later sync covers only the
/// next one.
void RunWriter::rotate() {
    sync();
    File full = std::move(segment_file_);
    closed_segments_.push_back(segment_);
    try {
        open_segment();
    } catch (const core::RunError&) {
        // No room for a new segment: the run ends with the full one.
        std::error_code error;
        std::filesystem::remove(hidden_path_ / segment_name(static_cast<std::uint32_t>(closed_segments_.size())),
                                error);
        closed_segments_.pop_back();
        segment_file_ = std::move(full);
        throw;
    }
    synced_ = whole_ = here();
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
    stats_.payload_bytes += open_payload_bytes_;
    pending_.push_back(open_event_);
}

void RunWriter::append(std::span<std::byte> blocks) {
    if (failed_ || closed_) throw core::RunError(failed_ ? failure_ : "internal error: append to a closed run");
    try {
        while (!blocks.empty()) {
            if (!event_open_ && segment_.bytes >= config_.segment_bytes) rotate();
            // As many blocks as belong into this segment, in one write.
            std::size_t bytes = 0;
            Mark whole = whole_;
            while (bytes < blocks.size()) {
                if (!event_open_ && segment_.bytes + bytes >= config_.segment_bytes && bytes > 0) break;
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
    } catch (const core::RunError& error) {
        if (failed_) throw;  // a sync on the way has cut further back already
        fail(whole_, error.what());
    }
    sync_if_due();
}

void RunWriter::sync_if_due() {
    if (failed_ || closed_ || whole_.stats.bytes == stats_.synced_bytes) return;
    if (stats_.bytes - stats_.synced_bytes < config_.sync_bytes &&
        steady_time_ns() - last_sync_ns_ < config_.sync_interval_ns)
        return;
    sync();
}

void RunWriter::sync() {
    if (failed_ || closed_) throw core::RunError(failed_ ? failure_ : "internal error: sync of a closed run");
    try {
        segment_file_.sync();
        stats_.synced_bytes = whole_.stats.synced_bytes = whole_.stats.bytes;
        stats_.synced_events = whole_.stats.synced_events = whole_.stats.events;
        last_sync_ns_ = steady_time_ns();
        synced_ = whole_;
        flush_index(index_entries_per_block);
    } catch (const core::RunError& error) {
        fail(synced_, error.what());
    }
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
    // If even that fails, the torn tail is what `inspect` reports anyway.
    if (segment_file_.is_open()) segment_file_.truncate(segment_.bytes);
}

void RunWriter::fail(const Mark& mark, const std::string& what) {
    failed_ = true;
    failure_ = what;
    cut(mark);
    throw core::RunError(what);
}

void RunWriter::close(const nlohmann::json& manifest_extra) {
    if (closed_) return;
    if (event_open_ || failed_) cut(whole_);
    // After a failure the last good state is tried once more: by now there may be room again.
    segment_file_.sync();
    stats_.synced_bytes = stats_.bytes;
    stats_.synced_events = stats_.events;
    synced_ = whole_ = here();
    flush_index(1);
    index_file_.sync();
    write_manifest(manifest_extra);
    directory_.sync();
    rename_new(hidden_path_, config_.path);
    closed_ = true;
    current_path_ = config_.path;
    segment_file_.close();
    index_file_.close();
    Directory(config_.path.parent_path()).sync();
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

    const std::string text = manifest_text(members);
    std::error_code error;
    std::filesystem::remove(hidden_path_ / manifest_name, error);  // left by a close that failed
    File file = File::create(hidden_path_ / manifest_name);
    file.write_at(0, std::as_bytes(std::span(text)));
    file.sync();
}

}  // namespace weir::store
