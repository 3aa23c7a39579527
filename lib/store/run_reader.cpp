// Opens, verifies and reads runs. See run_reader.hpp.
#include "store/run_reader.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/doing.hpp"
#include "core/error.hpp"
#include "store/json_members.hpp"
#include "store/run_directory.hpp"
#include "store/run_path.hpp"

namespace weir::store {

namespace {

using nlohmann::json;

std::string read_text(const std::filesystem::path& path, std::size_t bytes_max) {
    const File file = File::open_to_read(path);
    const std::uint64_t size = file.size();
    if (size > bytes_max) throw core::RunError(fmt::format("{} is too large", path.string()));
    std::string text(size, '\0');
    text.resize(file.read_at(0, std::as_writable_bytes(std::span(text))));
    return text;
}

/// Says where the run that was asked for may be instead.
[[noreturn]] void throw_not_a_run(const std::filesystem::path& path) {
    const std::filesystem::path hidden = hidden_path(path);
    std::error_code error;
    if (std::filesystem::exists(path / "master.h5", error))
        throw core::RunError(fmt::format("{} is a run as HDF5 files: open {} with h5py or h5dump", path.string(),
                                         (path / "master.h5").string()));
    if (std::filesystem::is_directory(path, error))
        throw core::RunError(fmt::format("{} is not a run: it has no segment {}", path.string(), segment_name(0)));
    if (std::filesystem::exists(path, error))
        throw core::RunError(fmt::format("{} is not a run: a run is a directory", path.string()));
    if (std::filesystem::is_directory(hidden, error))
        throw core::RunError(
            fmt::format("{} does not exist; an unfinished run to it is in {}", path.string(), hidden.string()));
    throw core::RunError(fmt::format("{} does not exist", path.string()));
}

}  // namespace

void PayloadPlacer::take(std::span<const std::byte> payload) {
    while (!payload.empty() && source_ < event_.sources.size()) {
        const SourceInfo& source = event_.sources[source_];
        if (taken_ == event_.content_bytes(source)) {
            ++source_;
            gap_ = offset_ = taken_ = 0;
            continue;
        }
        const bool gaps = !event_.reduced();
        while (gaps && gap_ < source.missing.size() && source.missing[gap_].offset == offset_)
            offset_ += source.missing[gap_++].bytes;
        std::uint64_t count = std::min<std::uint64_t>(payload.size(), event_.content_bytes(source) - taken_);
        if (gaps && gap_ < source.missing.size()) count = std::min(count, source.missing[gap_].offset - offset_);
        sink_(source_, offset_, payload.first(count));
        offset_ += count;
        taken_ += count;
        payload = payload.subspan(count);
    }
}

IndexReader::IndexReader(const std::filesystem::path& path, std::uint64_t run_tag, std::optional<std::uint16_t> version)
    : file_(path), reader_(file_, run_tag) {
    reader_.expect_version(version);
}

std::optional<IndexEntry> IndexReader::next() {
    while (problem_.empty() && at_ == block_.body.size()) {
        const std::uint64_t sequence = reader_.blocks();
        const BlockReader::Result result = reader_.next(block_);
        if (result == BlockReader::Result::end) return {};
        at_ = 0;
        if (result == BlockReader::Result::damaged) {
            problem_ = reader_.problem();
        } else if (block_.header.type != BlockType::index || block_.header.sequence != sequence ||
                   block_.body.empty() || block_.body.size() % sizeof(IndexEntry) != 0 || block_.header.flags != 0 ||
                   block_.header.element_bytes != 0 || block_.header.raw_bytes != block_.header.stored_bytes) {
            problem_ = "its blocks contradict each other";
        }
    }
    if (!problem_.empty()) return {};
    IndexEntry entry;
    std::memcpy(&entry, block_.body.data() + at_, sizeof entry);
    at_ += sizeof entry;
    return entry;
}

RunReader::RunReader(const std::filesystem::path& path) : path_(path) {
    std::error_code error;
    if (!path_.has_filename()) path_ = path_.parent_path();
    if (!std::filesystem::is_directory(path_, error)) throw_not_a_run(path);
    list_segments();
    read_manifest();
    if (segments_.empty()) throw_not_a_run(path_);
    read_first_head();
}

/// Segment files in the directory, in order of their number, as far as the numbers are consecutive.
void RunReader::list_segments() {
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (name.starts_with("events-") && name.ends_with(".weir")) names.push_back(name);
    }
    if (error) throw core::RunError(system_error_text("cannot list", path_, error.value()));
    // Numbers have at least six digits, so a longer name has a larger number.
    std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    });
    segments_ = std::move(names);
}

void RunReader::read_manifest() {
    const std::filesystem::path path = path_ / manifest_name;
    std::error_code error;
    if (!std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
        being_written_ = is_being_written(path_);
        manifest_problem_ = being_written_
                                ? "the run is still being written: it has no manifest yet"
                                : "the run was not closed: it has no manifest, and no program of this machine "
                                  "writes to it any more; it was ended by force";
        return;
    }
    try {
        manifest_ = parse_manifest(read_text(path, manifest_bytes_max));
    } catch (const core::RunError& problem) {
        manifest_problem_ = problem.what();
        return;
    }
    closed_ = true;
    version_ = static_cast<std::uint16_t>(number_at(manifest_, "version").value_or(format_version));
    const std::string tag = text_at(manifest_, "tag");
    std::uint64_t value = 0;
    if (std::from_chars(tag.data(), tag.data() + tag.size(), value, 16).ec == std::errc{}) run_tag_ = value;

    // The manifest says which segments there are; what else lies here is not part of the run.
    std::vector<std::string> listed;
    const json& segments = at_or_null(manifest_, "segments");
    if (segments.is_array())
        for (std::size_t i = 0; i < segments.size(); ++i) listed.push_back(segment_name(static_cast<std::uint32_t>(i)));
    for (const std::string& name : segments_)
        if (std::find(listed.begin(), listed.end(), name) == listed.end()) strangers_.push_back(name);
    segments_ = std::move(listed);
}

void RunReader::read_first_head() {
    try {
        const FileSource file(path_ / segments_.front());
        BlockReader reader(file, run_tag_, BlockReader::window_bytes_heads);
        reader.expect_version(version_);
        Block block;
        SegmentBody body;
        if (reader.next(block) != BlockReader::Result::block || block.header.type != BlockType::segment ||
            block.body.size() < sizeof body)
            return;
        run_tag_ = reader.run_tag();
        version_ = reader.version();
        std::memcpy(&body, block.body.data(), sizeof body);
        if (body.run != SegmentBody::no_run) run_ = body.run;
        created_ns_ = body.created_ns;
        const std::span<const std::byte> text = block.body.subspan(sizeof body);
        const char* const chars = reinterpret_cast<const char*>(text.data());
        start_ = parse_json({chars, text.size()});
    } catch (const core::RunError&) {
        // scan() says what is wrong with the file
    }
}

std::vector<IndexEntry> RunReader::rebuild_index() const {
    std::vector<IndexEntry> entries;
    ScanHooks hooks;
    hooks.end = [&](const EventInfo& event) { entries.push_back(event.entry()); };
    scan(hooks);
    return entries;
}

/// Nothing if there is no index that can be trusted.
std::optional<std::vector<IndexEntry>> RunReader::from_index(const EntryFilter& wanted) const {
    if (!closed_ || !run_tag_) return {};
    try {
        IndexReader index(path_ / index_name, *run_tag_, version_);
        std::vector<IndexEntry> matches;
        std::uint64_t entries = 0;
        for (; const auto entry = index.next(); ++entries)
            if (wanted(*entry)) matches.push_back(*entry);
        if (!index.problem().empty() || number_at(manifest_, "events") != entries) return {};
        return matches;
    } catch (const core::RunError&) {
        return {};
    }
}

std::vector<IndexEntry> RunReader::entries(const EntryFilter& wanted) const {
    const core::Doing doing("the index of a run");
    std::optional<std::vector<IndexEntry>> entries = from_index(wanted);
    if (!entries) {
        entries = rebuild_index();
        std::erase_if(*entries, [&](const IndexEntry& entry) { return !wanted(entry); });
    }
    std::ranges::stable_sort(
        *entries, {}, [](const IndexEntry& entry) { return std::pair(entry.epoch, std::uint64_t{entry.event}); });
    return std::move(*entries);
}

std::optional<std::vector<IndexEntry>> RunReader::index() const {
    return from_index([](const IndexEntry&) { return true; });
}

std::uint64_t RunReader::stored_bytes() const {
    std::uint64_t bytes = 0;
    for (const std::string& name : segments_) {
        std::error_code error;
        const std::uint64_t size = std::filesystem::file_size(path_ / name, error);
        if (!error) bytes += size;
    }
    return bytes;
}

void RunReader::identify(EventScanner& scanner) const {
    if (run_tag_) scanner.set_run_tag(*run_tag_);
    scanner.set_version(version_);
}

EventInfo RunReader::read(const IndexEntry& entry, const ScanHooks& hooks) const {
    return read_at(entry, hooks, false);
}

EventInfo RunReader::read_head(const IndexEntry& entry) const {
    return read_at(entry, {}, true);
}

EventInfo RunReader::read_at(const IndexEntry& entry, const ScanHooks& caller_hooks, bool head_only) const {
    const core::Doing doing("the payload of an event");
    if (entry.segment >= segments_.size() || entry.offset % block_align != 0 || entry.bytes > UINT64_MAX - entry.offset)
        throw core::RunError("the index points to a place that does not exist");
    std::string problem;
    std::optional<EventInfo> event;
    ScanHooks hooks = caller_hooks;
    hooks.problem = [&](const std::string& text) {
        if (problem.empty()) problem = text;
    };
    (head_only ? hooks.begin : hooks.end) = [&](const EventInfo& info) { event = info; };
    EventScanner scanner(std::move(hooks));
    identify(scanner);
    const std::string& name = segments_[entry.segment];
    const FileSource file(path_ / name);
    const SliceSource source(file, entry.offset + entry.bytes);
    if (head_only) {
        BlockReader reader(source, run_tag_, BlockReader::window_bytes_heads);
        reader.expect_version(version_);
        scanner.read_head(reader, entry.segment, entry.offset, name);
    } else {
        scanner.read_event(source, entry.segment, entry.offset, name);
    }
    // What scan() lists can be read: a mistake that costs no event is said by scan().
    if (!event) throw core::RunError(problem);
    if (event->id != entry.event || event->epoch != entry.epoch || (!head_only && event->stored_bytes != entry.bytes))
        throw core::RunError("the index points to another event");
    event->stored_bytes = entry.bytes;
    return *event;
}

std::optional<EventInfo> RunReader::find(std::optional<std::uint32_t> epoch, std::uint64_t id) const {
    const std::vector<IndexEntry> matches =
        entries([&](const IndexEntry& entry) { return entry.event == id && (!epoch || entry.epoch == *epoch); });
    if (matches.empty()) return {};
    if (matches.size() > 1) {
        std::string epochs;
        for (const IndexEntry& match : matches) epochs += fmt::format("{}{}", epochs.empty() ? "" : ", ", match.epoch);
        throw core::RunError(
            fmt::format("event {} is there more than once, in epochs {}: say EPOCH:{}", id, epochs, id));
    }
    return read(matches.front(), {});
}

void RunReader::read_payload(const EventInfo& event, const PayloadPlacer::Sink& sink) const {
    const core::Doing doing("the payload of an event");
    PayloadPlacer placer(event, sink);
    ScanHooks hooks;
    hooks.payload = [&](std::span<const std::byte> bytes) { placer.take(bytes); };
    static_cast<void>(read(event.entry(), hooks));
}

std::vector<std::byte> RunReader::payload(const EventInfo& event, std::uint32_t source) const {
    const core::Doing doing("the payload of an event");
    std::vector<std::byte> bytes;
    read_payload(event, [&](std::size_t index, std::uint64_t, std::span<const std::byte> piece) {
        if (event.sources[index].id == source) bytes.insert(bytes.end(), piece.begin(), piece.end());
    });
    return bytes;
}

}  // namespace weir::store
