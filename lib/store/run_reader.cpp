// Opens, verifies and reads runs. See run_reader.hpp.
#include "store/run_reader.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/error.hpp"
#include "store/run_path.hpp"

namespace weir::store {

namespace {

using nlohmann::json;

constexpr std::size_t problems_max = 100;

/// A member of a JSON object that must be a whole number ≥ 0; nothing if it is not.
std::optional<std::uint64_t> number_at(const json& object, const char* key) {
    if (!object.is_object()) return {};
    const auto member = object.find(key);
    if (member == object.end() || !member->is_number_unsigned()) return {};
    return member->get<std::uint64_t>();
}

std::string text_at(const json& object, const char* key) {
    if (!object.is_object()) return {};
    const auto member = object.find(key);
    return member != object.end() && member->is_string() ? member->get<std::string>() : std::string{};
}

const json& at_or_null(const json& object, const char* key) {
    static const json null;
    if (!object.is_object()) return null;
    const auto member = object.find(key);
    return member == object.end() ? null : *member;
}

std::string read_text(const std::filesystem::path& path, std::size_t bytes_max) {
    const File file = File::open_to_read(path);
    const std::uint64_t size = file.size();
    if (size > bytes_max) throw core::RunError(fmt::format("{} is too large", path.string()));
    std::string text(size, '\0');
    text.resize(file.read_at(0, std::as_writable_bytes(std::span(text))));
    return text;
}

bool same(const IndexEntry& a, const IndexEntry& b) {
    return a.event == b.event && a.epoch == b.epoch && a.segment == b.segment && a.offset == b.offset &&
           a.bytes == b.bytes;
}

IndexEntry entry_of(const EventInfo& event) {
    return {event.id, event.epoch, event.segment, event.offset, event.stored_bytes};
}

/// Says where the run that was asked for may be instead.
[[noreturn]] void throw_not_a_run(const std::filesystem::path& path) {
    const std::filesystem::path hidden = hidden_path(path);
    std::error_code error;
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
        if (taken_ == source.received_bytes) {
            ++source_;
            gap_ = offset_ = taken_ = 0;
            continue;
        }
        while (gap_ < source.missing.size() && source.missing[gap_].offset == offset_)
            offset_ += source.missing[gap_++].bytes;
        std::uint64_t count = std::min<std::uint64_t>(payload.size(), source.received_bytes - taken_);
        if (gap_ < source.missing.size()) count = std::min(count, source.missing[gap_].offset - offset_);
        sink_(source_, offset_, payload.first(count));
        offset_ += count;
        taken_ += count;
        payload = payload.subspan(count);
    }
}

IndexReader::IndexReader(const std::filesystem::path& path, std::uint64_t run_tag)
    : file_(path), reader_(file_, run_tag) {}

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
                   block_.header.raw_bytes != block_.header.stored_bytes) {
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
        manifest_problem_ =
            "the run was not closed: it has no manifest; it is still going on, or it was ended by force";
        return;
    }
    try {
        manifest_ = parse_manifest(read_text(path, manifest_bytes_max));
    } catch (const core::RunError& problem) {
        manifest_problem_ = problem.what();
        return;
    }
    closed_ = true;
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
        BlockReader reader(file, run_tag_);
        Block block;
        SegmentBody body;
        if (reader.next(block) != BlockReader::Result::block || block.header.type != BlockType::segment ||
            block.body.size() < sizeof body)
            return;
        run_tag_ = reader.run_tag();
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

/// One reading of everything: the caller's hooks, the index beside the events, the totals, the problems.
class RunReader::Check {
public:
    Check(const RunReader& run, const ScanHooks& hooks) : run_(run), hooks_(hooks) {}

    Verification finish() {
        if (!run_.manifest_problem_.empty()) problem(run_.manifest_problem_);
        open_index();
        read_segments();
        for (const std::string& name : run_.strangers_) problem(fmt::format("{} is not part of the run", name));
        if (run_.closed_) {
            check_index_end();
            check_manifest();
        }
        result_.verified = result_.problem_count == 0;
        return std::move(result_);
    }

private:
    void problem(const std::string& text) {
        ++result_.problem_count;
        if (result_.problems.size() < problems_max) result_.problems.push_back(text);
        if (hooks_.problem) hooks_.problem(text);
    }

    void open_index() {
        if (!run_.closed_ || !run_.run_tag_) return;  // an unfinished run's index ends anywhere; it can be made again
        try {
            index_ = std::make_unique<IndexReader>(run_.path_ / index_name, *run_.run_tag_);
        } catch (const core::RunError& error) {
            problem(error.what());
        }
    }

    void read_segments() {
        ScanHooks hooks = hooks_;
        hooks.end = [this](const EventInfo& event) { end_of_event(event); };
        hooks.problem = [this](const std::string& text) { problem(text); };
        EventScanner scanner(std::move(hooks));
        if (run_.run_tag_) scanner.set_run_tag(*run_.run_tag_);
        scanner.expect_sequence(0);
        for (std::uint32_t i = 0; i < run_.segments_.size(); ++i) {
            const std::string& name = run_.segments_[i];
            if (name != segment_name(i)) problem(fmt::format("{} should be here, not {}", segment_name(i), name));
            try {
                const FileSource file(run_.path_ / name);
                const EventScanner::SegmentResult segment = scanner.scan(file, i, name);
                result_.stored_bytes += segment.bytes;
                ++result_.segments;
                check_segment(i, segment);
            } catch (const core::RunError& error) {
                problem(error.what());
            }
        }
    }

    void end_of_event(const EventInfo& event) {
        ++result_.events;
        result_.complete += event.complete ? 1 : 0;
        result_.payload_bytes += event.payload_bytes;
        if (index_ != nullptr && !index_differs_) {
            const std::optional<IndexEntry> entry = index_->next();
            index_differs_ = !entry || !same(*entry, entry_of(event));
        }
        if (hooks_.end) hooks_.end(event);
    }

    void check_segment(std::uint32_t number, const EventScanner::SegmentResult& segment) {
        const std::string& name = run_.segments_[number];
        if (!segment.head) problem(fmt::format("{} has no first block", name));
        if (segment.head && segment.head->run != run_.run_.value_or(SegmentBody::no_run))
            problem(fmt::format("{} belongs to another run number", name));
        if (!run_.closed_) return;
        const json& listed = run_.manifest_["segments"][number];
        const bool agrees = text_at(listed, "file") == name && number_at(listed, "bytes") == segment.bytes &&
                            number_at(listed, "blocks") == segment.blocks &&
                            number_at(listed, "events") == segment.events &&
                            text_at(listed, "headers_crc32c") == fmt::format("{:08x}", segment.headers_crc);
        if (!agrees) problem(fmt::format("{} is not as the manifest describes it", name));
    }

    void check_index_end() {
        if (index_ == nullptr) return;
        const bool more = !index_differs_ && index_->next().has_value();
        if (!index_->problem().empty()) {
            problem(fmt::format("{} {}; the events can be read without it", index_name, index_->problem()));
            return;
        }
        if (index_differs_ || more) {
            problem(fmt::format("{} does not agree with the segments", index_name));
            return;
        }
        const json& listed = at_or_null(run_.manifest_, "index");
        if (text_at(listed, "file") != index_name || number_at(listed, "bytes") != index_->bytes() ||
            number_at(listed, "blocks") != index_->blocks() ||
            text_at(listed, "headers_crc32c") != fmt::format("{:08x}", index_->headers_crc()))
            problem(fmt::format("{} is not as the manifest describes it", index_name));
    }

    void check_manifest() {
        if (number_at(run_.manifest_, "events") != result_.events)
            problem(fmt::format("the manifest says {} events, {} are there",
                                at_or_null(run_.manifest_, "events").dump(), result_.events));
        if (number_at(run_.manifest_, "payload_bytes") != result_.payload_bytes)
            problem("the manifest says another number of payload bytes");
        const json& run = at_or_null(run_.manifest_, "run");
        if (run_.run_ ? run != *run_.run_ : !run.is_null()) problem("the manifest says another run number");
        const json& written = at_or_null(at_or_null(at_or_null(run_.manifest_, "ledger"), "events"), "written");
        if (written.is_number() && written != result_.events)
            problem(fmt::format("the ledger says that {} events were written, {} are there", written.dump(),
                                result_.events));
    }

    const RunReader& run_;
    const ScanHooks& hooks_;
    Verification result_;
    std::unique_ptr<IndexReader> index_;
    bool index_differs_ = false;
};

Verification RunReader::scan(const ScanHooks& hooks) const {
    return Check(*this, hooks).finish();
}

std::vector<IndexEntry> RunReader::rebuild_index() const {
    std::vector<IndexEntry> entries;
    ScanHooks hooks;
    hooks.end = [&](const EventInfo& event) { entries.push_back(entry_of(event)); };
    scan(hooks);
    return entries;
}

/// Nothing if there is no index that can be trusted.
std::optional<std::vector<IndexEntry>> RunReader::matches_in_index(std::optional<std::uint32_t> epoch,
                                                                   std::uint64_t id) const {
    if (!closed_ || !run_tag_) return {};
    try {
        IndexReader index(path_ / index_name, *run_tag_);
        std::vector<IndexEntry> matches;
        std::uint64_t entries = 0;
        for (; const auto entry = index.next(); ++entries)
            if (entry->event == id && (!epoch || entry->epoch == *epoch)) matches.push_back(*entry);
        if (!index.problem().empty() || number_at(manifest_, "events") != entries) return {};
        return matches;
    } catch (const core::RunError&) {
        return {};
    }
}

EventInfo RunReader::read_event(const IndexEntry& entry, const ScanHooks& caller_hooks) const {
    if (entry.segment >= segments_.size() || entry.offset % block_align != 0)
        throw core::RunError("the index points to a place that does not exist");
    std::string problem;
    std::optional<EventInfo> event;
    ScanHooks hooks = caller_hooks;
    hooks.problem = [&](const std::string& text) {
        if (problem.empty()) problem = text;
    };
    hooks.end = [&](const EventInfo& info) { event = info; };
    EventScanner scanner(std::move(hooks));
    if (run_tag_) scanner.set_run_tag(*run_tag_);
    const FileSource file(path_ / segments_[entry.segment]);
    scanner.read_event(file, entry.segment, entry.offset, segments_[entry.segment]);
    if (!problem.empty() || !event) throw core::RunError(problem);
    if (event->id != entry.event || event->epoch != entry.epoch)
        throw core::RunError("the index points to another event");
    return *event;
}

std::optional<EventInfo> RunReader::find(std::optional<std::uint32_t> epoch, std::uint64_t id) const {
    std::optional<std::vector<IndexEntry>> matches = matches_in_index(epoch, id);
    if (!matches) {
        matches = rebuild_index();
        std::erase_if(*matches, [&](const IndexEntry& e) { return e.event != id || (epoch && e.epoch != *epoch); });
    }
    if (matches->empty()) return {};
    if (matches->size() > 1) {
        std::string epochs;
        for (const IndexEntry& match : *matches) epochs += fmt::format("{}{}", epochs.empty() ? "" : ", ", match.epoch);
        throw core::RunError(
            fmt::format("event {} is there more than once, in epochs {}: say EPOCH:{}", id, epochs, id));
    }
    return read_event(matches->front(), {});
}

void RunReader::read_payload(const EventInfo& event, const PayloadPlacer::Sink& sink) const {
    PayloadPlacer placer(event, sink);
    ScanHooks hooks;
    hooks.payload = [&](std::span<const std::byte> bytes) { placer.take(bytes); };
    static_cast<void>(read_event(entry_of(event), hooks));
}

std::vector<std::byte> RunReader::payload(const EventInfo& event, std::uint32_t source) const {
    std::vector<std::byte> bytes;
    read_payload(event, [&](std::size_t index, std::uint64_t, std::span<const std::byte> piece) {
        if (event.sources[index].id == source) bytes.insert(bytes.end(), piece.begin(), piece.end());
    });
    return bytes;
}

}  // namespace weir::store
