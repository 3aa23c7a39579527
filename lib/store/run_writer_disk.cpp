// Writes a run: bytes get to the disk, and back off it after an error. See run_writer.hpp.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "store/run_writer.hpp"
#include "store/store_time.hpp"

namespace weir::store {

namespace {

std::string and_then(const std::string& text, const std::string& more) {
    return text.empty() ? more : text + "; " + more;
}

}  // namespace

/// Finds out what the file system and the kernel take, with a file that goes again.
void RunWriter::set_up_disk() {
    if (config_.direct != Toggle::off) {
        const std::filesystem::path path = directory_.file("direct-write");
        int error_number = 0;
        {
            File file = File::create(path);
            AlignedBytes zeros(File::direct_alignment);
            std::fill(zeros.span().begin(), zeros.span().end(), std::byte{0});
            direct_ = file.set_direct(true);
            if (!direct_) error_number = errno;
            if (direct_) {
                error_number = file.try_write(zeros.span());
                direct_ = error_number == 0 || error_number == ENOSPC;
            }
        }
        std::error_code error;
        std::filesystem::remove(path, error);
        if (!direct_) {
            note_ =
                fmt::format("O_DIRECT is refused ({}): writes go through the page cache", std::strerror(error_number));
            if (config_.direct == Toggle::on)
                throw core::RunError(fmt::format(
                    "{}: O_DIRECT is refused: {}; take direct = \"on\" out of the configuration, or choose another "
                    "file system",
                    path.parent_path().string(), std::strerror(error_number)));
        }
    }
    if (direct_) config_.version = std::max(config_.version, format_version_reduced);
    extends_ = direct_ && config_.preallocate_bytes > 0;
    if (config_.uring != Toggle::on && !(config_.uring == Toggle::automatic && direct_)) return;
    try {
        queue_ = WriteQueue(std::max(config_.queue_depth, 1U), config_.tamper);
    } catch (const core::RunError& error) {
        if (config_.uring == Toggle::on)
            throw core::RunError(
                fmt::format("{}: {}; take uring = \"on\" out of the configuration, or allow the process io_uring",
                            directory_.path().string(), error.what()));
        note_ = and_then(note_, fmt::format("{}: one write after the other", error.what()));
    }
}

nlohmann::json RunWriter::how() const {
    nlohmann::json how = {{"direct", direct_},
                          {"uring", queue_.is_asynchronous()},
                          {"files", config_.files},
                          {"queue_depth", queue_.is_asynchronous() ? config_.queue_depth : 1}};
    if (!note_.empty()) how["note"] = note_;
    return how;
}

std::string RunWriter::how_text() const {
    std::string text = direct_ ? "O_DIRECT" : "";
    if (queue_.is_asynchronous())
        text += fmt::format("{}io_uring, {} at once", text.empty() ? "" : ", ", config_.queue_depth);
    if (config_.files > 1) text += fmt::format("{}{} files", text.empty() ? "" : ", ", config_.files);
    return note_.empty() ? text : and_then(text, note_);
}

/// The start of a segment.
void RunWriter::write_head(Lane& lane, std::span<const std::byte> block) {
    AlignedBytes copy;
    const std::span<const std::byte> bytes = aligned(lane, block, copy);
    extend(lane, bytes.size());
    lane.file.write_at(0, bytes);
    lane.segment.bytes += bytes.size();
}

/// What may be written past the page cache: `bytes` as they are, or a copy that is filled up with padding.
std::span<const std::byte> RunWriter::aligned(Lane& lane, std::span<const std::byte> bytes, AlignedBytes& copy) {
    constexpr std::size_t unit = File::direct_alignment;
    const bool in_place = reinterpret_cast<std::uintptr_t>(bytes.data()) % unit == 0 && bytes.size() % unit == 0;
    if (!lane.file.is_direct() || in_place) return bytes;
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
    if (event_open_) open_event_.bytes += fill;
    stamp(lane, header);
    std::memcpy(rest.data(), &header, sizeof header);
    return copy.span();
}

/// A write that makes its file longer waits for all before it; so the file is made longer ahead of them.
void RunWriter::extend(Lane& lane, std::uint64_t end) {
    if (!extends_ || !lane.file.is_direct()) return;
    while (extends_ && lane.extended_bytes < end) {
        // Without room for that much there may be room for the write; if not, it says so.
        extends_ = lane.file.extend(lane.extended_bytes, config_.preallocate_bytes) == 0;
        if (extends_) lane.extended_bytes += config_.preallocate_bytes;
    }
}

void RunWriter::write(Lane& lane, std::span<const std::byte> bytes, const Mark& whole) {
    AlignedBytes copy;
    const std::span<const std::byte> data = aligned(lane, bytes, copy);
    const std::uint64_t offset = lane.segment.bytes;
    extend(lane, offset + data.size());
    if (!queue_.is_asynchronous()) {
        lane.file.write_at(offset, data);
        lane.segment.bytes += data.size();
        advance(lane, whole);
        return;
    }
    Batch& batch = batches_.emplace_back();
    batch.lane = &lane;
    batch.append = appends_;
    batch.whole = whole;
    batch.copy = std::move(copy);
    lane.segment.bytes += data.size();
    queue_.write(lane.file, offset, data, batch.ticket);
}

/// What lies before `whole` is written.
void RunWriter::advance(Lane& lane, const Mark& whole) noexcept {
    stats_.bytes += whole.segment.bytes - lane.done.segment.bytes;
    stats_.blocks += whole.segment.blocks - lane.done.segment.blocks;
    stats_.events += whole.segment.events - lane.done.segment.events;
    stats_.payload_bytes += whole.segment.payload_bytes - lane.done.segment.payload_bytes;
    lane.done = whole;
}

/// Buffers are let go of in the order in which they came.
void RunWriter::complete() {
    while (!batches_.empty() && !batches_.front().ticket.pending) {
        const Batch& batch = batches_.front();
        if (batch.ticket.error_number != 0)
            throw core::RunError(write_error_text("cannot write", batch.lane->file.path(), batch.ticket.error_number));
        advance(*batch.lane, batch.whole);
        batches_.pop_front();
    }
}

std::size_t RunWriter::held() const noexcept {
    return batches_.empty() ? 0 : static_cast<std::size_t>(appends_ - batches_.front().append);
}

void RunWriter::collect() {
    if (failed_ || !queue_.is_asynchronous()) return;
    try {
        queue_.reap(false);
        complete();
    } catch (const std::exception& error) {
        fail(error.what());
    }
}

void RunWriter::sync_if_due() {
    if (failed_ || settled_ || config_.sync != SyncPolicy::interval || stats_.bytes == stats_.synced_bytes) return;
    if (stats_.bytes - stats_.synced_bytes < config_.sync_bytes &&
        steady_time_ns() - last_sync_ns_ < config_.sync_interval_ns)
        return;
    sync();
}

void RunWriter::sync() {
    if (failed_ || settled_) throw core::RunError(failed_ ? failure_ : "internal error: sync of a closed run");
    Lane* now = nullptr;
    try {
        for (Lane& lane : lanes_) {
            now = &lane;
            if (lane.done.segment.bytes != lane.on_device.bytes) sync_lane(lane);
        }
    } catch (const std::exception& error) {
        fail(error.what(), now);
    }
}

/// All that is written of it, while more may be under way.
void RunWriter::sync_lane(Lane& lane) {
    const Mark mark = lane.done;
    lane.file.sync();
    last_sync_ns_ = steady_time_ns();
    stats_.synced_bytes += mark.segment.bytes - lane.on_device.bytes;
    stats_.synced_events += mark.segment.events - lane.on_device.events;
    lane.on_device = mark.segment;
    lane.synced = mark;
    lane.shortened = false;
    if (settled_) return;
    check_in_place(lane);
    flush_index(lane, index_entries_per_block);
}

/// A file that was removed takes writes and syncs as before, and nobody will ever see them.
void RunWriter::check_in_place(const Lane& lane) {
    if (directory_.directory().is_in_place() && lane.file.is_whole(lane.synced.segment.bytes)) return;
    throw core::RunError(
        fmt::format("{} was removed, moved or shortened while the run was written to it", directory_.path().string()));
}

/// Goes back to `mark`: what lies after it in the segment file is cut off, so that the file ends with a whole event.
/// False if the file could not be shortened: a torn tail or events that are not in the account are there until close()
/// has tried again.
bool RunWriter::cut(Lane& lane, const Mark& mark) noexcept {
    lane.too_long |= lane.segment.bytes != mark.segment.bytes || lane.extended_bytes > mark.segment.bytes || failed_;
    const Segment was = lane.done.segment;
    lane.segment = mark.segment;
    lane.sequence = mark.sequence;
    lane.entries.resize(mark.entries - lane.entries_before);
    lane.whole = mark;
    lane.done = mark;
    stats_.bytes -= was.bytes - mark.segment.bytes;
    stats_.blocks -= was.blocks - mark.segment.blocks;
    stats_.events -= was.events - mark.segment.events;
    stats_.payload_bytes -= was.payload_bytes - mark.segment.payload_bytes;
    if (!lane.too_long) return true;
    // A file that somebody shortened is not made longer: settle() has to see it.
    if (!lane.file.is_whole(mark.segment.bytes) || !lane.file.truncate(mark.segment.bytes)) return false;
    lane.too_long = false;
    lane.shortened = true;
    lane.extended_bytes = 0;
    return true;
}

/// Waits for what is under way and takes note of what was written before the first error of each lane.
void RunWriter::abandon_writes() noexcept {
    try {
        queue_.drain();
    } catch (const std::exception&) {
        queue_ = WriteQueue();  // its end waits for them as well as it can
    }
    std::vector<const Lane*> broken;
    for (const Batch& batch : batches_) {
        if (batch.ticket.pending || batch.ticket.error_number != 0) broken.push_back(batch.lane);
        if (std::ranges::find(broken, batch.lane) == broken.end()) advance(*batch.lane, batch.whole);
    }
    batches_.clear();
}

void RunWriter::fail(const std::string& what, const Lane* sync_failed) {
    abandon_writes();
    failed_ = true;
    failure_ = what;
    event_open_ = false;
    for (Lane& lane : lanes_) static_cast<void>(cut(lane, &lane == sync_failed ? lane.synced : lane.done));
    directory_.release_room();
    throw core::RunError(what);
}

}  // namespace weir::store
