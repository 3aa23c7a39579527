#include "bench/report_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/number_text.hpp"
#include "bench/result_table.hpp"
#include "core/printable.hpp"
#include "search/goal.hpp"

namespace weir::bench {
namespace {

std::string host_text(const HostFacts& host, std::size_t width) {
    std::string facts = fmt::format("{}: {}", host.role, host.name);
    const auto say = [&facts](std::string_view what, const std::string& fact) {
        if (!fact.empty()) facts += fmt::format(", {}{}", what, fact);
    };
    say("", host.cpu);
    if (host.cpus > 0) say("CPUs ", std::to_string(host.cpus));
    say("", host.kernel);
    say("", host.system);
    say("", host.interface);
    say("virtual by ", host.virtual_by);
    say("", host.weir);  // "weir 0.1.0"
    std::string text = wrapped(core::printable(facts), width, 0) + '\n';
    for (const std::string& remark : host.remarks)
        text += wrapped("remark: " + core::printable(remark), width, 4) + '\n';
    return text;
}

}  // namespace

std::string validity_text(const Results& results) {
    std::size_t trials = 0;
    std::size_t invalid = 0;
    for (const PointGroup& group : group_points(results)) {
        trials += group.trials();
        invalid += group.invalid_trials();
    }
    if (trials == 0) return "There was no trial.";
    return fmt::format("{} of {} trials were valid.", trials - invalid, trials);
}

std::string unusable_text(const Results& results) {
    std::map<std::string, std::size_t> reasons;
    std::size_t trials = 0;
    std::size_t invalid = 0;
    for (const Point& point : results.points)
        for (const TrialRecord& trial : point.trials) {
            ++trials;
            if (trial.valid) continue;
            ++invalid;
            ++reasons[trial.why];
        }
    if (2 * invalid <= trials) return {};
    const auto most = std::ranges::max_element(reasons, {}, [](const auto& reason) { return reason.second; });
    return fmt::format(
        "NOT USABLE: {} of {} trials are invalid, {} of them for this: {}. What is below comes from the rest.", invalid,
        trials, most->second, most->first);
}

std::vector<std::string> goal_texts(const Results& results) {
    std::vector<std::string> names;
    std::vector<std::string> texts;
    for (const Point& point : results.points) {
        if (std::ranges::find(names, point.goal) != names.end()) continue;
        names.push_back(point.goal);
        if (const std::string_view text = search::goal_text(point.goal); !text.empty())
            texts.push_back(fmt::format("{}: {}", point.goal, text));
    }
    return texts;
}

std::string report_text(const Results& results, std::size_t width) {
    const std::vector<PointGroup> groups = group_points(results);
    const auto paragraph = [width](const std::string& text) { return wrapped(core::printable(text), width, 0) + '\n'; };
    std::string text = paragraph(results.title.empty() ? "weir bench" : results.title);
    if (!results.link.empty() || !results.started.empty())
        text += paragraph(fmt::format("{}{}{}", results.started, results.started.empty() ? "" : ", ", results.link));
    for (const HostFacts& host : results.hosts) text += host_text(host, width);
    text += '\n';
    if (groups.empty()) return text + "Nothing was measured.\n";
    if (const std::string unusable = unusable_text(results); !unusable.empty()) text += paragraph(unusable) + '\n';
    const Table found = result_table(groups);
    const Table at = load_table(groups);
    text += table_text(found, width);
    if (const std::string meaning = at_least_text(groups); !meaning.empty()) text += '\n' + paragraph(meaning);
    if (!at.rows.empty())
        text += fmt::format("{}Loss at given loads\n{}", found.rows.empty() ? "" : "\n", table_text(at, width));
    if (const Table bursts = burst_table(groups); !bursts.rows.empty())
        text += fmt::format("\nLongest bursts at full speed without loss (RFC 9004)\n{}", table_text(bursts, width));
    text += '\n' + paragraph(validity_text(results) +
                             " Rates are bits of UDP payload, 1 Gb = 10^9 bits. GB: 10^9 "
                             "bytes of payload.");
    for (const std::string& goal : goal_texts(results)) text += paragraph("goal " + goal);
    return text;
}

}  // namespace weir::bench
