#include "inspect_cluster_json.hpp"

#include <nlohmann/json.hpp>
#include <optional>

namespace weir::app {

namespace {

using nlohmann::json;

/// Null: nobody knows.
template <class T>
json known_or_null(const std::optional<T>& value) {
    return value ? json(*value) : json();
}

const char* state_name(store::RunState state) {
    switch (state) {
        case store::RunState::closed:
            return "closed";
        case store::RunState::interrupted:
            return "interrupted";
        case store::RunState::left:
            return "left";
        case store::RunState::being_written:
            return "being written";
        case store::RunState::damaged:
            break;
    }
    return "damaged";
}

json member_run_json(const store::ClusterRun::Run& run, const store::Verification& check) {
    const bool good = check.verified && !check.payload_read;
    return {{"path", run.reader.path().string()},
            {"state", state_name(run.state)},
            {"events", check.events},
            {"complete", check.complete},
            {"incomplete", check.heads - check.complete},
            {"payload_bytes", check.payload_bytes},
            {"stored_bytes", check.stored_bytes},
            {"verified", good ? json() : json(check.verified)}};
}

json member_json(const store::ClusterRun& cluster, const store::ClusterRun::Member& member,
                 const store::ClusterEvents& events) {
    json runs = json::array();
    for (const std::size_t run : member.runs) runs.push_back(member_run_json(cluster.runs[run], events.runs[run]));
    json reports = json::array();
    for (const store::ClusterRun::Report& report : member.reports) reports.push_back(report.name);
    json object = {{"name", member.name.empty() ? json() : json(member.name)},
                   {"role", member.role},
                   {"spare", member.is_spare},
                   {"found", member.is_found()},
                   {"account", member.account_is_whole},
                   {"runs", std::move(runs)},
                   {"reports", std::move(reports)}};
    if (member.account) object["lives"] = member.account->lives;
    if (member.is_readout()) object["events_sent"] = known_or_null(member.events_sent);
    return object;
}

json place_json(const std::optional<store::ClusterEvents::Place>& place) {
    return place ? json{{"epoch", place->epoch}, {"id", place->id}} : json();
}

json events_json(const store::ClusterRun& cluster, const store::ClusterEvents& events) {
    json incomplete = json::object();
    for (std::size_t i = 1; i < events.causes.size(); ++i)
        incomplete[std::string(store::cause_names[i])] = events.causes[i];
    json listed = json::array();
    for (const store::ClusterEvents::Twice& twice : events.twice_listed) {
        json runs = json::array();
        for (const std::size_t run : twice.runs) runs.push_back(cluster.runs[run].name);
        listed.push_back({{"epoch", twice.epoch}, {"id", twice.id}, {"runs", std::move(runs)}});
    }
    return {{"events", events.all.events},
            {"complete", events.all.complete},
            {"incomplete", std::move(incomplete)},
            {"lowest", place_json(events.lowest)},
            {"highest", place_json(events.highest)},
            {"payload_bytes", events.all.payload_bytes},
            {"stored_bytes", events.all.stored_bytes},
            {"more_than_once", {{"total", events.twice}, {"list", std::move(listed)}}}};
}

json lost_json(const store::ClusterEvents& events, const store::ClusterLedger& ledger, std::uint64_t block_numbers) {
    constexpr std::size_t listed_max = 1000;
    json list = json::array();
    for (const auto& [first, block] : ledger.lost)
        if (list.size() < listed_max)
            list.push_back(
                {{"block", first / block_numbers}, {"first", first}, {"last", block.last}, {"cause", block.cause}});
    json counts = {{"builder_down", 0}, {"nothing_held", 0}, {"node_down", 0}, {"late", 0}};
    counts.update(json(ledger.lost_counts));
    counts["events_found"] = events.lost_found;
    counts["events_found_left"] = events.lost_found_left;
    counts["list"] = std::move(list);
    return counts;
}

json pairs_json(const store::ClusterLedger& ledger) {
    json pairs = json::array();
    for (const store::ClusterLedger::Pair& pair : ledger.pairs)
        pairs.push_back({{"readout", pair.readout},
                         {"builder", pair.builder},
                         {"handed_over", known_or_null(pair.handed_over)},
                         {"received", known_or_null(pair.received)},
                         {"received_late", known_or_null(pair.received_late)},
                         {"equal", known_or_null(pair.is_equal())}});
    return pairs;
}

json blocks_json(const store::ClusterLedger::Blocks& blocks) {
    return {{"assigned", known_or_null(blocks.assigned)},
            {"assigned_is_all", blocks.assigned_is_all},
            {"assigned_again", blocks.assigned_again},
            {"complete", blocks.complete},
            {"incomplete", blocks.incomplete},
            {"empty", blocks.empty},
            {"given_up", blocks.given_up},
            {"lost", blocks.lost},
            {"unaccounted", blocks.unaccounted},
            {"balanced", known_or_null(blocks.balanced)},
            {"why", blocks.why}};
}

/// One by one: GCC 12 takes the allocator of a list that is made at once for a wrong one (app/process.cpp has its own).
json texts_json(const std::vector<std::string>& texts) {
    json list = json::array();
    for (const std::string& text : texts) list.push_back(text);
    return list;
}

}  // namespace

json cluster_json(const store::ClusterRun& cluster, const store::ClusterEvents& events,
                  const store::ClusterLedger& ledger) {
    json nodes = json::array();
    for (const store::ClusterRun::Member& member : cluster.members)
        nodes.push_back(member_json(cluster, member, events));
    const store::Verification& all = events.all;
    json object = {{"cluster",
                    {{"path", cluster.path.string()},
                     {"block", cluster.block},
                     {"nodes", std::move(nodes)},
                     {"totals", events_json(cluster, events)},
                     {"lost_blocks", lost_json(events, ledger, std::max<std::uint64_t>(1, cluster.block))},
                     {"pairs", pairs_json(ledger)},
                     {"missing_parts", json(ledger.missing)},
                     {"blocks", blocks_json(ledger.blocks)},
                     {"lossless", ledger.lossless},
                     {"evidence", texts_json(ledger.evidence)},
                     {"notes", texts_json(cluster.notes)}}}};
    object["errors"] = texts_json(all.problems);
    object["checked"] = all.payload_read ? "everything" : "all but the payload";
    // "true" is never said of what was not read.
    object["verified"] = all.verified && !all.payload_read ? json() : json(all.verified);
    return object;
}

}  // namespace weir::app
