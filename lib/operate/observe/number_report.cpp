#include "observe/number_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipeline/pipeline.hpp"

namespace weir::observe {

namespace {

/// Every range of the run, in order of epochs.
std::vector<NumberReport::Range> all_ranges(const NumberReport& report) {
    std::vector<NumberReport::Range> ranges;
    for (const auto& epoch : report.run.epochs)
        for (const NumberReport::Range& range : epoch.ranges) {
            if (ranges.size() == assemble::NumberAccount::ranges_max) return ranges;
            ranges.push_back(range);
        }
    return ranges;
}

nlohmann::json ranges_json(const std::vector<NumberReport::Range>& ranges) {
    nlohmann::json list = nlohmann::json::array();
    for (const NumberReport::Range& range : ranges) list.push_back({range.first, range.last});
    return list;
}

/// Ranges that follow one another at the stride become one.
std::vector<NumberReport::Range> joined(std::vector<NumberReport::Range> ranges, std::uint64_t stride) {
    std::ranges::sort(ranges, {}, &NumberReport::Range::first);
    std::vector<NumberReport::Range> out;
    for (const NumberReport::Range& range : ranges) {
        if (!out.empty() && range.first == out.back().last + stride)
            out.back().last = range.last;
        else
            out.push_back(range);
    }
    return out;
}

/// The numbers of the run from `first` to `last`, without those that came from nobody.
std::uint64_t seen_between(const NumberReport& report, std::uint64_t first, std::uint64_t last, std::uint64_t stride) {
    std::uint64_t count = (last - first) / stride + 1;
    for (const NumberReport::Range& range : all_ranges(report)) {
        if (range.last < first || range.first > last) continue;
        count -= (std::min(range.last, last) - std::max(range.first, first)) / stride + 1;
    }
    return count;
}

/// Numbers of events that came from others. Only the lowest are known one by one; but if there are as many as the run
/// saw from the lowest to the highest, all of these are meant.
std::vector<NumberReport::Range> absent_ranges(const NumberReport& report, const NumberReport::Source& source,
                                               std::uint64_t stride) {
    std::vector<NumberReport::Range> ranges;
    if (source.lowest.empty()) return ranges;
    const bool all_known = report.run.epochs.size() == 1 && report.run.epochs.front().ranges_left_out == 0;
    const std::uint64_t first = source.lowest.front();
    if (source.absent > source.lowest.size() && all_known &&
        seen_between(report, first, source.highest, stride) == source.absent) {
        std::uint64_t from = first;
        for (const NumberReport::Range& range : report.run.epochs.front().ranges) {
            if (range.first < first || range.first > source.highest) continue;
            ranges.push_back({from, range.first - stride});
            from = range.last + stride;
        }
        ranges.push_back({from, source.highest});
        return ranges;
    }
    for (const std::uint64_t number : source.lowest) ranges.push_back({number, number});
    return ranges;
}

/// Without the numbers.
NumberReport rules_of(const pipeline::Pipeline& pipeline) {
    const pipeline::Pipeline::Options& options = pipeline.options();
    NumberReport report;
    report.declared = options.config.events.stride.has_value();
    report.sparse = options.config.events.stride == config::EventsConfig::stride_sparse;
    report.counts_frames = true;
    for (const stages::StreamRuntime& stream : options.streams)
        report.counts_frames &= stream.context.sls.lane_packets > 0;
    report.of_arrival = std::ranges::any_of(options.config.streams, [](const config::StreamConfig& stream) {
        return stream.event == config::EventBy::arrival;
    });
    return report;
}

/// Numbers that the field of the event number has, where only the field says how it wraps: a description of it may say
/// more (`wrap_bits`), and built-in formats have all of them.
std::uint64_t undeclared_turn(const pipeline::Pipeline& pipeline) {
    const config::RunConfig& config = pipeline.options().config;
    std::uint64_t turn = 0;
    for (std::size_t i = 0; i < config.streams.size(); ++i) {
        const unsigned bits = pipeline.options().streams[i].context.number_bits;
        const auto spec = std::ranges::find(config.formats, config.streams[i].format, &wire::DeclaredSpec::name);
        if (spec == config.formats.end() || spec->wrap_bits || bits > 32) return 0;
        const std::uint64_t one = std::uint64_t{1} << bits;
        if (turn != 0 && turn != one) return 0;
        turn = one;
    }
    return turn;
}

std::optional<std::uint64_t> declared_stride(const pipeline::Pipeline& pipeline) {
    const std::optional<std::uint64_t> stride = pipeline.options().config.events.stride;
    return stride == config::EventsConfig::stride_sparse ? std::nullopt : stride;
}

}  // namespace

std::string NumberReport::why_unknown() const {
    if (run.epochs.empty()) return "no event came";
    if (of_arrival) return "messages are numbered as they come, so none of these numbers can be missing";
    if (sparse) return "`events.stride = \"sparse\"` says that event numbers leave numbers out";
    if (!run.counted())
        return "event numbers do not rise by a fixed stride, so they do not show whether whole events are missing";
    if (run.unlogged > 0) return fmt::format("{} event numbers came faster than they could be followed", run.unlogged);
    if (run.jumps() > 0)
        return fmt::format("event numbers jump {} times by more than {}: a damaged number, or a counter that was set",
                           run.jumps(), assemble::NumberAccount::gap_max);
    if (const auto wrap = run.wrap(); wrap && !wrap->sure)
        return fmt::format(
            "event numbers go from {} to {}, either because their counter begins again there or because the events "
            "between were lost (`event.wrap_bits` says that it has all numbers of its field)",
            wrap->from, wrap->to);
    if (declared && run.odd() > 0)
        return fmt::format("{} steps between event numbers are no multiple of `events.stride`", run.odd());
    if (const auto stride = run.stride(); counts_frames && !declared && stride && *stride != 1)
        return fmt::format(
            "frame numbers rise by {0} where the detector counts by 1: "
            "the frames between went elsewhere (then set `events.stride = {0}`), or were lost",
            *stride);
    return {};
}

std::optional<NumberReport> report_settled_numbers(const pipeline::Pipeline& pipeline) {
    if (!pipeline.is_live()) return std::nullopt;
    NumberReport report = rules_of(pipeline);
    std::optional<pipeline::EventNumbers::Summary> settled =
        pipeline.numbers().settled(declared_stride(pipeline), undeclared_turn(pipeline));
    if (!settled) return std::nullopt;
    report.run = *std::move(settled);
    return report;
}

NumberReport report_numbers(const pipeline::Pipeline& pipeline) {
    const pipeline::Pipeline::Options& options = pipeline.options();
    NumberReport report = rules_of(pipeline);
    report.run = pipeline.numbers().summary(declared_stride(pipeline), options.capture ? options.capture->loop : 1,
                                            undeclared_turn(pipeline));
    if (options.config.events.sources < options.config.sources.size()) return report;
    report.sources.resize(options.config.sources.size());
    for (std::uint32_t s = 0; s < report.sources.size(); ++s) {
        NumberReport::Source& source = report.sources[s];
        for (const auto& build : pipeline.build()) {
            const stages::Absences& absences = build->absences();
            source.absent += absences.count(s);
            source.highest = std::max(source.highest, absences.highest(s));
            const auto lowest = absences.lowest(s);
            source.lowest.insert(source.lowest.end(), lowest.begin(), lowest.end());
        }
        std::ranges::sort(source.lowest);
        source.lowest.resize(std::min(source.lowest.size(), stages::Absences::lowest_max));
    }
    return report;
}

nlohmann::json numbers_json(const NumberReport& report) {
    const std::string why = report.why_unknown();
    nlohmann::json json{{"total", why.empty() ? nlohmann::json(report.missing()) : nlohmann::json("unknown")},
                        {"seen", report.run.seen()},
                        {"ranges", nlohmann::json::array()},
                        {"ranges_left_out", 0}};
    if (!report.run.epochs.empty()) {
        json["first"] = report.run.epochs.front().first;
        json["last"] = report.run.epochs.back().last;
        json["epochs"] = report.run.epochs.size();
    }
    if (!why.empty()) {
        json["why"] = why;
        return json;
    }
    if (const auto stride = report.run.stride()) json["stride"] = *stride;
    if (const auto wrap = report.run.wrap())
        json["wrap"] = {{"from", wrap->from}, {"to", wrap->to}, {"times", wrap->times}};
    const std::vector<NumberReport::Range> ranges = all_ranges(report);
    json["ranges"] = ranges_json(ranges);
    std::uint64_t listed = 0;
    std::uint64_t all = 0;
    for (const auto& epoch : report.run.epochs) {
        listed += epoch.ranges.size();
        all += epoch.ranges.size() + epoch.ranges_left_out;
    }
    json["ranges_left_out"] = all - std::min<std::uint64_t>(listed, ranges.size());
    return json;
}

nlohmann::json source_numbers_json(const NumberReport& report, std::size_t source) {
    if (source >= report.sources.size() || !report.why_unknown().empty()) return {{"total", "unknown"}};
    const NumberReport::Source& of = report.sources[source];
    const std::uint64_t stride = report.run.stride().value_or(1);
    std::vector<NumberReport::Range> ranges = absent_ranges(report, of, stride);
    const std::vector<NumberReport::Range> nowhere = all_ranges(report);
    ranges.insert(ranges.end(), nowhere.begin(), nowhere.end());
    ranges = joined(std::move(ranges), stride);
    if (ranges.size() > NumberReport::source_ranges_max) ranges.resize(NumberReport::source_ranges_max);
    const std::uint64_t total = report.missing() + of.absent;
    std::uint64_t listed = 0;
    for (const NumberReport::Range& range : ranges) listed += (range.last - range.first) / stride + 1;
    return {{"total", total}, {"ranges", ranges_json(ranges)}, {"numbers_left_out", total - std::min(total, listed)}};
}

std::string ranges_text(const NumberReport& report) {
    constexpr std::size_t shown_max = 4;
    std::string text;
    const std::vector<NumberReport::Range> ranges = all_ranges(report);
    for (std::size_t i = 0; i < ranges.size() && i < shown_max; ++i) {
        const NumberReport::Range& range = ranges[i];
        text += i == 0 ? "" : ", ";
        text +=
            range.first == range.last ? fmt::format("{}", range.first) : fmt::format("{}-{}", range.first, range.last);
    }
    return ranges.size() > shown_max ? text + ", ..." : text;
}

}  // namespace weir::observe
