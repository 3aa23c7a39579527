#include "event_table.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <utility>

#include "terminal.hpp"

namespace weir::app {

namespace {

using store::EventInfo;
using store::SourceInfo;
using store::SourceState;

constexpr std::uint64_t rows_max = 20;

/// "source 1: 2 gaps, 8192 B missing; source 3: nothing came"
std::string missing_text(const EventInfo& event) {
    constexpr int listed_max = 3;
    std::string text;
    int listed = 0;
    for (const SourceInfo& source : event.sources) {
        std::uint64_t missing = 0;
        for (const store::MissingRange& range : source.missing) missing += range.bytes;
        std::string what;
        if (source.state == SourceState::partial)
            what = fmt::format("{}, {} missing", count_text(source.missing.size(), "gap"), bytes_text(missing));
        if (source.state == SourceState::size_unknown) what = "size never learnt";
        if (source.state == SourceState::absent || source.state == SourceState::absent_unknown) what = "nothing came";
        if (what.empty()) continue;
        if (++listed > listed_max) return text + ", …";
        text += fmt::format("{}source {}: {}", listed > 1 ? "; " : "", source.id, what);
    }
    return text;
}

/// What reducers made of the event and found in it, in words.
std::string reduced_text(const EventInfo& event, const std::optional<MultiEventSummary>& packet) {
    if (!event.reduced()) return {};
    std::string text = fmt::format("reduced to {}", bytes_text(event.content_bytes()));
    if (event.content == store::Content::mep) return text + (packet ? ", " + multi_event_text(*packet) : "");
    text += fmt::format(", {} above, {}", count_text(event.pixels_above, "pixel"), count_text(event.peaks, "peak"));
    if (event.veto != store::Veto::none)
        text += fmt::format(", veto {}", store::veto_names[static_cast<std::size_t>(event.veto)]);
    return text;
}

/// A row of the table, and what does not fit into 80 columns in lines below it.
std::string row_text(const EventInfo& event, const std::optional<MultiEventSummary>& packet) {
    constexpr std::size_t below = 7;
    const std::size_t columns = columns_of(STDOUT_FILENO);
    const std::string state = event.complete ? "complete" : cause_text(event);
    std::string row = fmt::format("{:>5}  {:>12}  {:<10}  {:>10}  {}", event.epoch, event.id, state,
                                  bytes_text(event.payload_bytes), time_text(event.first_ns));
    std::string more = reduced_text(event, packet);
    const std::string missing = missing_text(event);
    if (!missing.empty()) more += (more.empty() ? "" : "; ") + missing;
    if (!more.empty() && row.size() + 2 + more.size() <= columns) return row + "  " + more + "\n";
    row = wrapped(row + "\n", columns, below);
    if (more.empty()) return row;
    return row + wrapped(std::string(below, ' ') + more + "\n", columns, 0);
}

}  // namespace

// Only complete events can be left out unseen. Where only a few are read at all, they are the first of the file, and
// only they are put in order.
EventTable::EventTable(const store::RunReader& run, const TableOptions& options, Progress& progress)
    : options_(options),
      progress_(progress),
      order_(run, !options.quick || options.all || options.incomplete,
             [this](const std::string& row, bool complete) { say(row, complete); }) {
    std::cout << wrapped(
        fmt::format("{:>5}  {:>12}  {:<10}  {:>10}  {}\n", "epoch", "event", "state", "received", "first packet (UTC)"),
        columns_of(STDOUT_FILENO), 2);
}

void EventTable::say(const std::string& row, bool complete) {
    if (++rows_ <= rows_max || options_.all) {
        progress_.clear();
        std::cout << row;
    } else {
        incomplete_hidden_ += complete ? 0 : 1;
    }
}

store::ScanHooks EventTable::hooks(std::function<void(const EventInfo&)> also) {
    store::ScanHooks hooks;
    hooks.begin = [this](const EventInfo& event) { packets_.begin(event); };
    hooks.payload = [this](std::span<const std::byte> piece) { packets_.payload(piece); };
    hooks.end = [this, also = std::move(also)](const EventInfo& event) {
        also(event);
        const std::optional<MultiEventSummary> packet = packets_.end(event);
        order_.put(event, options_.incomplete && event.complete ? std::string() : row_text(event, packet));
    };
    return hooks;
}

std::uint64_t EventTable::heads_max() const noexcept {
    return options_.all || options_.incomplete ? std::numeric_limits<std::uint64_t>::max() : rows_max;
}

void EventTable::finish(store::Verification& result) {
    order_.finish();
    packets_.add_problems(result);
    progress_.clear();
    const std::uint64_t listable = options_.incomplete ? rows_ : std::max(rows_, result.events);
    if (listable <= rows_max || options_.all) return;
    const bool hides_incomplete = incomplete_hidden_ > 0 && !options_.incomplete;
    std::cout << wrapped(fmt::format("  … and {} more{} (--all lists them{})\n", listable - rows_max,
                                     hides_incomplete ? fmt::format(", {} of them incomplete", incomplete_hidden_) : "",
                                     hides_incomplete ? ", --incomplete only those" : ""),
                         columns_of(STDOUT_FILENO), 2);
}

}  // namespace weir::app
