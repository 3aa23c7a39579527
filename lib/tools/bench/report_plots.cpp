#include "bench/report_plots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bench/number_text.hpp"
#include "bench/result_table.hpp"
#include "bench/svg_plot.hpp"

namespace weir::bench {
namespace {

using Groups = std::vector<const PointGroup*>;

/// Groups with the same name, in the order in which the names first occur.
template <class NameOf>
std::vector<std::pair<std::string, Groups>> by_name(const std::vector<PointGroup>& groups, NameOf name_of) {
    std::vector<std::pair<std::string, Groups>> named;
    for (const PointGroup& group : groups) {
        const std::string name = name_of(group.key);
        auto found = std::ranges::find(named, name, &std::pair<std::string, Groups>::first);
        if (found == named.end()) found = named.insert(named.end(), {name, {}});
        found->second.push_back(&group);
    }
    return named;
}

std::string message_text(const PointKey& key) {
    std::string text;
    if (key.packets != 1) text += fmt::format(", {} packets a message", key.packets);
    if (key.sources != 1) text += fmt::format(", {} sources", key.sources);
    if (key.addresses != 1) text += fmt::format(", {} addresses", key.addresses);
    return text;
}

std::string way_of(const PointKey& key) {
    return fmt::format("{} from {}, {}{}", key.transport, key.sender, key.depth, message_text(key));
}

std::string bytes_text(std::uint32_t bytes) {
    return fmt::format("{} B", bytes);
}

PlotSeries& series_with(std::vector<PlotSeries>& all, const std::string& name) {
    const auto found = std::ranges::find(all, name, &PlotSeries::name);
    return found == all.end() ? all.emplace_back(PlotSeries{name, {}}) : *found;
}

constexpr std::size_t no_loss_row = 0;
constexpr std::size_t invalid_row = 1;

PlotPoint point_of(const TrialRecord& trial) {
    PlotPoint point;
    point.x = trial.intended_gbps;
    const std::string load = number_text(trial.intended_gbps) + " Gb/s: ";
    if (!trial.valid) {
        point.row = invalid_row;
        point.hollow_cross = true;
        point.title = load + "invalid, " + trial.why;
    } else {
        point.row = no_loss_row;
        if (trial.loss_ratio > 0) point.y = trial.loss_ratio;
        point.title = load + (trial.loss_ratio > 0 ? "lost " + loss_text(trial.loss_ratio) : "no loss");
    }
    return point;
}

std::string loss_figure(const std::string& way, Groups groups) {
    std::ranges::stable_sort(groups, {}, [](const PointGroup* group) { return group->key.bytes; });
    XyPlot plot;
    std::vector<double> loads;
    std::vector<double> losses{1};
    bool any_invalid = false;
    for (const PointGroup* group : groups)
        for (const Point* repeat : group->repeats)
            for (const TrialRecord& trial : repeat->trials) {
                PlotPoint point = point_of(trial);
                loads.push_back(point.x);
                if (point.y) losses.push_back(*point.y);
                any_invalid |= point.hollow_cross;
                series_with(plot.series, bytes_text(group->key.bytes)).points.push_back(std::move(point));
            }
    if (loads.empty()) return {};
    plot.title = "Loss against load: " + way;
    plot.x_label = "load that was asked for [Gb/s]";
    plot.y_label = "loss ratio";
    plot.x = Axis::from_zero(loads);
    // An axis of ratios where there is none of them, and a loss of all: up to 1.
    constexpr double least = 1e-3;
    plot.y = Axis::decades(losses.empty() ? std::vector<double>{least, 1} : losses);
    plot.rows = {"no loss"};
    if (any_invalid) plot.rows.push_back("invalid");
    return figure(plot);
}

/// From the lowest to the highest of what was found and what bounds it, over all repeats.
void add_bar(PlotPoint& point, const PointGroup& group) {
    for (const auto member : {&Point::lower_gbps, &Point::conditional_gbps, &Point::upper_gbps}) {
        const auto spread = group.spread(member);
        if (!spread) continue;
        point.low = std::min(point.low.value_or(spread->min), spread->min);
        point.high = std::max(point.high.value_or(spread->max), spread->max);
    }
}

std::string rate_figure(const std::string& what, Groups groups) {
    std::ranges::stable_sort(groups, {}, [](const PointGroup* group) { return group->key.bytes; });
    XyPlot plot;
    std::vector<double> sizes;
    std::vector<double> rates;
    std::string missing;
    for (const PointGroup* group : groups) {
        const std::string name = group->key.transport + " from " + group->key.sender;
        const auto rate = group->spread(&Point::conditional_gbps);
        if (!rate) {
            missing += fmt::format("{}{}, {} ({})", missing.empty() ? "" : "; ", name, bytes_text(group->key.bytes),
                                   group->not_available().empty() ? "no result" : "n.a.");
            continue;
        }
        PlotPoint point;
        point.x = group->key.bytes;
        point.y = rate->median;
        point.title = fmt::format("{}, {}: {}{} Gb/s", name, bytes_text(group->key.bytes), at_least_mark(*group),
                                  number_text(rate->median));
        add_bar(point, *group);
        sizes.push_back(point.x);
        rates.push_back(std::max(rate->median, point.high.value_or(0)));
        series_with(plot.series, name).points.push_back(std::move(point));
    }
    if (rates.empty()) return {};
    for (PlotSeries& series : plot.series) series.line = series.apart = true;
    plot.title = "Rate without loss against packet size: " + what;
    plot.x_label = "UDP payload of a packet [B]";
    plot.y_label = "rate [Gb/s]";
    plot.x = Axis::of_sizes(sizes);
    plot.y = Axis::from_zero(rates);
    std::string caption = "Marks: median of the repeats. Bars: from the lowest lower to the highest upper bound.";
    if (!missing.empty()) caption += " Without a rate: " + missing + '.';
    return figure(plot, caption);
}

/// A plot with a heading for each way and goal, and a row for each size that has a value.
template <class RowOf>
std::string row_figure(RowPlot plot, const std::vector<PointGroup>& groups, bool logarithmic, RowOf row_of) {
    std::vector<double> values;
    const auto named =
        by_name(groups, [](const PointKey& key) { return fmt::format("{}, goal {}", way_of(key), key.goal); });
    for (const auto& [way, members] : named) {
        PlotRows rows{way, {}};
        for (const PointGroup* group : members) {
            PlotRow row = row_of(*group);
            const std::size_t before = values.size();
            for (const auto& value : row.values)
                if (value) values.push_back(*value);
            row.label = bytes_text(group->key.bytes);
            if (values.size() > before) rows.rows.push_back(std::move(row));
        }
        if (!rows.rows.empty()) plot.groups.push_back(std::move(rows));
    }
    if (values.empty()) return {};
    plot.x = logarithmic ? Axis::decades(values) : Axis::from_zero(values);
    return figure(plot, "Medians of the repeats, at the lower bound.");
}

}  // namespace

std::string loss_figures(const std::vector<PointGroup>& groups) {
    std::string html;
    for (const auto& [way, members] : by_name(groups, way_of)) html += loss_figure(way, members);
    return html;
}

std::string rate_figures(const std::vector<PointGroup>& groups) {
    std::string html;
    std::vector<PointGroup> searches;
    std::ranges::copy_if(groups, std::back_inserter(searches),
                         [](const auto& group) { return !is_at_a_load(group.key); });
    const auto name_of = [](const PointKey& key) {
        return fmt::format("{}{}, goal {}", key.depth, message_text(key), key.goal);
    };
    for (const auto& [what, members] : by_name(searches, name_of)) html += rate_figure(what, members);
    return html;
}

std::string cpu_figure(const std::vector<PointGroup>& groups) {
    RowPlot plot;
    plot.title = "CPU time for a GB of payload";
    plot.x_label = "CPU time [s/GB]";
    plot.names = {"sender", "receiver"};
    plot.bars = true;
    return row_figure(std::move(plot), groups, false, [](const PointGroup& group) {
        PlotRow row;
        for (const auto member : {&Point::sender_cpu_s_per_gb, &Point::receiver_cpu_s_per_gb}) {
            const auto spread = group.spread(member);
            row.values.push_back(spread ? std::optional(spread->median) : std::nullopt);
            row.texts.push_back(number_text(row.values.back(), 3));
        }
        return row;
    });
}

std::string latency_figure(const std::vector<PointGroup>& groups) {
    RowPlot plot;
    plot.title = "Latency, one way";
    plot.x_label = "from the sender's stamp to the program [usec]";
    plot.names = {"p50", "p99", "p99.9", "max"};
    return row_figure(std::move(plot), groups, true, [](const PointGroup& group) {
        PlotRow row;
        for (const auto member : {&Latency::p50, &Latency::p99, &Latency::p999, &Latency::longest}) {
            const auto spread = group.latency(member);
            row.values.push_back(spread ? std::optional(spread->median * 1e6) : std::nullopt);
            row.texts.push_back(spread ? usec_text(spread->median) + " usec" : "");
        }
        return row;
    });
}

}  // namespace weir::bench
