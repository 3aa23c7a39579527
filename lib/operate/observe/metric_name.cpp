#include "observe/metric_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "observe/counter_sections.hpp"

namespace weir::observe {

namespace {

/// The name with its unit last: cycles are shown as seconds.
std::string with_unit(std::string_view section, std::string_view counter) {
    std::string name(counter);
    std::ranges::replace(name, '.', '_');
    if (name == "cycles") return "seconds";
    if (name == "bytes_in") return "in_bytes";
    if (name == "bytes_out") return "out_bytes";
    const bool of_packets = section == "device" || section == "capture" ||
                            (section == "recorder" && (name == "seen" || name == "written" || name == "left_out"));
    return of_packets ? name + "_packets" : name;
}

constexpr auto a_counter = MetricKind::counter;
constexpr auto a_gauge = MetricKind::gauge;

constexpr MetricFamilyInfo others_listed[] = {
    {"weir_build_info", a_gauge, "version", "The program that is running; always 1."},
    {"weir_state", a_gauge, "state", "1 for the state that it is in: idle, arming, running, stopping."},
    {"weir_run_info", a_gauge, "name, host, run, mode", "The run that the other numbers are of; always 1."},
    {"weir_run_seconds", a_gauge, "", "How long the run has been going on."},
    {"weir_packets_received_total", a_counter, "",
     "Packets of the run, as counted by the device or the capture reader."},
    {"weir_received_bytes_total", a_counter, "", "Bytes of these packets."},
    {"weir_placed_bytes_total", a_counter, "", "Bytes of payload that went into events."},
    {"weir_stored_bytes_total", a_counter, "", "Bytes that workers made of events, for the sinks."},
    {"weir_lost_packets", a_gauge, "place",
     "Packets that were lost on the way, in the NIC, in the kernel, in weir; a place of which it is not known is missing."},
    {"weir_findings", a_gauge, "severity", "Sentences that the run has to say of itself."},
    {"weir_source_packets_total", a_counter, "source, name", "Packets of the source."},
    {"weir_source_missing_packets", a_gauge, "source, name", "Packets of the source that are known to be missing."},
    {"weir_source_last_seen_seconds", a_gauge, "source, name",
     "Since the last packet of the source; missing until the first."},
    {"weir_source_lagging", a_gauge, "source, name", "1 where the source stands out by its rate or its silence."},
    {"weir_port_link_up", a_gauge, "port", "1 where the port has a link."},
    {"weir_lcore_busy_ratio", a_gauge, "lcore", "Share of the lcore's time that went into work, lately."},
    {"weir_lcore_longest_poll_seconds", a_gauge, "lcore",
     "The longest so far from the beginning of a poll of all its stages to that of the next."},
    {"weir_stage_busy_ratio", a_gauge, "stage, lcore",
     "Share of its lcore's time that went into work of the stage, lately."},
    {"weir_stage_blocked_ratio", a_gauge, "stage, lcore",
     "Share of the time in which the stage waited for room, lately."},
    {"weir_ring_used", a_gauge, "ring, kind", "Elements in the ring."},
    {"weir_ring_capacity", a_gauge, "ring, kind", "Elements that the ring holds."},
    {"weir_ring_full_total", a_counter, "ring, kind", "Pushes that did not find room for all they brought."},
    {"weir_ring_dropped_total", a_counter, "ring, kind", "Elements that were given up because the ring was full."},
    {"weir_sink_written_events", a_gauge, "sink, kind", "Events that are in the sink."},
    {"weir_sink_synced_events", a_gauge, "sink, kind", "Of these, events that are on the device."},
    {"weir_sink_written_bytes", a_gauge, "sink, kind", "Bytes in the sink."},
    {"weir_sink_lost_events_total", a_counter, "sink, kind", "Events that the sink was given and lost to its error."},
    {"weir_sink_dropped_events_total", a_counter, "sink, kind, cause", "Events that the sink left out, as it may."},
    {"weir_sink_interruptions_total", a_counter, "sink, kind",
     "Times that who takes the events went away in the middle."},
    {"weir_sink_failed", a_gauge, "sink, kind", "1 where the sink has failed."},
    {"weir_sink_disk_free_bytes", a_gauge, "sink, kind", "Free on the file system that the sink writes to."},
    {"weir_sink_disk_left_seconds", a_gauge, "sink, kind",
     "Until that is full, at the rate of the last ten seconds; missing where nothing is written."},
    {"weir_recorder_bytes_total", a_counter, "", "Bytes in the recorder's files."},
    {"weir_cluster_info", a_gauge, "node, role", "The node of a cluster that this is; always 1."},
    {"weir_cluster_node_up", a_gauge, "node, role",
     "1 where this node sees that one. Spares that are absent are left out."},
    {"weir_cluster_manages", a_gauge, "", "1 where this node gives out blocks."},
    {"weir_cluster_blocks_given_out_total", a_counter, "", "Blocks that this node gave to builders, each once."},
    {"weir_cluster_blocks_given_out_again_total", a_counter, "",
     "Blocks that it gave out again, because their builder went away."},
    {"weir_cluster_lives", a_gauge, "", "1; more where the others took it for dead and it began anew."},
    {"weir_cluster_callers_refused_total", a_counter, "",
     "Hellos that were not believed, and connections that began with something else."},
    {"weir_cluster_quorum", a_gauge, "",
     "0 where too few of the other nodes are in reach: this part of the cluster waits."},
    {"weir_cluster_lost_blocks", a_gauge, "cause", "Blocks that are lost whole, as far as this node has heard."},
    {"weir_cluster_parts_offered_total", a_counter, "", "Parts of blocks that came here."},
    {"weir_cluster_parts_handed_over_total", a_counter, "to", "Parts that were sent to the builder."},
    {"weir_cluster_parts_not_held_total", a_counter, "", "Parts that a builder wanted and that are not here."},
    {"weir_cluster_parts_too_late_total", a_counter, "", "Parts that the others had not waited for."},
    {"weir_cluster_parts_held", a_gauge, "", "Parts that nobody has released yet."},
    {"weir_cluster_memory_used_bytes", a_gauge, "", "Memory that parts take."},
    {"weir_cluster_memory_capacity_bytes", a_gauge, "", "Memory that they may take."},
    {"weir_cluster_waited_seconds_total", a_counter, "", "How long there was no room in it."},
    {"weir_cluster_waited_for_seconds_total", a_counter, "to",
     "Of that, while the builder was waited for: it had the oldest block, or took no parts."},
    {"weir_cluster_blocks_assigned_total", a_counter, "", "Blocks that were given to this builder."},
    {"weir_cluster_blocks_built_total", a_counter, "parts",
     "Blocks that it built: complete, incomplete, or empty because nobody had a part."},
    {"weir_cluster_blocks_in_hand", a_gauge, "", "Blocks in the pipeline, or on their way to the disk."},
    {"weir_cluster_parts_received_total", a_counter, "from", "Parts that came from the readout node."},
    {"weir_cluster_parts_received_late_total", a_counter, "from", "Parts whose block had been built without them."},
    {"weir_cluster_awaited_seconds_total", a_counter, "from",
     "How long the oldest block lacked the part of that readout node, and no other."},
    {"weir_cluster_parts_missing_total", a_counter, "from, cause", "Parts that blocks were built without."},
    {"weir_cluster_parts_malformed_total", a_counter, "", "Parts that could not be used."},
};

std::string cell(std::string_view text) {
    std::string out;
    for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
    return out;
}

std::string_view kind_text(MetricKind kind) {
    return kind == MetricKind::counter ? "counter" : "gauge";
}

}  // namespace

std::string first_sentence(std::string_view text) {
    const std::size_t end = text.find(". ");
    return std::string(text.substr(0, end == std::string_view::npos ? end : end + 1));
}

MetricName metric_name(std::string_view section, const core::CounterInfo& counter) {
    MetricName metric;
    metric.kind = counter.falls ? MetricKind::gauge : MetricKind::counter;
    const std::string suffix = counter.falls ? "" : "_total";
    if (const core::CounterFamily* family = counter.family; family != nullptr) {
        metric.family = fmt::format("weir_{}{}", family->metric, suffix);
        metric.label = family->label;
        metric.value = counter.label_value();
        metric.help = family->help;
        return metric;
    }
    std::string place = section == "answers" ? std::string("roce_answers") : std::string(section);
    std::ranges::replace(place, '.', '_');
    metric.family = fmt::format("weir_{}_{}{}", place, with_unit(section, counter.name), suffix);
    metric.help = counter.name == "cycles" ? "Time spent, on all lcores together." : first_sentence(counter.help);
    return metric;
}

std::span<const MetricFamilyInfo> other_metrics() {
    return others_listed;
}

const MetricFamilyInfo& other_metric(std::string_view name) {
    const auto* const found = std::ranges::find(others_listed, name, &MetricFamilyInfo::name);
    if (found == std::end(others_listed)) throw std::logic_error(fmt::format("the metric {} is not listed", name));
    return *found;
}

std::string level_metric(std::string_view level, std::string_view what) {
    return fmt::format("weir_level_{}_{}", level, what);
}

std::string metrics_markdown() {
    std::string text =
        "# Metrics\n\n"
        "What `/metrics` has for Prometheus. Made from the counter tables and from the list in\n"
        "`lib/operate/observe/metric_name.cpp`, and held to both by a test; edit these, not this page. How to scrape them, with a\n"
        "dashboard and alerts: [Prometheus and Grafana](../guides/PROMETHEUS.md).\n\n"
        "Counters grow within a run and begin again with the next one of `weir serve`, which Prometheus takes for what it\n"
        "is, a reset: `increase()` and `rate()` go on. What may also shrink is a gauge. A number that is not known is not\n"
        "there. While no run has been started there are `weir_build_info` and `weir_state` alone.\n\n"
        "## The run, its sources, lcores, rings and sinks\n\n"
        "| metric | kind | labels | what it is |\n|---|---|---|---|\n";
    for (const MetricFamilyInfo& info : other_metrics())
        text += fmt::format("| `{}` | {} | {} | {} |\n", info.name, kind_text(info.kind), info.labels, cell(info.help));
    for (const CounterSection& section : counter_sections()) {
        if (section.name == "rings") continue;  // by the label `kind`, above
        text += fmt::format("\n## {}\n\n{}\n\n| metric | kind | what it is |\n|---|---|---|\n", section.name,
                            section.title);
        for (const core::CounterInfo& counter : section.counters) {
            if (section.name == "levels") {
                for (const char* what : {"used", "capacity"})
                    text += fmt::format("| `{}` | gauge | {} |\n", level_metric(counter.name, what),
                                        cell(first_sentence(counter.help)));
                continue;
            }
            const MetricName metric = metric_name(section.name, counter);
            const std::string label =
                metric.label.empty() ? std::string() : fmt::format("{{{}=\"{}\"}}", metric.label, metric.value);
            text += fmt::format("| `{}{}` | {} | {} |\n", metric.family, label, kind_text(metric.kind),
                                cell(counter.name == "cycles" ? std::string_view(metric.help)
                                                              : std::string_view(first_sentence(counter.help))));
        }
    }
    return text;
}

}  // namespace weir::observe
