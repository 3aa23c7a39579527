#include "observe/psn_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipeline/pipeline.hpp"

namespace weir::observe {

using wire::RoceTransport;

namespace {

const char* name_of(RoceTransport transport) {
    switch (transport) {
        case RoceTransport::rc:
            return "rc";
        case RoceTransport::uc:
            return "uc";
        case RoceTransport::ud:
            return "ud";
        case RoceTransport::rd:
        case RoceTransport::other:
            break;
    }
    return "none";
}

/// Why the gaps in a UD sender's PSNs may be of packets to others; empty: nothing speaks for that.
std::string why_not_ours(const PsnReport& report, std::span<const PsnReport> all) {
    const roce::PsnCounts::Values& counts = report.counts;
    if (counts.senders > 1)
        return fmt::format("{} senders of datagrams use this queue pair, and what they send elsewhere has PSNs, too",
                           counts.senders);
    const auto other = std::ranges::find_if(all, [&](const PsnReport& at) {
        return at.source != report.source && at.counts.transport == RoceTransport::ud &&
               at.counts.sender == counts.sender;
    });
    if (other != all.end())
        return fmt::format("its sender also sends to queue pair {:#x} with the same PSNs", other->qp);
    // A link that loses every third packet is broken; a sender that serves two receivers is not.
    if (2 * counts.missing() > counts.seen)
        return "so many PSNs are missing that the sender of datagrams probably sends to others, too";
    return {};
}

}  // namespace

void judge_psns(std::span<PsnReport> reports) {
    for (PsnReport& report : reports) {
        const roce::PsnCounts::Values& counts = report.counts;
        report.proven = counts.transport == RoceTransport::rc || counts.transport == RoceTransport::uc;
        report.unknown_because.clear();
        if (counts.expected == 0) {
            report.unknown_because = "nothing came";
            continue;
        }
        if (counts.transport == RoceTransport::ud) {
            report.unknown_because = why_not_ours(report, reports);
            report.proven = report.known();
        }
        if (report.known() && counts.jumps > 0)
            report.unknown_because = fmt::format(
                "PSNs went ahead too far to tell a loss from a sender that began anew ({} times, {} numbers)",
                counts.jumps, counts.jump_psns);
    }
}

std::vector<PsnReport> collect_psns(const pipeline::Pipeline& pipeline) {
    const config::RunConfig& config = pipeline.options().config;
    std::vector<PsnReport> reports;
    for (std::uint32_t source = 0; source < config.sources.size(); ++source)
        for (const auto& rx : pipeline.rx())
            if (const auto counts = rx->psn_counts(source))
                reports.push_back({.source = source, .qp = config.sources[source].key, .counts = *counts});
    judge_psns(reports);
    return reports;
}

nlohmann::json psns_json(std::span<const PsnReport> reports) {
    nlohmann::json list = nlohmann::json::array();
    for (const PsnReport& report : reports) {
        const roce::PsnCounts::Values& counts = report.counts;
        list.push_back({{"source", report.source},
                        {"qp", report.qp},
                        {"transport", name_of(counts.transport)},
                        {"senders", counts.senders},
                        {"expected", counts.expected},
                        {"seen", counts.seen},
                        {"missing", counts.missing()},
                        {"out_of_order", counts.out_of_order},
                        {"repeated", counts.repeated},
                        {"restarts", counts.restarts},
                        {"jumps", counts.jumps},
                        {"jump_psns", counts.jump_psns},
                        {"lost", report.lost()},
                        {"known", report.known()}});
        if (!report.known()) list.back()["unknown_because"] = report.unknown_because;
    }
    return list;
}

std::string psns_text(std::span<const PsnReport> reports) {
    constexpr std::size_t listed = 16;
    std::string text;
    std::size_t lines = 0;
    for (const PsnReport& report : reports) {
        const roce::PsnCounts::Values& counts = report.counts;
        if (counts.expected == 0 || (report.lost() == 0 && report.known())) continue;
        if (++lines > listed) continue;
        text += fmt::format("psn       qp {:#x} (source {}): ", report.qp, report.source);
        if (report.proven) text += fmt::format("{} of {} packets never came", counts.missing(), counts.expected);
        if (!report.known())
            text +=
                fmt::format("{}losses unknown, because {}", report.proven ? "; further " : "", report.unknown_because);
        text += "\n";
    }
    if (lines > listed) text += fmt::format("          and {} queue pairs more; the report has all\n", lines - listed);
    return text;
}

}  // namespace weir::observe
