#include "observe/metrics_text.hpp"

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "observe/counter_sections.hpp"
#include "observe/metric_name.hpp"

namespace weir::observe {

namespace {

using nlohmann::json;
using Labels = std::vector<prometheus::ClientMetric::Label>;

const json nothing_there;  // null

/// The member of that name; null where there is none.
const json& member(const json& object, const std::string& name) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    return object.is_object() && found != object.end() ? *found : nothing_there;
}

std::string text_of(const json& value) {
    if (value.is_string()) return value.get<std::string>();
    return value.is_null() ? std::string() : value.dump();
}

class Families {
public:
    /// A number that is not known, null or "unknown", is left out.
    void add(const std::string& name, MetricKind kind, const std::string& help, Labels labels, const json& value) {
        if (!value.is_number() && !value.is_boolean()) return;
        const auto [place, fresh] = places_.emplace(name, families_.size());
        if (fresh)
            families_.push_back(
                {name,
                 help,
                 kind == MetricKind::counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge,
                 {}});
        prometheus::ClientMetric metric;
        metric.label = std::move(labels);
        const double number = value.is_boolean() ? (value.get<bool>() ? 1 : 0) : value.get<double>();
        (kind == MetricKind::counter ? metric.counter.value : metric.gauge.value) = number;
        families_[place->second].metric.push_back(std::move(metric));
    }
    void add(std::string_view name, Labels labels, const json& value) {
        const MetricFamilyInfo& info = other_metric(name);
        add(std::string(name), info.kind, std::string(info.help), std::move(labels), value);
    }
    [[nodiscard]] std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

private:
    std::map<std::string, std::size_t> places_;
    std::vector<prometheus::MetricFamily> families_;
};

/// A counter in an object of the ledger, which has "dropped.late" as {"dropped": {"late": N}}, or flat.
const json& counter_in(const json& object, std::string_view name) {
    if (const json& flat = member(object, std::string(name)); !flat.is_null()) return flat;
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos) return nothing_there;
    return member(member(object, std::string(name.substr(0, dot))), std::string(name.substr(dot + 1)));
}

/// All counters of a section. Cycles are shown as the seconds that stand beside them.
void add_section(Families& families, std::string_view name, const json& values, const Labels& labels = {}) {
    const auto sections = counter_sections();
    const auto section = std::ranges::find(sections, name, &CounterSection::name);
    if (section == sections.end() || !values.is_object()) return;
    for (const core::CounterInfo& counter : section->counters) {
        const MetricName metric = metric_name(name, counter);
        Labels all = labels;
        if (!metric.label.empty()) all.push_back({metric.label, metric.value});
        const json& value = counter_in(values, counter.name == "cycles" ? "seconds" : counter.name);
        families.add(metric.family, metric.kind, metric.help, std::move(all), value);
    }
}

void add_reducers(Families& families, const json& reducers) {
    if (!reducers.is_array()) return;
    for (const json& reducer : reducers) {
        const std::string kind = text_of(member(reducer, "kind"));
        const bool compresses = kind == "zstd" || kind == "pack";
        add_section(families, compresses ? "reduce.codec" : "reduce." + kind, reducer,
                    compresses ? Labels{{"kind", kind}} : Labels{});
    }
}

void add_ledger(Families& families, const json& ledger) {
    const json& packets = member(ledger, "packets");
    families.add("weir_packets_received_total", {}, member(packets, "received"));
    for (const char* part : {"received", "placed", "stored"})
        families.add(fmt::format("weir_{}_bytes_total", part), {}, member(member(ledger, "bytes"), part));
    add_section(families, "packets", packets);
    add_section(families, "messages", member(ledger, "messages"));
    add_section(families, "events", member(ledger, "events"));
    add_section(families, "capture", member(ledger, "capture"));
    add_section(families, "answers", member(member(ledger, "roce"), "answers"));
    add_reducers(families, member(ledger, "reduce"));
    if (const json& ports = member(ledger, "decapsulated"); ports.is_array())
        for (const json& port : ports)
            add_section(families, "decapsulated", port, {{"port", text_of(member(port, "port"))}});
    if (const json& devices = member(ledger, "devices"); devices.is_array())
        for (const json& device : devices)
            add_section(families, "device", device, {{"port", text_of(member(device, "port"))}});
}

/// What is a row each in a list of objects: `columns` are metrics and the members that have their values.
void add_rows(Families& families, const json& rows, std::initializer_list<std::pair<const char*, const char*>> labels,
              std::initializer_list<std::pair<const char*, const char*>> columns) {
    if (!rows.is_array()) return;
    for (const json& row : rows) {
        Labels all;
        for (const auto& [label, key] : labels) all.push_back({label, text_of(member(row, key))});
        for (const auto& [metric, key] : columns) families.add(metric, all, member(row, key));
    }
}

void add_rings(Families& families, const json& rings) {
    if (!rings.is_array()) return;
    for (const json& ring : rings) {
        const std::string name = text_of(member(ring, "name"));
        const Labels labels{{"ring", name}, {"kind", name.substr(0, name.find_first_of("0123456789"))}};
        families.add("weir_ring_used", labels, member(ring, "used"));
        families.add("weir_ring_capacity", labels, member(ring, "size"));
        families.add("weir_ring_full_total", labels, member(ring, "times_full"));
        families.add("weir_ring_dropped_total", labels, member(ring, "dropped"));
    }
}

void add_levels(Families& families, const json& levels) {
    const auto sections = counter_sections();
    const auto section = std::ranges::find(sections, "levels", &CounterSection::name);
    for (const core::CounterInfo& level : section->counters) {
        const json& values = member(levels, std::string(level.name));
        const std::string help = first_sentence(level.help);
        families.add(level_metric(level.name, "used"), MetricKind::gauge, help, {}, member(values, "used"));
        families.add(level_metric(level.name, "capacity"), MetricKind::gauge, "The most that it can be. " + help, {},
                     member(values, "size"));
    }
}

void add_sinks(Families& families, const json& sinks) {
    if (!sinks.is_array()) return;
    std::size_t index = 0;
    for (const json& sink : sinks) {
        const Labels labels{{"sink", std::to_string(index++)}, {"kind", text_of(member(sink, "kind"))}};
        for (const auto& [metric, key] :
             {std::pair("weir_sink_written_events", "written"), std::pair("weir_sink_synced_events", "synced"),
              std::pair("weir_sink_written_bytes", "bytes"), std::pair("weir_sink_lost_events_total", "lost"),
              std::pair("weir_sink_interruptions_total", "interrupted"),
              std::pair("weir_sink_disk_free_bytes", "free_bytes")})
            families.add(metric, labels, member(sink, key));
        families.add("weir_sink_failed", labels, !text_of(member(sink, "error")).empty());
        constexpr double seconds_of_hour = 3600;
        if (const json& hours = member(sink, "hours_left"); hours.is_number())
            families.add("weir_sink_disk_left_seconds", labels, hours.get<double>() * seconds_of_hour);
        const json& dropped = member(sink, "dropped");
        if (!dropped.is_object()) continue;
        for (const auto& [cause, events] : dropped.items()) {
            Labels all = labels;
            all.push_back({"cause", cause});
            families.add("weir_sink_dropped_events_total", std::move(all), events);
        }
    }
}

void add_pipeline(Families& families, const json& pipeline) {
    add_rows(families, member(pipeline, "ports"), {{"port", "name"}}, {{"weir_port_link_up", "link_up"}});
    add_rows(families, member(pipeline, "lcores"), {{"lcore", "lcore"}},
             {{"weir_lcore_busy_ratio", "busy"}, {"weir_lcore_longest_poll_seconds", "longest_poll_s"}});
    add_rows(families, member(pipeline, "stages"), {{"stage", "name"}, {"lcore", "lcore"}},
             {{"weir_stage_busy_ratio", "busy"}, {"weir_stage_blocked_ratio", "blocked"}});
    add_rings(families, member(pipeline, "rings"));
    add_levels(families, member(pipeline, "levels"));
    add_sinks(families, member(pipeline, "sinks"));
    const json& recorder = member(pipeline, "recorder");
    add_section(families, "recorder", recorder);
    families.add("weir_recorder_bytes_total", {}, member(recorder, "bytes"));
}

void add_sources(Families& families, const json& sources) {
    const json& names = member(sources, "label");
    if (!names.is_array()) return;
    for (const auto& [metric, key] :
         {std::pair("weir_source_packets_total", "packets"), std::pair("weir_source_missing_packets", "missing"),
          std::pair("weir_source_last_seen_seconds", "last_seen_s"), std::pair("weir_source_lagging", "lagging")}) {
        const json& column = member(sources, key);
        for (std::size_t i = 0; i < std::min(names.size(), column.is_array() ? column.size() : 0); ++i)
            families.add(metric, {{"source", std::to_string(i)}, {"name", text_of(names[i])}}, column[i]);
    }
}

void add_findings(Families& families, const json& findings) {
    if (!findings.is_array()) return;
    for (const char* severity : {"error", "warning", "note"})
        families.add("weir_findings", {{"severity", severity}},
                     std::ranges::count_if(findings, [&](const json& finding) {
                         return text_of(member(finding, "severity")) == severity;
                     }));
}

void add_readout_node(Families& families, const json& readout) {
    if (!readout.is_object()) return;
    const json& parts = member(readout, "parts");
    families.add("weir_cluster_parts_offered_total", {}, member(parts, "offered"));
    families.add("weir_cluster_parts_not_held_total", {}, member(parts, "not_held"));
    families.add("weir_cluster_parts_too_late_total", {}, member(parts, "too_late"));
    families.add("weir_cluster_parts_held", {}, member(parts, "held"));
    add_rows(families, member(readout, "builders"), {{"to", "node"}},
             {{"weir_cluster_parts_handed_over_total", "handed_over"},
              {"weir_cluster_waited_for_seconds_total", "waited_s"}});
    const json& memory = member(readout, "memory");
    families.add("weir_cluster_memory_used_bytes", {}, member(memory, "used"));
    families.add("weir_cluster_memory_capacity_bytes", {}, member(memory, "bound"));
    families.add("weir_cluster_waited_seconds_total", {}, member(memory, "waited_s"));
}

void add_builder(Families& families, const json& builder) {
    if (!builder.is_object()) return;
    const json& blocks = member(builder, "blocks");
    families.add("weir_cluster_blocks_assigned_total", {}, member(blocks, "assigned"));
    families.add("weir_cluster_blocks_in_hand", {}, member(blocks, "in_hand"));
    for (const char* parts : {"complete", "incomplete", "empty"})
        families.add("weir_cluster_blocks_built_total", {{"parts", parts}}, member(blocks, parts));
    families.add("weir_cluster_parts_malformed_total", {}, member(builder, "malformed_parts"));
    const json& readouts = member(builder, "readouts");
    add_rows(families, readouts, {{"from", "node"}},
             {{"weir_cluster_parts_received_total", "received"},
              {"weir_cluster_parts_received_late_total", "received_late"},
              {"weir_cluster_awaited_seconds_total", "awaited_s"}});
    if (!readouts.is_array()) return;
    for (const json& readout : readouts)
        for (const char* cause : {"node_down", "not_held", "late"})
            families.add("weir_cluster_parts_missing_total",
                         {{"from", text_of(member(readout, "node"))}, {"cause", cause}},
                         member(member(readout, "missing"), cause));
}

/// Of a spare that is absent nothing is said: it is not missing.
void add_nodes(Families& families, const json& nodes) {
    if (!nodes.is_array()) return;
    for (const json& node : nodes)
        if (member(node, "up") == true || member(node, "spare") != true)
            families.add("weir_cluster_node_up",
                         {{"node", text_of(member(node, "name"))}, {"role", text_of(member(node, "role"))}},
                         member(node, "up"));
}

void add_cluster(Families& families, const json& cluster) {
    if (!cluster.is_object()) return;
    families.add("weir_cluster_info",
                 {{"node", text_of(member(cluster, "node"))}, {"role", text_of(member(cluster, "role"))}}, 1);
    add_nodes(families, member(cluster, "nodes"));
    const json& manager = member(cluster, "manager");
    families.add("weir_cluster_manages", {}, member(manager, "manages") == true);
    families.add("weir_cluster_blocks_given_out_total", {}, member(manager, "assigned"));
    families.add("weir_cluster_blocks_given_out_again_total", {}, member(manager, "assigned_again"));
    families.add("weir_cluster_lives", {}, member(cluster, "lives"));
    families.add("weir_cluster_callers_refused_total", {}, member(cluster, "callers_refused"));
    families.add("weir_cluster_quorum", {}, member(cluster, "has_quorum") == true);
    for (const char* cause : {"builder_down", "nothing_held", "node_down", "late"})
        families.add("weir_cluster_lost_blocks", {{"cause", cause}}, member(member(cluster, "lost_blocks"), cause));
    add_readout_node(families, member(cluster, "readout"));
    add_builder(families, member(cluster, "builder"));
}

/// The program and what it does; of a run only where there is one.
void add_state(Families& families, const json& document) {
    families.add("weir_build_info", {{"version", text_of(member(document, "version"))}}, 1);
    const json& status = member(document, "status");
    const std::string state = text_of(member(status, "state"));
    if (!state.empty())
        for (const char* one : {"idle", "arming", "running", "stopping"})
            families.add("weir_state", {{"state", one}}, state == one);
    const json& run = member(document, "run");
    if (!run.is_object()) return;
    families.add("weir_run_info",
                 {{"name", text_of(member(document, "name"))},
                  {"host", text_of(member(document, "host"))},
                  {"run", text_of(member(run, "number"))},
                  {"mode", text_of(member(status, "mode"))}},
                 1);
    families.add("weir_run_seconds", {}, member(run, "seconds"));
}

}  // namespace

std::string metrics_text(const json& document) {
    Families families;
    add_state(families, document);
    add_ledger(families, member(document, "ledger"));
    if (const json& where = member(document, "where"); where.is_array())
        add_rows(families, where, {{"place", "place"}}, {{"weir_lost_packets", "packets"}});
    add_findings(families, member(document, "findings"));
    add_sources(families, member(document, "sources"));
    add_pipeline(families, member(document, "pipeline"));
    add_cluster(families, member(document, "cluster"));
    return families.text();
}

}  // namespace weir::observe
