#include "bench/result_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/number_text.hpp"

namespace weir::bench {

std::vector<Column> key_columns() {
    return {{"transport", "", false, Narrow::above},      {"sender", "", false, Narrow::above},
            {"depth", "", false, Narrow::above},          {"goal", "", false, Narrow::above},
            {"packets/message", "", true, Narrow::above}, {"sources", "", true, Narrow::above},
            {"addresses", "", true, Narrow::above},       {"#bytes", "", true, Narrow::stays}};
}

std::vector<std::string> key_cells(const PointKey& key) {
    const auto unless_one = [](std::uint32_t number) { return number == 1 ? "" : std::to_string(number); };
    return {key.transport,
            key.sender,
            key.depth,
            key.goal,
            unless_one(key.packets),
            unless_one(key.sources),
            unless_one(key.addresses),
            std::to_string(key.bytes)};
}

namespace {

Table table_with(const std::vector<Column>& more) {
    Table table{key_columns(), {}};
    table.columns.insert(table.columns.end(), more.begin(), more.end());
    return table;
}

std::string median_text(const std::optional<Spread>& spread) {
    return spread ? number_text(spread->median, 3) : "";
}

std::string usec_of(const PointGroup& group, double Latency::*member) {
    const auto spread = group.latency(member);
    return spread ? usec_text(spread->median) : "";
}

/// Of one repeat its own bounds; of several the lowest lower and the highest upper one.
std::string bounds_text(const PointGroup& group) {
    const auto lower = group.spread(&Point::lower_gbps);
    const auto upper = group.spread(&Point::upper_gbps);
    if (!lower && !upper) return "";
    return fmt::format("{}..{}", lower ? number_text(lower->min) : "", upper ? number_text(upper->max) : "");
}

double million_packets(double gbps, std::uint32_t bytes) {
    return gbps * 1e3 / 8 / bytes;
}

std::string rate_text(const PointGroup& group, const std::optional<Spread>& rate) {
    if (!group.not_available().empty()) return "n.a.";
    return rate ? at_least_mark(group) + number_text(rate->median) : "no result";
}

/// Each reason once, with the number of repeats that it held for.
std::vector<std::string> counted(const PointGroup& group, const std::string Point::*reason, std::string_view what) {
    std::map<std::string, std::size_t> reasons;
    for (const Point* point : group.repeats)
        if (!(point->*reason).empty()) ++reasons[point->*reason];
    std::vector<std::string> notes;
    for (const auto& [why, times] : reasons)
        notes.push_back(times == group.repeats.size()
                            ? fmt::format("{}: {}", what, why)
                            : fmt::format("{} in {} of {} repeats: {}", what, times, group.repeats.size(), why));
    return notes;
}

std::string invalid_note(const PointGroup& group) {
    const std::size_t invalid = group.invalid_trials();
    if (invalid == 0) return {};
    for (const Point* point : group.repeats)
        for (const TrialRecord& trial : point->trials)
            if (!trial.valid)
                return fmt::format("{} of {} trials invalid, not counted; the first: {}", invalid, group.trials(),
                                   trial.why.empty() ? "no reason was kept" : trial.why);
    return {};
}

std::vector<std::string> notes_of(const PointGroup& group) {
    std::vector<std::string> notes = counted(group, &Point::not_available, "n.a.");
    const std::size_t found = group.values(&Point::conditional_gbps).size();
    if (found > 0 && found < group.repeats.size())
        notes.push_back(fmt::format("{} of {} repeats gave a result", found, group.repeats.size()));
    for (std::string& note : counted(group, &Point::irregular, "irregular")) notes.push_back(std::move(note));
    for (std::string& note : counted(group, &Point::remarks, "remark")) notes.push_back(std::move(note));
    if (const auto ceiling = group.spread(&Point::ceiling_gbps))
        notes.push_back(fmt::format("the sender could offer {} Gb/s at most", number_text(ceiling->min)));
    if (std::string note = invalid_note(group); !note.empty()) notes.push_back(std::move(note));
    return notes;
}

Row result_row(const PointGroup& group) {
    const auto rate = group.spread(&Point::conditional_gbps);
    const auto above = loss_above(group);
    Row row{key_cells(group.key), notes_of(group)};
    for (std::string& cell : std::vector<std::string>{
             rate_text(group, rate),
             rate && rate->count > 1 ? range_text(rate->min, rate->max) : "",
             rate && group.key.bytes > 0
                 ? at_least_mark(group) + number_text(million_packets(rate->median, group.key.bytes))
                 : "",
             median_text(group.spread(&Point::sender_cpu_s_per_gb)),
             median_text(group.spread(&Point::receiver_cpu_s_per_gb)),
             usec_of(group, &Latency::p50),
             usec_of(group, &Latency::p99),
             bounds_text(group),
             above ? fmt::format("{} ({})", layers_text(above->lost), loss_text(above->loss_ratio)) : "",
         })
        row.cells.push_back(std::move(cell));
    return row;
}

/// Valid trials at one load.
struct AtLoad {
    std::vector<double> ratios;
    std::size_t trials = 0;
    Losses lost;
};

std::map<double, AtLoad> by_load(const PointGroup& group) {
    std::map<double, AtLoad> loads;
    for (const Point* point : group.repeats)
        for (const TrialRecord& trial : point->trials) {
            AtLoad& load = loads[trial.intended_gbps];
            ++load.trials;
            if (!trial.valid) continue;
            load.ratios.push_back(trial.loss_ratio);
            add(load.lost, trial.lost);
        }
    return loads;
}

Row load_row(const PointKey& key, double gbps, const AtLoad& at) {
    const auto loss = spread_of(at.ratios);
    Row row{key_cells(key), {}};
    for (std::string& cell : std::vector<std::string>{
             number_text(gbps), loss ? loss_text(loss->median) : "no valid trial",
             loss && loss->min < loss->max ? loss_text(loss->min) + ".." + loss_text(loss->max) : "",
             loss ? layers_text(at.lost) : "", fmt::format("{} of {}", at.ratios.size(), at.trials)})
        row.cells.push_back(std::move(cell));
    return row;
}

std::string count_text(const std::optional<std::uint64_t>& count) {
    return count ? std::to_string(*count) : "";
}

Row burst_row(const Point& point) {
    const Bursts& bursts = point.bursts;
    const auto [least, most] = std::ranges::minmax(bursts.packets);
    double sum = 0;
    for (const std::uint64_t packets : bursts.packets) sum += static_cast<double>(packets);
    const std::string_view at_least = bursts.reached_most ? "\u2265 " : "";
    const auto ms = [&](double s) { return fmt::format("{}{}", at_least, number_text(s * 1e3, 3)); };
    Row row{key_cells(key_of(point)), {}};
    for (std::string& cell :
         std::vector<std::string>{fmt::format("{}{:.0f}", at_least, sum / static_cast<double>(bursts.packets.size())),
                                  fmt::format("{}..{}", least, most), number_text(point.ceiling_gbps.value_or(0)),
                                  ms(bursts.implied_s), point.lower_gbps ? ms(bursts.corrected_s) : "no rate"})
        row.cells.push_back(std::move(cell));
    return row;
}

Row trial_row(const Point& point, const TrialRecord& trial) {
    const SenderCounts& sender = trial.sender;
    const ReceiverCounts& receiver = trial.receiver;
    const auto usec = [&trial](double Latency::*member) {
        return trial.latency ? usec_text((*trial.latency).*member) : "";
    };
    Row row{key_cells(key_of(point)), {}};
    if (!trial.valid) row.notes.push_back("invalid: " + trial.why);
    for (std::string& cell : std::vector<std::string>{
             std::to_string(point.repeat), number_text(trial.intended_gbps), std::to_string(sender.intended),
             std::to_string(sender.handed_over), count_text(receiver.arrived), std::to_string(receiver.received),
             count_text(receiver.assembled), trial.valid ? loss_text(trial.loss_ratio) : "invalid",
             trial.valid ? layers_text(trial.lost) : "", number_text(sender.planned_s, 3),
             number_text(sender.took_s, 3), number_text(sender.cpu_s, 3), number_text(receiver.cpu_s, 3),
             usec(&Latency::p50), usec(&Latency::p99), usec(&Latency::p999), usec(&Latency::longest)})
        row.cells.push_back(std::move(cell));
    return row;
}

}  // namespace

bool is_at_a_load(const PointKey& key) {
    return key.goal == "at" || key.goal == "max";
}

std::string at_least_mark(const PointGroup& group) {
    return group.is_at_least() ? "≥ " : "";
}

std::string at_least_text(const std::vector<PointGroup>& groups) {
    const auto marked = [](const PointGroup& group) { return !is_at_a_load(group.key) && group.is_at_least(); };
    if (std::ranges::none_of(groups, marked)) return {};
    return "≥: the search found no upper bound, because the sender or --most was the limit, or the time was over. The "
           "receiver may be faster.";
}

Table result_table(const std::vector<PointGroup>& groups) {
    Table table = table_with({{"BW average", "Gb/sec", true, Narrow::stays},
                              {"min..max", "Gb/sec", true, Narrow::stays},
                              {"MsgRate", "Mpps", true, Narrow::stays},
                              {"CPU send", "s/GB", true, Narrow::stays},
                              {"CPU recv", "s/GB", true, Narrow::stays},
                              {"p50", "usec", true, Narrow::below},
                              {"p99", "usec", true, Narrow::below},
                              {"bounds", "Gb/sec", true, Narrow::below},
                              {"lost just above", "", false, Narrow::below}});
    for (const PointGroup& group : groups)
        if (!is_at_a_load(group.key)) table.rows.push_back(result_row(group));
    table.drop_empty_columns();
    return table;
}

Table load_table(const std::vector<PointGroup>& groups) {
    Table table = table_with({{"load", "Gb/sec", true, Narrow::stays},
                              {"loss ratio", "", true, Narrow::stays},
                              {"min..max", "", true, Narrow::below},
                              {"lost in", "", false, Narrow::below},
                              {"valid trials", "", true, Narrow::stays}});
    for (const PointGroup& group : groups) {
        if (!is_at_a_load(group.key)) continue;
        const std::size_t first = table.rows.size();
        for (const auto& [gbps, at] : by_load(group)) table.rows.push_back(load_row(group.key, gbps, at));
        if (table.rows.size() == first) {
            table.rows.push_back({key_cells(group.key), {}});
            table.rows.back().cells.resize(table.columns.size());
            table.rows.back().cells[key_columns().size()] = group.not_available().empty() ? "no trial" : "n.a.";
        }
        table.rows.back().notes = notes_of(group);
    }
    table.drop_empty_columns();
    return table;
}

Table burst_table(const std::vector<PointGroup>& groups) {
    Table table = table_with({{"burst", "packets", true, Narrow::stays},
                              {"min..max", "packets", true, Narrow::stays},
                              {"at", "Gb/sec", true, Narrow::stays},
                              {"buffers last", "ms", true, Narrow::stays},
                              {"corrected", "ms", true, Narrow::stays}});
    for (const PointGroup& group : groups)
        for (const Point* point : group.repeats)
            if (!point->bursts.packets.empty()) table.rows.push_back(burst_row(*point));
    table.drop_empty_columns();
    return table;
}

Table trial_table(const std::vector<PointGroup>& groups) {
    Table table = table_with({{"repeat", ""},
                              {"load", "Gb/sec"},
                              {"intended", "packets"},
                              {"sent", "packets"},
                              {"arrived", "packets"},
                              {"received", "packets"},
                              {"assembled", "packets"},
                              {"loss ratio", ""},
                              {"lost in", "", false},
                              {"planned", "s"},
                              {"took", "s"},
                              {"CPU send", "s"},
                              {"CPU recv", "s"},
                              {"p50", "usec"},
                              {"p99", "usec"},
                              {"p99.9", "usec"},
                              {"max", "usec"}});
    for (const PointGroup& group : groups)
        for (const Point* point : group.repeats)
            for (const TrialRecord& trial : point->trials) table.rows.push_back(trial_row(*point, trial));
    table.drop_empty_columns();
    return table;
}

}  // namespace weir::bench
