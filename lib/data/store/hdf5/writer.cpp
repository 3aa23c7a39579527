// The HDF5 sink. See writer.hpp.
#include "store/hdf5/writer.hpp"

#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "store/hdf5/nexus.hpp"

namespace weir::store::hdf5 {

namespace {

/// What closing the files of a run on a full disk needs: rows that are not written yet (data_file.cpp bounds them) and
/// the library's own blocks, generously.
constexpr std::uint64_t room_for_the_end_bytes = std::uint64_t{4} << 20;
constexpr std::string_view master_part_name = "master.h5.part";

[[noreturn]] void throw_disordered() {
    throw core::RunError("internal error: the HDF5 sink was given blocks that do not follow each other");
}

}  // namespace

Writer::Writer(const Config& config) : config_(config), directory_(config.path, writing_name) {
    try {
        lock_ = directory_.take_locked();
        directory_.set_room_aside(room_for_the_end_bytes);
        nlohmann::json start = nlohmann::json::parse(config_.start_json, nullptr, false);
        if (start.is_discarded()) start = nullptr;
        description_ = describe(start, config_.codec);
        text_ = {config_.name, config_.start_json, iso_time(core::clock_ns(CLOCK_REALTIME)), config_.nexus};
        const Session session;
        write_live_master();
        directory_.sync_parent();
    } catch (const std::exception&) {
        directory_.remove();
        throw;
    }
    last_sync_ns_ = core::clock_ns(CLOCK_MONOTONIC);
}

Writer::~Writer() {
    const Session session;
    if (file_) file_->abandon();
}

std::vector<std::string> Writer::missing_for_nxmx() const {
    if (!has_images()) return {};
    return hdf5::missing_for_nxmx(description_, config_.nexus, config_.modules.value_or(description_.modules));
}

/// Does something with the files; an error ends the run's taking of events.
template <class Action>
void Writer::guarded(Action action) {
    if (failed_ || data_finished_) throw core::RunError(failed_ ? failure_ : "internal error: append to a closed run");
    const Session session;
    try {
        action();
    } catch (const std::exception& error) {
        fail(error.what());
    }
}

void Writer::append(std::span<std::byte> blocks) {
    guarded([&] {
        while (!blocks.empty()) {
            BlockHeader header;
            if (blocks.size() < sizeof header) throw_disordered();
            std::memcpy(&header, blocks.data(), sizeof header);
            const std::uint64_t bytes = sizeof header + padded(header.stored_bytes);
            if (header.magic != block_magic || bytes > blocks.size()) throw_disordered();
            take_block(header, blocks.subspan(sizeof header, header.stored_bytes));
            ++stats_.blocks;
            blocks = blocks.subspan(bytes);
        }
    });
    sync_if_due();
}

void Writer::take_block(const BlockHeader& header, std::span<const std::byte> body) {
    if (header.type == BlockType::padding) return;
    if (header.type == BlockType::event) {
        take_event(header, body);
        return;
    }
    if (!event_open_ || header.event != event_.id || header.epoch != event_.epoch) throw_disordered();
    if (header.type == BlockType::source && sources_left_ > 0)
        take_sources(body);
    else if (header.type == BlockType::payload && sources_left_ == 0)
        take_payload(header, body);
    else
        throw_disordered();
}

void Writer::take_event(const BlockHeader& header, std::span<const std::byte> bytes) {
    EventBody body;
    if (event_open_ || bytes.size() != sizeof body) throw_disordered();
    std::memcpy(&body, bytes.data(), sizeof body);
    event_ = {};
    event_.id = header.event;
    event_.epoch = header.epoch;
    take_event_body(body, event_);
    sources_left_ = body.sources;
    event_open_ = true;
    if (sources_left_ == 0) begin();
}

void Writer::take_sources(std::span<const std::byte> body) {
    while (!body.empty()) {
        if (sources_left_ == 0) throw_disordered();
        SourceInfo source;
        const std::string problem = parse_source(body, source);
        if (!problem.empty())
            throw core::RunError("internal error: the HDF5 sink was given a block in which " + problem);
        event_.sources.push_back(std::move(source));
        --sources_left_;
    }
    if (sources_left_ == 0) begin();
}

void Writer::take_payload(BlockHeader header, std::span<const std::byte> body) {
    header.version = format_version_newest;  // stamped by the event file only, if there is one before this sink
    if (header.raw_bytes > payload_left_) throw_disordered();
    if (image_ && header.raw_bytes > 0 && image_->take_stored(header, body, *file_)) {
        payload_left_ -= header.raw_bytes;
    } else {
        const auto decoded = decoder_.decode(header, body);
        if (!decoded) throw core::RunError("internal error: the HDF5 sink was given a block that cannot be decoded");
        put(*decoded);
    }
    if ((header.flags & BlockHeader::end_of_event) != 0) end();
}

/// Everything of event_ but its payload is known.
void Writer::begin() {
    event_open_ = true;
    if (!layout_) {
        // Not the time of day: a capture that is replayed is older, and nothing ends before it starts.
        text_.start_time = iso_time(event_.first_ns);
        layout_ = layout_of(description_, event_);
        if (layout_->image) image_.emplace(*layout_);
    }
    check_event(*layout_, event_);
    payload_left_ = event_.content_bytes();
    const bool full = file_ && (file_->bytes() >= config_.segment_bytes ||
                                (config_.events_per_file > 0 && file_->events() >= config_.events_per_file));
    if (full) close_file();
    if (!file_) open_file();
    event_stream_offset_ = file_->begin().payload_bytes + file_->stream_bytes();
    if (!image_) return;
    file_->begin_image();
    image_->begin(event_);
}

void Writer::put(std::span<const std::byte> decoded) {
    payload_left_ -= decoded.size();
    if (image_)
        image_->take(decoded);
    else
        file_->put_payload(decoded);
}

void Writer::end() {
    if (payload_left_ != 0) throw_disordered();
    if (image_) image_->end(*file_);
    file_->end_event(event_, event_stream_offset_);
    event_open_ = false;
    payload_bytes_ += event_.payload_bytes;
    last_event_ns_ = std::max(last_event_ns_, event_.last_ns);
    count();
}

void Writer::begin_event(const EventInfo& event) {
    guarded([&] {
        if (event_open_) throw_disordered();
        event_ = event;
        sources_left_ = 0;
        begin();
    });
}

void Writer::put_payload(std::span<const std::byte> decoded) {
    guarded([&] {
        if (!event_open_ || decoded.size() > payload_left_) throw_disordered();
        put(decoded);
    });
}

void Writer::end_event() {
    guarded([&] {
        if (!event_open_) throw_disordered();
        end();
    });
    sync_if_due();
}

void Writer::count() noexcept {
    stats_.bytes = closed_bytes_ + (file_ ? file_->bytes() : 0);
    stats_.events = (closed_files_.empty() ? 0 : closed_files_.back().end.events);
    if (file_) stats_.events = file_->end().events;
    stats_.payload_bytes = payload_bytes_;
}

void Writer::count_synced() noexcept {
    count();
    stats_.synced_bytes = stats_.bytes;
    stats_.synced_events = stats_.events;
    synced_payload_bytes_ = payload_bytes_;
    last_sync_ns_ = core::clock_ns(CLOCK_MONOTONIC);
}

void Writer::open_file() {
    RunPosition begin;
    if (!closed_files_.empty()) begin = closed_files_.back().end;
    const std::filesystem::path path = directory_.file(data_name(closed_files_.size()));
    try {
        file_.emplace(path, *layout_, text_, begin);
    } catch (const std::exception&) {
        std::error_code error;
        std::filesystem::remove(path, error);  // half of a file without events would only puzzle
        throw;
    }
    ++stats_.segments;
    write_live_master();
    directory_.sync();
}

void Writer::close_file() {
    file_->close();
    closed_bytes_ += file_->bytes();
    closed_files_.push_back(
        {file_->path().filename().string(), file_->begin(), file_->end(), file_->whole_stream_bytes()});
    file_.reset();
    count_synced();
}

MasterContent Writer::master_content() const {
    MasterContent content{layout_, text_, closed_files_, false, {}, nlohmann::json::object()};
    if (file_) {
        content.files.push_back(
            {file_->path().filename().string(), file_->begin(), file_->end(), file_->whole_stream_bytes()});
        content.growing = true;
    }
    return content;
}

/// For who looks while the run goes on, and for a run that is ended by force.
void Writer::write_live_master() {
    write_master_file(master_content());
}

/// A reader sees the old one or the new one, never half of one.
void Writer::write_master_file(const MasterContent& content) {
    const std::filesystem::path part = directory_.file(master_part_name);
    std::error_code error;
    std::filesystem::remove(part, error);
    write_master(part, content);
    File written = File::open_to_read(part);
    written.sync();
    std::filesystem::rename(part, directory_.file(master_name), error);
    if (error) throw core::RunError(write_error_text("cannot rename", part, error.value()));
}

void Writer::sync() {
    guarded([&] {
        if (!file_) return;
        file_->flush();
        file_->sync();
        count_synced();
        if (!directory_.directory().is_in_place() ||
            !directory_.directory().has_file(data_name(closed_files_.size()), 0))
            throw core::RunError(
                fmt::format("{} was removed or moved while the run was written to it", directory_.path().string()));
    });
}

void Writer::sync_if_due() {
    if (failed_ || data_finished_ || stats_.events == stats_.synced_events) return;
    if (stats_.bytes - stats_.synced_bytes < config_.sync_bytes &&
        core::clock_ns(CLOCK_MONOTONIC) - last_sync_ns_ < config_.sync_interval_ns)
        return;
    sync();
}

/// Nothing more is taken. What came in whole stays, if the files can be brought into order with the room set aside.
void Writer::fail(const std::string& what) {
    failed_ = true;
    failure_ = what;
    event_open_ = false;
    directory_.release_room();
    try {
        if (file_) {
            file_->drop_event();
            file_->flush();
            file_->sync();
        }
        count_synced();
    } catch (const std::exception&) {
        // What the last flush brought out is there for who opens the file as one that is being written.
        broken_ = true;
        stats_.events = stats_.synced_events;
        stats_.bytes = stats_.synced_bytes;
        stats_.payload_bytes = synced_payload_bytes_;
        file_->abandon();
    }
    throw core::RunError(what);
}

void Writer::finish_data() {
    if (data_finished_) return;
    if (!failed_) {
        if (event_open_ && file_) file_->drop_event();
        sync();
    }
    data_finished_ = true;
    for (const DataSpan& file : closed_files_)
        if (!directory_.directory().has_file(file.name, 1)) {
            broken_ = true;
            stats_.events -= file.end.events - file.begin.events;
            stats_.synced_events = stats_.events;
        }
    if (!broken_ || failed_) return;
    failed_ = true;
    failure_ = fmt::format("files were removed from {} while the run was written to it", directory_.path().string());
    throw core::RunError(failure_);
}

void Writer::close(const nlohmann::json& manifest_extra) {
    if (closed_) return;
    finish_data();
    if (broken_) throw core::RunError(failure_);
    directory_.release_room();
    {
        const Session session;
        if (file_) close_file();
        MasterContent content = master_content();
        content.end_time = iso_time(last_event_ns_ != 0 ? last_event_ns_ : core::clock_ns(CLOCK_REALTIME));
        if (manifest_extra.is_object()) content.closing = manifest_extra;
        write_master_file(content);
    }
    directory_.publish_run(writing_name);
    closed_ = true;
    lock_.close();
    directory_.sync_parent();
}

}  // namespace weir::store::hdf5
