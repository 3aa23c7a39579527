#include "bench/comparison.hpp"

#include <fmt/format.h>
#include <initializer_list>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/number_text.hpp"
#include "bench/rank_test.hpp"
#include "bench/result_table.hpp"
#include "core/printable.hpp"

namespace weir::bench {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 8> verdict_names{
    "better", "worse", "same", "unsure", "only in before", "only in after", "not available", "no result"};

bool all_available(const PointGroup& group) {
    return group.not_available().empty();
}

/// Repeats without a rate are left out, not counted as 0: that no rate was found may be the sender's doing.
std::string left_out_text(const PointGroup& before, const PointGroup& after) {
    std::string text;
    for (const auto& [group, name] : {std::pair{&before, "before"}, std::pair{&after, "after"}}) {
        const std::size_t found = group->values(&Point::conditional_gbps).size();
        if (found > 0 && found < group->repeats.size())
            text += fmt::format("{}{}: {} of {} repeats gave no rate", text.empty() ? "" : "; ", name,
                                group->repeats.size() - found, group->repeats.size());
    }
    return text;
}

Verdict judge(const ComparedPoint& point, const ComparisonRules& rules) {
    if (smallest_p(point.before.size(), point.after.size()) >= rules.alpha) return Verdict::unsure;
    if (!point.change || *point.p >= rules.alpha || std::abs(point.change->ratio - 1) <= rules.width)
        return Verdict::same;
    return point.change->ratio > 1 ? Verdict::better : Verdict::worse;
}

std::string why_unsure(const ComparedPoint& point, const ComparisonRules& rules) {
    const std::size_t needed = values_needed(rules.alpha);
    return fmt::format("{}+{} repeats can give no p below {}; {}+{} can", point.before.size(), point.after.size(),
                       rules.alpha, needed, needed);
}

/// Where one of the two has no rate.
void say_what_is_missing(ComparedPoint& compared, const PointGroup& before, const PointGroup& after) {
    compared.missing = (all_available(before) && !all_available(after)) || !compared.before.empty();
    if (!all_available(before) || !all_available(after)) {
        compared.verdict = Verdict::not_available;
        if (!all_available(before)) compared.why = "before: " + before.not_available();
        if (!all_available(after))
            compared.why += (compared.why.empty() ? "after: " : "; after: ") + after.not_available();
        return;
    }
    compared.verdict = Verdict::no_result;
    if (is_at_a_load(compared.key)) compared.why = "at a given load there is no rate to compare";
    if (!compared.before.empty() || !compared.after.empty())
        compared.why = compared.before.empty() ? "no rate was found before" : "no rate was found after";
}

ComparedPoint compared(const PointGroup& before, const PointGroup& after, const ComparisonRules& rules) {
    ComparedPoint point{before.key,
                        before.values(&Point::conditional_gbps),
                        after.values(&Point::conditional_gbps),
                        std::nullopt,
                        std::nullopt,
                        Verdict::unsure,
                        {},
                        false};
    if (point.before.empty() || point.after.empty()) {
        say_what_is_missing(point, before, after);
        return point;
    }
    point.change = median_ratio(point.before, point.after, rules.bootstrap);
    point.p = rank_test(point.before, point.after).p;
    point.verdict = judge(point, rules);
    point.why = left_out_text(before, after);
    if (point.verdict == Verdict::unsure)
        point.why = why_unsure(point, rules) + (point.why.empty() ? "" : "; " + point.why);
    return point;
}

ComparedPoint on_one_side(const PointGroup& group, Verdict verdict) {
    ComparedPoint point;
    point.key = group.key;
    point.verdict = verdict;
    point.missing = verdict == Verdict::only_before && all_available(group);
    (verdict == Verdict::only_before ? point.before : point.after) = group.values(&Point::conditional_gbps);
    return point;
}

void note_difference(std::vector<std::string>& notes, const std::string& what, const std::string& before,
                     const std::string& after) {
    if (before == after) return;
    const auto named = [](const std::string& text) { return text.empty() ? std::string("unknown") : text; };
    notes.push_back(fmt::format("{} differs: {} before, {} after", what, named(before), named(after)));
}

const HostFacts* host_with(const Results& results, const std::string& role) {
    const auto found = std::ranges::find(results.hosts, role, &HostFacts::role);
    return found == results.hosts.end() ? nullptr : &*found;
}

/// Everything but names and the version of weir, which is what one compares.
std::vector<std::string> notes_on_machines(const Results& before, const Results& after) {
    std::vector<std::string> notes;
    note_difference(notes, "the link", before.link, after.link);
    for (const HostFacts& a : before.hosts) {
        const HostFacts* b = host_with(after, a.role);
        if (b == nullptr) continue;
        const auto differs = [&](std::string_view what, const std::string& was, const std::string& is) {
            note_difference(notes, fmt::format("the {}'s {}", a.role, what), was, is);
        };
        differs("CPU", a.cpu, b->cpu);
        differs("number of CPUs", std::to_string(a.cpus), std::to_string(b->cpus));
        differs("kernel", a.kernel, b->kernel);
        differs("system", a.system, b->system);
        differs("interface", a.interface, b->interface);
        differs("hypervisor", a.virtual_by, b->virtual_by);
    }
    if (!notes.empty()) notes.push_back("so a change of a rate need not be due to the software");
    return notes;
}

std::string median_text(const std::vector<double>& values) {
    const auto spread = spread_of(values);
    return spread ? number_text(spread->median) : "";
}

std::string spread_text(const std::vector<double>& values) {
    const auto spread = spread_of(values);
    return spread && spread->count > 1 ? range_text(spread->min, spread->max) : "";
}

Row row_of(const ComparedPoint& point) {
    Row row;
    row.cells = key_cells(point.key);
    for (std::string cell : {median_text(point.before), median_text(point.after),
                             point.change ? fmt::format("{:.3f}", point.change->ratio) : "",
                             point.change ? fmt::format("{:.3f}..{:.3f}", point.change->low, point.change->high) : "",
                             point.p ? number_text(*point.p, 3) : "", std::string(verdict_text(point.verdict)),
                             spread_text(point.before), spread_text(point.after)})
        row.cells.push_back(std::move(cell));
    if (!point.why.empty()) row.notes.push_back(point.why);
    return row;
}

Table table_of(const Comparison& comparison) {
    Table table{key_columns(), {}};
    for (Column column : std::initializer_list<Column>{
             {"before", "Gb/sec", true, Narrow::stays},
             {"after", "Gb/sec", true, Narrow::stays},
             {"ratio", "", true, Narrow::stays},
             {fmt::format("{:.0f} % interval", comparison.rules.bootstrap.confidence * 100), "", true, Narrow::stays},
             {"p", "", true, Narrow::stays},
             {"verdict", "", false, Narrow::stays},
             {"before min..max", "Gb/sec", true, Narrow::below},
             {"after min..max", "Gb/sec", true, Narrow::below}})
        table.columns.push_back(std::move(column));
    for (const ComparedPoint& point : comparison.points) table.rows.push_back(row_of(point));
    table.drop_empty_columns();
    return table;
}

std::string counts_text(const Comparison& comparison) {
    std::string text;
    for (std::size_t i = 0; i < verdict_names.size(); ++i)
        if (const auto count = std::ranges::count(comparison.points, static_cast<Verdict>(i), &ComparedPoint::verdict);
            count > 0)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, verdict_names[i]);
    return text.empty() ? "nothing to compare" : text;
}

/// By name, because in a long table they are easily overlooked. Empty if nothing is missing.
std::string missing_text(const Comparison& comparison) {
    std::string names;
    for (const ComparedPoint& point : comparison.points) {
        if (!point.missing) continue;
        const PointKey& key = point.key;
        names += fmt::format("{}{} from {}, {}, {}, {} B", names.empty() ? "" : "; ", key.transport, key.sender,
                             key.depth, key.goal, key.bytes);
        if (key.packets != 1) names += fmt::format(", {} packets a message", key.packets);
        if (key.addresses != 1) names += fmt::format(", {} addresses", key.addresses);
    }
    if (names.empty()) return {};
    return fmt::format("Missing after, which {}: {}.",
                       comparison.rules.allow_missing ? "was allowed" : "counts as worse", names);
}

json json_of(const std::vector<double>& rates) {
    json object = {{"gbps", rates}};
    if (const auto spread = spread_of(rates)) {
        object["median_gbps"] = spread->median;
        object["min_gbps"] = spread->min;
        object["max_gbps"] = spread->max;
    }
    return object;
}

json json_of(const ComparedPoint& point) {
    json object = {{"transport", point.key.transport},
                   {"sender", point.key.sender},
                   {"depth", point.key.depth},
                   {"goal", point.key.goal},
                   {"packets_per_message", point.key.packets},
                   {"sources", point.key.sources},
                   {"addresses", point.key.addresses},
                   {"bytes", point.key.bytes},
                   {"before", json_of(point.before)},
                   {"after", json_of(point.after)},
                   {"verdict", verdict_text(point.verdict)},
                   {"why", point.why},
                   {"missing", point.missing}};
    object["ratio"] = nullptr;
    if (point.change)
        object["ratio"] = {{"median", point.change->ratio}, {"low", point.change->low}, {"high", point.change->high}};
    object["p"] = point.p ? json(*point.p) : json(nullptr);
    return object;
}

}  // namespace

std::string_view verdict_text(Verdict verdict) {
    return verdict_names[static_cast<std::size_t>(verdict)];
}

Comparison compare(const Results& before, const Results& after, const ComparisonRules& rules) {
    Comparison comparison{before.title, after.title, rules, {}, notes_on_machines(before, after)};
    const std::vector<PointGroup> first = group_points(before);
    const std::vector<PointGroup> second = group_points(after);
    for (const PointGroup& group : first) {
        const auto match = std::ranges::find(second, group.key, &PointGroup::key);
        comparison.points.push_back(match == second.end() ? on_one_side(group, Verdict::only_before)
                                                          : compared(group, *match, rules));
    }
    for (const PointGroup& group : second)
        if (std::ranges::find(first, group.key, &PointGroup::key) == first.end())
            comparison.points.push_back(on_one_side(group, Verdict::only_after));
    return comparison;
}

bool changed_for_the_worse(const Comparison& comparison) {
    return std::ranges::any_of(comparison.points, [&comparison](const ComparedPoint& point) {
        return point.verdict == Verdict::worse || (point.missing && !comparison.rules.allow_missing);
    });
}

std::string comparison_text(const Comparison& comparison, std::size_t width) {
    const auto paragraph = [width](const std::string& text) { return wrapped(core::printable(text), width, 0) + '\n'; };
    std::string text = paragraph("before: " + comparison.before) + paragraph("after: " + comparison.after);
    for (const std::string& note : comparison.notes) text += paragraph("note: " + note);
    text += '\n' + table_text(table_of(comparison), width) + '\n';
    text += paragraph(counts_text(comparison));
    if (const std::string missing = missing_text(comparison); !missing.empty()) text += paragraph(missing);
    text +=
        paragraph(fmt::format("better, worse: p below {} and the medians more than {:.3g} % apart. same: no change "
                              "beyond the noise. Rates are medians of the repeats.",
                              comparison.rules.alpha, comparison.rules.width * 100));
    return text;
}

json to_json(const Comparison& comparison) {
    json points = json::array();
    for (const ComparedPoint& point : comparison.points) points.push_back(json_of(point));
    return {{"before", comparison.before},
            {"after", comparison.after},
            {"alpha", comparison.rules.alpha},
            {"width", comparison.rules.width},
            {"allow_missing", comparison.rules.allow_missing},
            {"confidence", comparison.rules.bootstrap.confidence},
            {"notes", comparison.notes},
            {"worse", changed_for_the_worse(comparison)},
            {"points", std::move(points)}};
}

}  // namespace weir::bench
