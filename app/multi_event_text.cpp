// See multi_event_text.hpp.
#include "multi_event_text.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "reduce/mfp/block.hpp"
#include "run_text.hpp"

namespace weir::app {

using nlohmann::json;
using reduce::MepView;

namespace {

constexpr std::size_t problems_max = 100;
constexpr std::size_t sources_shown_max = 20;

MultiEventSummary summary_of(const MepView& view) {
    MultiEventSummary packet{view.order(), view.first_event(), view.events(), {}};
    for (std::size_t i = 0; i < view.sources().size(); ++i) {
        MultiEventSource& source = packet.sources.emplace_back();
        source.name = view.sources()[i];
        for (std::uint32_t event = 0; event < view.events(); ++event) source.add(view.fragment(event, i));
    }
    return packet;
}

/// "1500 fragments, 120.0 KiB, 82 B each, the largest 301 B, 3 missing"
std::string fragments_text(const MultiEventSource& source) {
    const std::uint64_t arrived = source.fragments - source.missing;
    std::string text = fmt::format("{}, {}", count_text(source.fragments, "fragment"), bytes_text(source.bytes));
    if (arrived > 0)
        text +=
            fmt::format(", {} each, the largest {}", bytes_text(source.bytes / arrived), bytes_text(source.largest));
    return source.missing > 0 ? fmt::format("{}; {} missing", text, source.missing) : text;
}

std::string types_text(const MultiEventSource& source) {
    constexpr std::size_t types_shown_max = 8;
    if (source.types.size() > types_shown_max) return fmt::format("; {} types", source.types.size());
    std::string text;
    for (const std::uint8_t type : source.types) text += fmt::format("{}{}", text.empty() ? "" : ", ", type);
    return text.empty() ? "" : fmt::format("; type{} {}", source.types.size() == 1 ? "" : "s", text);
}

}  // namespace

void MultiEventSource::add(const reduce::MepFragment& fragment) {
    ++fragments;
    if (fragment.type == reduce::mfp_missing_type) {
        ++missing;
        return;
    }
    types.insert(fragment.type);
    bytes += fragment.bytes.size();
    largest = std::max<std::uint64_t>(largest, fragment.bytes.size());
}

void MultiEventSource::add(const MultiEventSource& other) {
    fragments += other.fragments;
    missing += other.missing;
    bytes += other.bytes;
    largest = std::max(largest, other.largest);
    types.insert(other.types.begin(), other.types.end());
}

MultiEventSource MultiEventSummary::total() const {
    MultiEventSource all;
    for (const MultiEventSource& source : sources) all.add(source);
    return all;
}

void MultiEventReader::begin(const store::EventInfo& event) {
    bytes_.clear();
    wanted_ = event.content == store::Content::mep;
}

void MultiEventReader::payload(std::span<const std::byte> bytes) {
    if (wanted_) bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::optional<MultiEventSummary> MultiEventReader::end(const store::EventInfo& event) {
    // Where the payload is not read there is nothing.
    if (event.content != store::Content::mep || bytes_.empty()) return {};
    std::string problem;
    const std::optional<MepView> view = MepView::parse(bytes_, problem);
    if (!view) {
        ++problem_count_;
        if (problems_.size() < problems_max)
            problems_.push_back(
                fmt::format("event {}:{}: its multi-event packet cannot be read: {}", event.epoch, event.id, problem));
        return {};
    }
    MultiEventSummary packet = summary_of(*view);
    ++blocks_;
    events_ += packet.events;
    for (const MultiEventSource& source : packet.sources) {
        MultiEventSource& sum = sources_[std::uint32_t{source.name.id} << 16U | source.name.version];
        sum.name = source.name;
        sum.add(source);
    }
    return packet;
}

void MultiEventReader::add_problems(store::Verification& result) const {
    if (problem_count_ == 0) return;
    result.verified = false;
    result.problem_count += problem_count_;
    for (const std::string& problem : problems_)
        if (result.problems.size() < problems_max) result.problems.push_back(problem);
}

json MultiEventReader::totals_json() const {
    if (blocks_ == 0) return {};
    MultiEventSource all;
    for (const auto& [name, source] : sources_) all.add(source);
    return {{"blocks", blocks_},
            {"events", events_},
            {"fragments", all.fragments},
            {"missing_fragments", all.missing},
            {"bytes", all.bytes}};
}

std::string MultiEventReader::totals_text() const {
    if (blocks_ == 0) return {};
    std::string text =
        fmt::format("\n{} in {}\n", count_text(events_, "event"), count_text(blocks_, "multi-event packet"));
    std::size_t shown = 0;
    for (const auto& [name, source] : sources_) {
        if (++shown > sources_shown_max)
            return text + fmt::format("  … and {}\n", count_text(sources_.size() - sources_shown_max, "more source"));
        text += fmt::format("  source {:#x}, version {}: {}{}\n", source.name.id, source.name.version,
                            fragments_text(source), types_text(source));
    }
    return text;
}

json multi_event_json(const MultiEventSummary& packet) {
    json object = {{"order", packet.order == reduce::MepOrder::sources ? "sources" : "events"},
                   {"first_event", packet.first_event},
                   {"events", packet.events},
                   {"sources", json::array()}};
    for (const MultiEventSource& source : packet.sources)
        object["sources"].push_back({{"id", source.name.id},
                                     {"version", source.name.version},
                                     {"types", source.types},
                                     {"bytes", source.bytes},
                                     {"largest", source.largest},
                                     {"missing_fragments", source.missing}});
    return object;
}

std::string multi_event_text(const MultiEventSummary& packet) {
    const MultiEventSource all = packet.total();
    const std::string fragments = all.missing == 0 ? "" : fmt::format("{} of ", all.fragments - all.missing);
    return fmt::format("{} from {} on, {}{}", count_text(packet.events, "event"), packet.first_event, fragments,
                       count_text(all.fragments, "fragment"));
}

}  // namespace weir::app
