#include "store/run_reader.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/doing.hpp"
#include "core/error.hpp"
#include "store/index_reader.hpp"
#include "store/json_members.hpp"
#include "store/manifest.hpp"

namespace weir::store {

Verification RunReader::scan(const ScanHooks& hooks) const {
    return check_run(run_, hooks);
}

Verification RunReader::scan_index(const ScanHooks& hooks, std::uint64_t heads_max) const {
    // Without a manifest nothing vouches for the index.
    return run_.closed ? check_run_description(run_, hooks, heads_max) : check_run(run_, hooks);
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
    if (!run_.closed || !run_.run_tag) return {};
    try {
        IndexReader index(run_.path / index_name, *run_.run_tag, run_.version);
        std::vector<IndexEntry> matches;
        std::uint64_t entries = 0;
        for (; const auto entry = index.next(); ++entries)
            if (wanted(*entry)) matches.push_back(*entry);
        if (!index.problem().empty() || number_at(run_.manifest, "events") != entries) return {};
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
    for (const std::string& name : run_.segments) {
        std::error_code error;
        const std::uint64_t size = std::filesystem::file_size(run_.path / name, error);
        if (!error) bytes += size;
    }
    return bytes;
}

EventInfo RunReader::read(const IndexEntry& entry, const ScanHooks& hooks) const {
    return read_at(entry, hooks, false);
}

EventInfo RunReader::read_head(const IndexEntry& entry) const {
    return read_at(entry, {}, true);
}

EventInfo RunReader::read_at(const IndexEntry& entry, const ScanHooks& caller_hooks, bool head_only) const {
    const core::Doing doing("the payload of an event");
    if (entry.segment >= run_.segments.size() || entry.offset % block_align != 0 ||
        entry.bytes > UINT64_MAX - entry.offset)
        throw core::RunError("the index points to a place that does not exist");
    std::string problem;
    std::optional<EventInfo> event;
    ScanHooks hooks = caller_hooks;
    hooks.problem = [&](const std::string& text) {
        if (problem.empty()) problem = text;
    };
    (head_only ? hooks.begin : hooks.end) = [&](const EventInfo& info) { event = info; };
    EventScanner scanner(std::move(hooks));
    run_.identify(scanner);
    const std::string& name = run_.segments[entry.segment];
    const FileSource file(run_.path / name);
    const SliceSource source(file, entry.offset + entry.bytes);
    if (head_only) {
        BlockReader reader(source, run_.run_tag, BlockReader::window_bytes_heads);
        reader.expect_version(run_.version);
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
