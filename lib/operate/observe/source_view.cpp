#include "observe/source_view.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "pipeline/pipeline.hpp"

namespace weir::observe {

namespace {

constexpr double rate_window_s = 2;

/// Of two in the middle the better one: the higher rate.
std::uint64_t median_packets(std::vector<std::uint64_t> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// … or the shorter silence. Who never sent has been silent for ever.
std::optional<double> median_silence(std::span<const SourcePace> sources) {
    std::vector<double> values;
    for (const SourcePace& source : sources)
        if (source.silent_s) values.push_back(*source.silent_s);
    const std::size_t place = (sources.size() - 1) / 2;
    if (place >= values.size()) return {};
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(place);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

std::vector<bool> lagging_sources(std::span<const SourcePace> sources, double since_s, double patience_s) {
    std::vector<bool> lagging(sources.size(), false);
    if (sources.size() < 2) return lagging;
    std::map<std::uint32_t, std::vector<std::uint64_t>> groups;
    for (const SourcePace& source : sources) groups[source.group].push_back(source.packets);
    std::map<std::uint32_t, std::uint64_t> medians;
    for (auto& [group, packets] : groups) medians[group] = median_packets(std::move(packets));
    const std::optional<double> silence = median_silence(sources);
    for (std::size_t i = 0; i < sources.size(); ++i) {
        constexpr std::uint64_t enough = 20;
        const std::uint64_t median = medians[sources[i].group];
        lagging[i] = median >= enough && sources[i].packets < median / 2;
        if (!silence) continue;
        const double silent = sources[i].silent_s.value_or(since_s);
        lagging[i] = lagging[i] || silent - *silence > patience_s;
    }
    return lagging;
}

SourceView::SourceView(const pipeline::Pipeline& pipeline) {
    const pipeline::Pipeline::Options& options = pipeline.options();
    replay_ = !pipeline.is_live();
    patience_s_ = std::max(1.0, 4e-3 * options.config.events.timeout_ms);
    using Kind = std::tuple<std::string, std::uint32_t, std::uint32_t>;
    std::map<Kind, std::uint32_t> kinds;
    for (std::size_t i = 0; i < options.config.sources.size(); ++i) {
        const config::SourceConfig& source = options.config.sources[i];
        labels_.push_back(source.label);
        const Kind kind{options.config.streams[source.stream].format, options.geometry[i].message_bytes,
                        options.geometry[i].packet_payload_bytes};
        groups_.push_back(kinds.emplace(kind, static_cast<std::uint32_t>(kinds.size())).first->second);
    }
}

/// Keeps what is as old as the window, and what is younger.
void SourceView::remember(const Ledger& ledger, double seconds) {
    constexpr double step_s = 0.2;
    if (past_.empty() || seconds - past_.back().seconds >= step_s) {
        Past& now = past_.emplace_back();
        now.seconds = seconds;
        for (const Ledger::Source& source : ledger.sources) now.packets.push_back(source.packets);
    }
    while (past_.size() > 2 && seconds - past_[1].seconds >= rate_window_s) past_.pop_front();
}

nlohmann::json SourceView::update(const Ledger& ledger, const Watch& watch, double seconds) {
    using nlohmann::json;
    const std::size_t count = std::min(labels_.size(), ledger.sources.size());
    const auto activity = watch.sources();
    json packets = json::array();
    json missing = json::array();
    json per_s = json::array();
    json last_seen = json::array();
    std::vector<SourcePace> paces(count);
    const double over_s = past_.empty() ? seconds : seconds - past_.front().seconds;
    for (std::size_t i = 0; i < count; ++i) {
        const Ledger::Source& source = ledger.sources[i];
        SourcePace& pace = paces[i];
        const std::uint64_t before = past_.empty() ? 0 : past_.front().packets[i];
        pace.group = groups_[i];
        pace.packets = source.packets - std::min(source.packets, before);
        if (source.packets > 0) {
            if (!first_s_) first_s_ = seconds;
            // What came since the last look came just now.
            const bool fresh = i >= activity.size() || activity[i].packets != source.packets;
            pace.silent_s = fresh ? 0 : std::max(0.0, seconds - activity[i].last_s);
        }
        packets.push_back(source.packets);
        missing.push_back(source.missing_packets);
        per_s.push_back(over_s > 0 ? static_cast<double>(pace.packets) / over_s : 0);
        last_seen.push_back(pace.silent_s ? json(*pace.silent_s) : json(nullptr));
    }
    const std::vector<bool> lagging = replay_ ? std::vector<bool>(count, false)
                                              : lagging_sources(paces, first_s_ ? seconds - *first_s_ : 0, patience_s_);
    remember(ledger, seconds);
    return {{"label", labels_},          {"packets", std::move(packets)},       {"missing", std::move(missing)},
            {"per_s", std::move(per_s)}, {"last_seen_s", std::move(last_seen)}, {"lagging", lagging}};
}

}  // namespace weir::observe
