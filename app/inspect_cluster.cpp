#include "inspect_cluster.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "assemble/event_cause.hpp"
#include "events_json.hpp"
#include "inspect_cluster_json.hpp"
#include "run_text.hpp"
#include "terminal.hpp"

namespace weir::app {

namespace {

using store::ClusterEvents;
using store::ClusterLedger;
using store::ClusterRun;
using store::RunState;

constexpr std::size_t problems_shown = 20;

/// To standard output, in lines that fit the terminal.
void put_lines(const std::string& text, std::size_t hang = 2) {
    std::cout << wrapped(text, columns_of(STDOUT_FILENO), hang);
}

const char* state_text(RunState state) {
    switch (state) {
        case RunState::closed:
            return "";
        case RunState::interrupted:
            return ", ended by force, closed later";
        case RunState::left:
            return ", ended by force";
        case RunState::being_written:
            return ", still being written";
        case RunState::damaged:
            break;
    }
    return ", its manifest is damaged";
}

void print_cluster_heading(const ClusterRun& cluster) {
    std::uint64_t builders = 0;
    std::uint64_t readouts = 0;
    std::int64_t begun = 0;
    for (const ClusterRun::Member& member : cluster.members) {
        builders += member.is_builder() ? 1 : 0;
        readouts += member.is_readout() ? 1 : 0;
    }
    for (const ClusterRun::Run& run : cluster.runs)
        if (begun == 0 || (run.reader.created_ns() != 0 && run.reader.created_ns() < begun))
            begun = run.reader.created_ns();
    put_lines(fmt::format("run of a cluster in {}: {}, {}, blocks of {}; begun {} UTC\n\n", cluster.path.string(),
                          count_text(readouts, "readout node"), count_text(builders, "builder"),
                          count_text(cluster.block, "event number"), time_text(begun)));
}

/// "bu1", or "?" where nobody knows
std::string member_text(const ClusterRun::Member& member) {
    return member.name.empty() ? "?" : member.name;
}

void print_node_row(const std::string& name, const std::string& role, const std::string& events,
                    const std::string& complete, const std::string& incomplete, const std::string& what) {
    put_lines(fmt::format("{:<10}  {:<7}  {:>8}  {:>8}  {:>10}  {}\n", name, role, events, complete, incomplete, what),
              7);
}

/// A builder's runs, a row each.
void print_runs(const ClusterRun& cluster, const ClusterRun::Member& member, const ClusterEvents& events) {
    for (const std::size_t number : member.runs) {
        const store::Verification& check = events.runs[number];
        const ClusterRun::Run& run = cluster.runs[number];
        print_node_row(member_text(member), member.role, std::to_string(check.events), std::to_string(check.complete),
                       std::to_string(check.heads - check.complete), run.name + state_text(run.state));
    }
}

std::string reports_text(const ClusterRun::Member& member) {
    std::string text;
    for (const ClusterRun::Report& report : member.reports) text += (text.empty() ? "" : ", ") + report.name;
    return text;
}

void print_nodes(const ClusterRun& cluster, const ClusterEvents& events) {
    print_node_row("node", "role", "events", "complete", "incomplete", "found");
    for (const ClusterRun::Member& member : cluster.members) {
        print_runs(cluster, member, events);
        if (!member.runs.empty()) continue;
        const std::string sent = member.events_sent ? std::to_string(*member.events_sent) : "";
        std::string what = reports_text(member);
        if (what.empty()) what = member.is_spare ? "nothing; it is a spare" : "nothing";
        if (member.is_builder() && member.is_found()) what += ", and no run";
        print_node_row(member_text(member), member.role, sent, "", "", what);
    }
    for (const std::string& note : cluster.notes) put_lines(fmt::format("  {}\n", note));
}

void print_event_totals(const ClusterEvents& events) {
    const store::Verification& all = events.all;
    std::string text = fmt::format("\n{}, ", count_text(all.events, "event"));
    if (all.heads == all.events)
        text += fmt::format("{} complete, {} incomplete; ", all.complete, all.events - all.complete);
    if (events.lowest) {
        const auto name = [&](const ClusterEvents::Place& place) {
            return events.highest->epoch > 0 ? fmt::format("{}:{}", place.epoch, place.id) : std::to_string(place.id);
        };
        text += fmt::format("numbers {} to {}; ", name(*events.lowest), name(*events.highest));
    }
    put_lines(text + fmt::format("{} of payload in {} on disk, {}\n", bytes_text(all.payload_bytes),
                                 bytes_text(all.stored_bytes), count_text(all.segments, "segment")));
    if (events.twice > 0)
        put_lines(fmt::format("{} there more than once\n",
                              count_text(events.twice, "event") + (events.twice == 1 ? " is" : " are")));
    if (all.complete == all.heads) return;
    put_lines("\nwhy events are incomplete\n");
    for (std::size_t cause = 1; cause < events.causes.size(); ++cause) {
        if (events.causes[cause] == 0) continue;
        const auto counter = assemble::counter_of(static_cast<assemble::EventCause>(cause));
        put_lines(fmt::format("  {:<12} {:>10}  {}\n", store::cause_names[cause],
                              count_text(events.causes[cause], "event"),
                              assemble::event_counters[static_cast<std::size_t>(counter)].help));
    }
}

void print_lost_blocks(const ClusterEvents& events, const ClusterLedger& ledger) {
    if (ledger.lost_total() == 0) return;
    put_lines("\nblocks that the nodes list as lost\n");
    for (const auto& [cause, count] : ledger.lost_counts)
        if (count > 0) put_lines(fmt::format("  {:<12} {:>10}\n", cause, count_text(count, "block")));
    put_lines(fmt::format(
        "  of their events {} found all the same, {} of them in what a builder left that was ended "
        "by force\n",
        std::to_string(events.lost_found) + (events.lost_found == 1 ? " is" : " are"), events.lost_found_left));
}

/// "217", or "?" where nobody says
std::string number_text(const std::optional<std::uint64_t>& number) {
    return number ? std::to_string(*number) : "?";
}

std::string received_text(const ClusterLedger::Pair& pair) {
    std::string text = number_text(pair.received);
    if (pair.received_late.value_or(0) > 0) text += fmt::format(" + {} late", *pair.received_late);
    return text;
}

void print_pairs(const ClusterLedger& ledger) {
    put_lines("\nparts of blocks, as both ends count them\n");
    put_lines(fmt::format("  {:<28}  {:>11}  {:>16}\n", "", "handed over", "received"));
    for (const ClusterLedger::Pair& pair : ledger.pairs) {
        const std::optional<bool> equal = pair.is_equal();
        std::string verdict = "equal";
        if (!equal) verdict = "unknown";
        if (equal == false) verdict = "NOT equal";
        put_lines(fmt::format("  {:<28}  {:>11}  {:>16}  {}\n", fmt::format("{} to {}", pair.readout, pair.builder),
                              number_text(pair.handed_over), received_text(pair), verdict));
    }
    for (const auto& [readout, counts] : ledger.missing) {
        std::string text;
        for (const auto& [cause, count] : counts)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", cause, count);
        put_lines(fmt::format("  {}: parts missing: {}\n", readout, text));
    }
}

/// "376", or what of it is known.
std::string assigned_text(const ClusterLedger::Blocks& blocks) {
    if (!blocks.assigned) return "unknown how many";
    const bool is_less = !blocks.assigned_is_all && blocks.balanced != true;
    return fmt::format("{}{}", *blocks.assigned, is_less ? " or more" : "");
}

void print_blocks(const ClusterLedger& ledger) {
    const ClusterLedger::Blocks& blocks = ledger.blocks;
    std::string text =
        fmt::format("\nblocks: {} assigned; {} built with all parts, {} without some, {} empty, {} lost",
                    assigned_text(blocks), blocks.complete, blocks.incomplete, blocks.empty, blocks.lost);
    if (blocks.given_up > 0)
        text +=
            fmt::format(", {} of those built not written because the sinks of their builder failed", blocks.given_up);
    if (blocks.unaccounted > 0)
        text += fmt::format(", {} found in runs of builders that have left no account", blocks.unaccounted);
    if (blocks.balanced == true) text += "; they balance";
    put_lines(text + "\n");
    for (const std::string& why : blocks.why)
        put_lines(fmt::format("  {}: {}\n",
                              blocks.balanced.has_value() ? "they do NOT balance" : "whether they balance is unknown",
                              why));
}

void print_verification(const ClusterRun& cluster, const store::Verification& all, const ClusterLedger& ledger) {
    if (all.verified) {
        const std::uint64_t lost = ledger.lost_total();
        put_lines(
            (all.payload_read ? "\nverified: every block, the indexes, the manifests and the ledgers are whole and "
                                "agree, and no event is there twice"
                              : "\nnot verified: the payload was not read (without --quick it is). All else is "
                                "whole and agrees, and no event is there twice") +
                (lost > 0
                     ? fmt::format("; but {} lost, see above", count_text(lost, "block") + (lost == 1 ? " is" : " are"))
                     : std::string()) +
                "\n",
            0);
        return;
    }
    put_lines(fmt::format("\nNOT verified, {}:\n", count_text(all.problem_count, "problem")));
    const std::size_t shown = std::min(problems_shown, all.problems.size());
    for (std::size_t i = 0; i < shown; ++i) put_lines("  " + all.problems[i] + "\n");
    if (all.problem_count > shown) put_lines(fmt::format("  and {} more\n", all.problem_count - shown));
    if (std::ranges::any_of(cluster.runs, [](const auto& run) { return run.state == RunState::being_written; }))
        put_lines("Look again when all are finished: the ledgers come last.\n", 0);
}

/// What follows the events, if these are listed, in the same object.
void print_cluster_json(const ClusterRun& cluster, const ClusterEvents& events, const ClusterLedger& ledger,
                        bool follows) {
    const std::string text =
        cluster_json(cluster, events, ledger).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
    std::cout << (follows ? "," : "") << text.substr(1) << '\n';
}

void print_cluster(const ClusterRun& cluster, const ClusterEvents& events, const ClusterLedger& ledger) {
    print_nodes(cluster, events);
    print_event_totals(events);
    print_lost_blocks(events, ledger);
    print_pairs(ledger);
    print_blocks(ledger);
    put_lines(fmt::format("\nlossless: {}\n", ledger.lossless));
    for (const std::string& line : ledger.evidence) put_lines(fmt::format("  {}\n", line));
    print_verification(cluster, events.all, ledger);
}

}  // namespace

int inspect_cluster(const store::ClusterRun& cluster, const store::RunReader& run, const InspectCluster& options) {
    std::uint64_t done = 0;
    Progress progress("reading", run.stored_bytes(), options.json);
    const auto count = [&](const store::EventInfo& event) { progress.at(done += event.stored_bytes); };
    const TableOptions& table = options.table;
    const bool listed = table.all || table.incomplete || (options.json && options.digest);
    store::ScanHooks hooks;
    hooks.end = count;
    std::optional<EventTable> rows;
    std::optional<EventsJson> objects;
    if (options.json) std::cout << "{";
    if (!options.json) print_cluster_heading(cluster);
    if (listed && !options.json) hooks = rows.emplace(run, table, progress).hooks(count);
    if (listed && options.json)
        hooks = objects.emplace(run, EventsJson::Options{options.digest, table.incomplete}).hooks(count);
    ClusterEvents events = store::read_cluster_events(cluster, store::lost_cluster_blocks(cluster), table.quick, hooks);
    if (rows) {
        rows->finish(events.all);
        put_lines("\n");
    }
    if (objects) objects->finish(events.all);
    const ClusterLedger ledger = store::make_cluster_ledger(cluster, events);
    progress.clear();
    if (options.json)
        print_cluster_json(cluster, events, ledger, listed);
    else
        print_cluster(cluster, events, ledger);
    return events.all.verified ? lossless_status({ledger.lossless, ledger.evidence}, options.require, "inspect") : 1;
}

}  // namespace weir::app
