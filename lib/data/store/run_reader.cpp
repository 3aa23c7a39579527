#include "store/run_reader.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "core/allocation_context.hpp"
#include "core/error.hpp"
#include "store/index_reader.hpp"
#include "store/json_members.hpp"
#include "store/manifest.hpp"
#include "store/run_recovery.hpp"

namespace weir::store {

namespace {

/// Of the manifests of runs that are one together: what describes their events.
nlohmann::json description_of(const std::vector<RunContents>& runs) {
    const auto closed = std::ranges::find_if(runs, &RunContents::closed);
    nlohmann::json manifest = nlohmann::json::object();
    for (const char* key : {"config", "payload", "image"})
        if (closed != runs.end() && closed->manifest.contains(key)) manifest[key] = closed->manifest[key];
    return manifest;
}

auto name_of(const IndexEntry& entry) {
    return std::pair(std::uint32_t{entry.epoch}, std::uint64_t{entry.event});
}

}  // namespace

RunReader::RunReader(const std::filesystem::path& path) : runs_{RunContents(path)}, first_segment_{0} {
    path_ = runs_.front().path;
    manifest_ = runs_.front().manifest;
}

RunReader::RunReader(std::filesystem::path folder, const std::vector<const RunReader*>& runs)
    : path_(std::move(folder)) {
    std::uint32_t segments = 0;
    for (const RunReader* reader : runs)
        for (const RunContents& run : reader->runs_) {
            runs_.push_back(run);
            first_segment_.push_back(
                std::exchange(segments, segments + static_cast<std::uint32_t>(run.segments.size())));
        }
    manifest_ = description_of(runs_);
}

bool RunReader::closed() const noexcept {
    return std::ranges::all_of(runs_, &RunContents::closed);
}

bool RunReader::being_written() const noexcept {
    return std::ranges::any_of(runs_, &RunContents::being_written);
}

std::optional<std::uint32_t> RunReader::run() const noexcept {
    const auto number = runs_.front().run;
    return std::ranges::all_of(runs_, [&](const RunContents& run) { return run.run == number; }) ? number
                                                                                                 : std::nullopt;
}

core::TimeNs RunReader::created_ns() const noexcept {
    core::TimeNs first = 0;  // a run whose first block is damaged does not say
    for (const RunContents& run : runs_)
        if (first == 0 || (run.created_ns != 0 && run.created_ns < first)) first = run.created_ns;
    return first;
}

std::optional<std::uint16_t> RunReader::version() const noexcept {
    return std::ranges::max(runs_, {}, &RunContents::version).version;
}

std::size_t RunReader::run_of(std::uint32_t segment) const noexcept {
    return static_cast<std::size_t>(std::ranges::upper_bound(first_segment_, segment) - first_segment_.begin()) - 1;
}

/// The hooks, told of segments as all runs together count them.
ScanHooks RunReader::counted_on(const ScanHooks& hooks, std::size_t run) const {
    ScanHooks told = hooks;
    const std::uint32_t first = first_segment_[run];
    const auto count_on = [first](const auto& hook) {
        return [first, &hook](EventInfo event) {
            event.segment += first;
            hook(event);
        };
    };
    if (first > 0 && hooks.begin) told.begin = count_on(hooks.begin);
    if (first > 0 && hooks.end) told.end = count_on(hooks.end);
    return told;
}

Verification RunReader::scan(const ScanHooks& hooks) const {
    if (runs_.size() == 1) return check_run(runs_.front(), hooks);
    Verification all;
    all.verified = true;
    for (std::size_t run = 0; run < runs_.size(); ++run)
        all.add(check_run(runs_[run], counted_on(hooks, run)), runs_[run].path.lexically_relative(path_).string());
    return all;
}

Verification RunReader::scan_index(const ScanHooks& hooks, std::uint64_t heads_max) const {
    // Without a manifest nothing vouches for the index.
    const auto check = [&](const RunContents& run, const ScanHooks& told, std::uint64_t most) {
        return run.closed ? check_run_description(run, told, most) : check_run(run, told);
    };
    if (runs_.size() == 1) return check(runs_.front(), hooks, heads_max);
    Verification all;
    all.verified = true;
    for (std::size_t run = 0; run < runs_.size(); ++run)
        all.add(check(runs_[run], counted_on(hooks, run), heads_max - std::min(heads_max, all.heads)),
                runs_[run].path.lexically_relative(path_).string());
    return all;
}

std::vector<IndexEntry> RunReader::by_scanning(std::size_t run) const {
    std::vector<IndexEntry> entries;
    ScanHooks hooks;
    hooks.end = [&](const EventInfo& event) { entries.push_back(event.entry()); };
    check_run(runs_[run], counted_on(hooks, run));
    return entries;
}

std::vector<IndexEntry> RunReader::rebuild_index() const {
    std::vector<IndexEntry> entries;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
        const std::vector<IndexEntry> its = by_scanning(run);
        entries.insert(entries.end(), its.begin(), its.end());
    }
    return entries;
}

/// Nothing if there is no index that can be trusted.
std::optional<std::vector<IndexEntry>> RunReader::from_index(std::size_t number, const EntryFilter& wanted) const {
    const RunContents& run = runs_[number];
    if (!run.closed || !run.run_tag) return {};
    try {
        IndexReader index(run.path / index_name, *run.run_tag, run.version);
        std::vector<IndexEntry> matches;
        std::uint64_t entries = 0;
        for (; auto entry = index.next(); ++entries) {
            if (!wanted(*entry)) continue;
            entry->segment += first_segment_[number];
            matches.push_back(*entry);
        }
        if (!index.problem().empty() || number_at(run.manifest, "events") != entries) return {};
        return matches;
    } catch (const core::RunError&) {
        return {};
    }
}

std::vector<IndexEntry> RunReader::entries(const EntryFilter& wanted, std::uint64_t* left_out) const {
    const core::AllocationContext allocating("the index of a run");
    std::vector<IndexEntry> entries;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
        std::optional<std::vector<IndexEntry>> its = from_index(run, wanted);
        if (!its) {
            its = by_scanning(run);
            std::erase_if(*its, [&](const IndexEntry& entry) { return !wanted(entry); });
        }
        entries.insert(entries.end(), its->begin(), its->end());
    }
    std::ranges::stable_sort(entries, {}, name_of);
    const std::uint64_t copies = runs_.size() > 1 ? leave_out_copies(entries) : 0;
    if (left_out != nullptr) *left_out = copies;
    return entries;
}

/// `entries` are in order. Returns how many are gone.
std::uint64_t RunReader::leave_out_copies(std::vector<IndexEntry>& entries) const {
    const auto worth = [this](const IndexEntry& entry) {
        const RunContents& run = runs_[run_of(entry.segment)];
        const bool closed = run.closed && !run.manifest.contains(interrupted_key);
        try {
            const EventInfo event = read(entry, {});
            return std::tuple(true, event.complete, event.content_bytes(), closed);
        } catch (const core::RunError&) {
            return std::tuple(false, false, std::uint64_t{0}, closed);
        }
    };
    auto to = entries.begin();
    for (auto first = entries.begin(); first != entries.end();) {
        const auto next = std::find_if(first + 1, entries.end(),
                                       [&](const IndexEntry& entry) { return name_of(entry) != name_of(*first); });
        if (next - first == 1) {
            *to++ = *first;
        } else {
            std::vector<decltype(worth(*first))> worths;  // each is read once
            std::transform(first, next, std::back_inserter(worths), worth);
            *to++ = first[std::ranges::max_element(worths) - worths.begin()];
        }
        first = next;
    }
    const auto copies = static_cast<std::uint64_t>(entries.end() - to);
    entries.erase(to, entries.end());
    return copies;
}

std::optional<std::vector<IndexEntry>> RunReader::index() const {
    std::vector<IndexEntry> entries;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
        const auto its = from_index(run, [](const IndexEntry&) { return true; });
        if (!its) return {};
        entries.insert(entries.end(), its->begin(), its->end());
    }
    return entries;
}

std::uint64_t RunReader::stored_bytes() const {
    std::uint64_t bytes = 0;
    for (const RunContents& run : runs_)
        for (const std::string& name : run.segments) {
            std::error_code error;
            const std::uint64_t size = std::filesystem::file_size(run.path / name, error);
            if (!error) bytes += size;
        }
    return bytes;
}

std::uint32_t RunReader::segments() const noexcept {
    return first_segment_.back() + static_cast<std::uint32_t>(runs_.back().segments.size());
}

EventInfo RunReader::read(const IndexEntry& entry, const ScanHooks& hooks) const {
    return read_at(entry, hooks, false);
}

EventInfo RunReader::read_head(const IndexEntry& entry) const {
    return read_at(entry, {}, true);
}

EventInfo RunReader::read_at(const IndexEntry& entry, const ScanHooks& caller_hooks, bool head_only) const {
    const core::AllocationContext allocating("the payload of an event");
    const std::size_t number = run_of(entry.segment);
    const RunContents& run = runs_[number];
    const std::uint32_t segment = entry.segment - first_segment_[number];
    if (segment >= run.segments.size() || entry.offset % block_align != 0 || entry.bytes > UINT64_MAX - entry.offset)
        throw core::RunError("the index points to a place that does not exist");
    std::string problem;
    std::optional<EventInfo> event;
    ScanHooks hooks = counted_on(caller_hooks, number);
    hooks.problem = [&](const std::string& text) {
        if (problem.empty()) problem = text;
    };
    (head_only ? hooks.begin : hooks.end) = [&](const EventInfo& info) { event = info; };
    EventScanner scanner(std::move(hooks));
    run.identify(scanner);
    const std::string& name = run.segments[segment];
    const FileSource file(run.path / name);
    const SliceSource source(file, entry.offset + entry.bytes);
    if (head_only) {
        BlockReader reader(source, run.run_tag, BlockReader::window_bytes_heads);
        reader.expect_version(run.version);
        scanner.read_head(reader, segment, entry.offset, name);
    } else {
        scanner.read_event(source, segment, entry.offset, name);
    }
    // What scan() lists can be read: a mistake that costs no event is said by scan().
    if (!event) throw core::RunError(problem);
    if (event->id != entry.event || event->epoch != entry.epoch || (!head_only && event->stored_bytes != entry.bytes))
        throw core::RunError("the index points to another event");
    event->stored_bytes = entry.bytes;
    event->segment = entry.segment;
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
    const core::AllocationContext allocating("the payload of an event");
    PayloadPlacer placer(event, sink);
    ScanHooks hooks;
    hooks.payload = [&](std::span<const std::byte> bytes) { placer.take(bytes); };
    static_cast<void>(read(event.entry(), hooks));
}

std::vector<std::byte> RunReader::payload(const EventInfo& event, std::uint32_t source) const {
    const core::AllocationContext allocating("the payload of an event");
    std::vector<std::byte> bytes;
    read_payload(event, [&](std::size_t index, std::uint64_t, std::span<const std::byte> piece) {
        if (event.sources[index].id == source) bytes.insert(bytes.end(), piece.begin(), piece.end());
    });
    return bytes;
}

}  // namespace weir::store
