// See run_diff.hpp.
#include "store/run_diff.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "store/json_members.hpp"
#include "wire/reported_stream.hpp"

namespace weir::store {

namespace {

using nlohmann::json;

/// From the manifest, or else from the first segment.
const json& said_by(const RunReader& run, const char* key) {
    const json& closed = at_or_null(run.manifest(), key);
    return closed.is_null() ? at_or_null(at_or_null(run.start(), "start"), key) : closed;
}

DiffRules::Payload payload_rules(const RunReader& run) {
    const auto shape = wire::image_of_streams(at_or_null(said_by(run, "config"), "stream"));
    return {payload_of(run), shape.value_or(wire::ImageShape{})};
}

/// The parts of a run's own words that bear on its events, flat: pointer -> value.
std::map<std::string, json> words_of(const RunReader& run) {
    const json& config = said_by(run, "config");
    json all = json::object();
    for (const char* key : {"stream", "events", "reduce"}) all[key] = at_or_null(config, key);
    all["payload"] = said_by(run, "payload");
    std::map<std::string, json> words;
    const json flat = all.flatten();
    for (const auto& [pointer, value] : flat.items()) words[pointer] = value;
    return words;
}

auto key_of(const IndexEntry& entry) {
    return std::pair(std::uint32_t{entry.epoch}, std::uint64_t{entry.event});
}

}  // namespace

RunDiff::RunDiff(const RunReader& first, const RunReader& second, const Config& config)
    : first_(first), second_(second), config_(config) {
    rules_ = {payload_rules(first), payload_rules(second), config.tolerance, config.times};
    const wire::ImageShape& shape = rules_.second.image;
    if (rules_.first.image.columns != shape.columns || rules_.first.image.bits != shape.bits) rules_.first.image = {};
}

bool RunDiff::has_pixels() const noexcept {
    return rules_.first.info.content == Content::pixels && rules_.second.info.content == Content::pixels;
}

std::vector<std::pair<std::string, Change>> RunDiff::description() const {
    const std::map<std::string, json> first = words_of(first_);
    const std::map<std::string, json> second = words_of(second_);
    std::vector<std::pair<std::string, Change>> changes;
    const auto value_in = [](const std::map<std::string, json>& words, const std::string& pointer) {
        const auto found = words.find(pointer);
        return found == words.end() ? json() : found->second;
    };
    for (const auto& [pointer, value] : first)
        if (const json other = value_in(second, pointer); other != value)
            changes.emplace_back(pointer, Change{"description", value, other});
    for (const auto& [pointer, value] : second)
        if (!first.contains(pointer) && !value.is_null())
            changes.emplace_back(pointer, Change{"description", json(), value});
    return changes;
}

EventDifference RunDiff::compare_pair(const IndexEntry& a, const IndexEntry& b) const {
    EventDifference difference{EventDifference::In::both, a.epoch, a.event, {}, {}};
    const auto read = [&](const RunReader& run, const IndexEntry& entry, json& problem) {
        std::optional<StoredEvent> event;
        try {
            event.emplace(run, entry, config_.bytes_max);
        } catch (const core::RunError& error) {
            problem = error.what();
        }
        return event;
    };
    json first_problem;
    json second_problem;
    const std::optional<StoredEvent> first = read(first_, a, first_problem);
    const std::optional<StoredEvent> second = read(second_, b, second_problem);
    if (first && second) return compare_events(*first, *second, rules_);
    difference.changes.push_back({"unreadable", first_problem, second_problem});
    return difference;
}

RunDiff::Totals RunDiff::compare(const Sink& sink, const Progress& progress) const {
    const auto all = [](const IndexEntry&) { return true; };
    Totals totals;
    std::uint64_t copies = 0;
    const std::vector<IndexEntry> first = first_.entries(all, &totals.copies);
    const std::vector<IndexEntry> second = second_.entries(all, &copies);
    totals.copies += copies;
    auto a = first.begin();
    auto b = second.begin();
    while (a != first.end() || b != second.end()) {
        progress(static_cast<std::uint64_t>((a - first.begin()) + (b - second.begin())), first.size() + second.size());
        EventDifference difference;
        if (b == second.end() || (a != first.end() && key_of(*a) < key_of(*b))) {
            ++totals.only_first;
            difference = {EventDifference::In::first, a->epoch, a->event, {}, {}};
            ++a;
        } else if (a == first.end() || key_of(*b) < key_of(*a)) {
            ++totals.only_second;
            difference = {EventDifference::In::second, b->epoch, b->event, {}, {}};
            ++b;
        } else {
            ++totals.compared;
            difference = compare_pair(*a++, *b++);
            const bool unreadable = !difference.changes.empty() && difference.changes.front().what == "unreadable";
            totals.unreadable += unreadable ? 1 : 0;
            ++(difference.none() ? totals.same : totals.differ);
        }
        if (!difference.none()) sink(difference);
    }
    return totals;
}

}  // namespace weir::store
