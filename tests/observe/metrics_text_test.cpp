// What Prometheus is told: every counter of the tables once, by its own name, with the ledger's value.
#include "observe/metrics_text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "observe/counter_sections.hpp"
#include "observe/ledger_json.hpp"
#include "observe/loss_places.hpp"
#include "observe/metric_name.hpp"
#include "pipeline/level_counters.hpp"
#include "roce/responder/answer_counter.hpp"
#include "set_counter.hpp"
#include "source_root.hpp"
#include "temporary_directory.hpp"

namespace {

using namespace weir::observe;
using nlohmann::json;

/// "weir_packets_dropped_total{cause=\"late\"}" -> value; no series twice.
std::map<std::string, double> series_of(const std::string& text) {
    std::map<std::string, double> series;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('#')) continue;
        const std::size_t space = line.rfind(' ');
        EXPECT_TRUE(series.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second) << line;
    }
    return series;
}

std::string series_name(const MetricName& metric, const std::string& more_labels = "") {
    std::string labels = more_labels;
    if (!metric.label.empty())
        labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", metric.label, metric.value);
    return labels.empty() ? metric.family : fmt::format("{}{{{}}}", metric.family, labels);
}

/// A ledger in which no two counters are alike.
Ledger full_ledger() {
    Ledger ledger;
    std::uint64_t next = 1000;
    for (auto* values : {ledger.packets.data(), ledger.messages.data(), ledger.events.data(), ledger.answers.data()}) {
        const std::size_t count = values == ledger.packets.data()    ? ledger.packets.size()
                                  : values == ledger.messages.data() ? ledger.messages.size()
                                  : values == ledger.events.data()   ? ledger.events.size()
                                                                     : ledger.answers.size();
        for (std::size_t i = 0; i < count; ++i) values[i] = next++;
    }
    for (const std::uint64_t packets : ledger.packets) ledger.received += packets;
    ledger.received_bytes = 123'456'789'012'345;
    ledger.placed_bytes = 7;
    ledger.stored_bytes = 8;
    ledger.devices = {{"det0", "net_af_packet", 5001, 5002, 5003, 5004, Ledger::Before::kernel, "veth0"}};
    ledger.device_missed = 10005;
    ledger.capture = {70'001, 70'002, {}, 0};
    ledger.decapsulated = {{"det0", weir::wire::Tunnels::all(), {71'001, 71'002, 71'003, 71'004}}};
    ledger.psns.resize(1);
    ledger.sources = {{77, 3}, {78, 0}};
    ledger.sequence_known = true;
    return ledger;
}

/// As reduce_json() has it, which asks DPDK for the length of a cycle.
json reducers() {
    json list = json::array();
    std::uint64_t next = 20'000;
    for (const CounterSection& section : counter_sections()) {
        if (!section.name.starts_with("reduce.")) continue;
        const bool codec = section.name == "reduce.codec";
        for (const std::string& kind : codec ? std::vector<std::string>{"zstd", "pack"}
                                             : std::vector<std::string>{std::string(section.name.substr(7))}) {
            json& reducer = list.emplace_back(json{{"kind", kind}, {"ns_per_event", 1}});
            for (const auto& counter : section.counters) reducer[std::string(counter.name)] = next++;
            reducer["seconds"] = 0.5;
        }
    }
    return list;
}

/// Of a readout node and a builder at once, which no node is.
json cluster() {
    return {{"node", "bu0"},
            {"role", "builder"},
            {"lives", 2},
            {"callers_refused", 55},
            {"has_quorum", true},
            {"nodes",
             {{{"name", "ru0"}, {"role", "readout"}, {"up", true}},
              {{"name", "bu1"}, {"role", "builder"}, {"up", false}},
              {{"name", "bu2"}, {"role", "builder"}, {"spare", true}, {"up", true}},
              {{"name", "bu3"}, {"role", "builder"}, {"spare", true}, {"up", false}}}},
            {"lost_blocks", {{"builder_down", 31}, {"nothing_held", 32}, {"node_down", 33}, {"late", 34}}},
            {"manager", {{"manages", true}, {"assigned", 53}, {"assigned_again", 54}}},
            {"readout",
             {{"parts", {{"offered", 33}, {"handed_over", 34}, {"not_held", 35}, {"too_late", 36}, {"held", 37}}},
              {"builders", {{{"node", "bu1"}, {"handed_over", 38}, {"waited_s", 1.25}}}},
              {"memory", {{"used", 39}, {"highest", 40}, {"bound", 41}, {"waited_s", 1.5}}}}},
            {"builder",
             {{"blocks", {{"assigned", 42}, {"complete", 43}, {"incomplete", 44}, {"empty", 45}, {"in_hand", 46}}},
              {"readouts",
               {{{"node", "ru0"},
                 {"received", 47},
                 {"received_late", 48},
                 {"awaited_s", 2.5},
                 {"missing", {{"node_down", 49}, {"not_held", 50}, {"late", 51}}}}}},
              {"malformed_parts", 52}}}};
}

json full_document() {
    const Ledger ledger = full_ledger();
    json document{{"version", "0.1.0"}, {"name", "det"}, {"host", "daq1"}};
    document["status"] = {{"state", "running"}, {"mode", "serve"}};
    document["run"] = {{"number", 7}, {"seconds", 12.5}};
    document["ledger"] = account_json(ledger);
    document["ledger"]["reduce"] = reducers();
    document["where"] = loss_places_json(loss_places(ledger));
    document["findings"] = {{{"severity", "error"}}, {{"severity", "note"}}, {{"severity", "note"}}};
    document["sources"] = {{"label", {"det0 udp 50001", "a \"quoted\"\\name"}},
                           {"packets", {77, 78}},
                           {"missing", {3, 0}},
                           {"last_seen_s", {0.25, nullptr}},
                           {"lagging", {false, true}}};
    document["cluster"] = cluster();
    json& pipeline = document["pipeline"];
    pipeline["ports"] = {{{"name", "det0"}, {"link_up", true}}};
    pipeline["lcores"] = {{{"lcore", 2}, {"busy", 0.5}, {"longest_poll_s", 0.0003}}};
    pipeline["stages"] = {{{"name", "rx0"}, {"lcore", 2}, {"busy", 0.25}, {"blocked", 0.0}}};
    std::uint64_t next = 40'000;
    for (const auto& ring : weir::pipeline::ring_counters)
        pipeline["rings"].push_back({{"name", std::string(ring.name) + "0.1"},
                                     {"used", next++},
                                     {"size", 65536},
                                     {"times_full", 1},
                                     {"dropped", 0}});
    for (const auto& level : weir::pipeline::level_counters)
        pipeline["levels"][std::string(level.name)] = {{"used", next++}, {"size", 99'999}};
    pipeline["sinks"] = {{{"kind", "events"},
                          {"written", 10},
                          {"lost", 1},
                          {"synced", 9},
                          {"bytes", 4096},
                          {"error", ""},
                          {"free_bytes", 1000},
                          {"hours_left", 2.5},
                          {"interrupted", 0},
                          {"dropped", json::object()}},
                         {{"kind", "stream"},
                          {"written", 4},
                          {"lost", 0},
                          {"synced", 0},
                          {"bytes", 0},
                          {"error", "gone"},
                          {"free_bytes", nullptr},
                          {"hours_left", nullptr},
                          {"interrupted", 3},
                          {"dropped", {{"no_client", 6}}}}};
    pipeline["recorder"] = {
        {"seen", 60'001},
        {"written", 60'002},
        {"left_out", 60'003},
        {"files", 60'004},
        {"bytes", 1},
        {"triggers", {{"incomplete", 60'005}, {"drops", 60'006}, {"request", 60'007}, {"unsaved", 60'008}}}};
    return document;
}

TEST(Metrics, HaveEveryCounterOfTheTablesOnce) {
    const std::map<std::string, double> series = series_of(metrics_text(full_document()));
    std::set<std::string> seen;
    std::set<double> values;
    const auto expect = [&](const std::string& name) {
        EXPECT_TRUE(seen.insert(name).second) << name << " is two counters";
        const auto found = series.find(name);
        if (found == series.end()) return void(ADD_FAILURE() << name << " is missing");
        // No two counters of the document are alike, so a mix-up shows.
        if (found->second != 0.5 && found->second != 99'999) {
            EXPECT_TRUE(values.insert(found->second).second) << name << " has the value of another";
        }
    };
    for (const CounterSection& section : counter_sections()) {
        for (const auto& counter : section.counters) {
            const std::string name(counter.name);
            if (section.name == "rings") {
                expect(fmt::format("weir_ring_used{{ring=\"{0}0.1\",kind=\"{0}\"}}", name));
            } else if (section.name == "levels") {
                expect(level_metric(name, "used"));
                expect(level_metric(name, "capacity"));
            } else if (section.name == "reduce.codec") {
                for (const char* kind : {"kind=\"zstd\"", "kind=\"pack\""})
                    expect(series_name(metric_name(section.name, counter), kind));
            } else {
                const bool of_port = section.name == "device" || section.name == "decapsulated";
                expect(series_name(metric_name(section.name, counter), of_port ? "port=\"det0\"" : ""));
            }
        }
    }
}

TEST(Metrics, AgreeWithTheLedger) {
    const Ledger ledger = full_ledger();
    const std::map<std::string, double> series = series_of(metrics_text(full_document()));
    const auto sum = [&](const std::string& family) {
        double all = 0;
        for (const auto& [name, value] : series)
            if (name == family || name.starts_with(family + "{")) all += value;
        return all;
    };
    // Every packet is in one of these.
    EXPECT_EQ(sum("weir_packets_in_flight") + sum("weir_packets_placed_total") + sum("weir_packets_control_total") +
                  sum("weir_packets_unsteered_total") + sum("weir_packets_other_total") +
                  sum("weir_packets_dropped_total"),
              static_cast<double>(ledger.received));
    EXPECT_EQ(sum("weir_packets_received_total"), static_cast<double>(ledger.received));
    EXPECT_EQ(sum("weir_events_incomplete_total"), static_cast<double>(ledger.incomplete()));
    EXPECT_EQ(series.at("weir_received_bytes_total"), 123'456'789'012'345.0) << "more digits than a float has";
    EXPECT_EQ(series.at("weir_packets_dropped_total{cause=\"malformed.bad_icrc\"}"),
              static_cast<double>(ledger.get(weir::wire::PacketCounter::malformed_bad_icrc)));
    double lost = 0;
    for (const LossPlace& place : loss_places(ledger)) lost += static_cast<double>(place.packets.value_or(0));
    EXPECT_EQ(sum("weir_lost_packets"), lost);
    EXPECT_EQ(series.at("weir_device_missed_packets_total{port=\"det0\"}"), 5002);
    EXPECT_EQ(series.at("weir_reduce_veto_seconds_total"), 0.5) << "cycles are no unit";
}

TEST(Metrics, HaveTheRestOfTheDocument) {
    const std::map<std::string, double> series = series_of(metrics_text(full_document()));
    const auto at = [&](const std::string& name) {
        const auto found = series.find(name);
        EXPECT_NE(found, series.end()) << name;
        return found != series.end() ? found->second : -1;
    };
    EXPECT_EQ(at("weir_build_info{version=\"0.1.0\"}"), 1);
    EXPECT_EQ(at("weir_run_info{name=\"det\",host=\"daq1\",run=\"7\",mode=\"serve\"}"), 1);
    EXPECT_EQ(at("weir_state{state=\"running\"}"), 1);
    EXPECT_EQ(at("weir_state{state=\"idle\"}"), 0);
    EXPECT_EQ(at("weir_source_missing_packets{source=\"0\",name=\"det0 udp 50001\"}"), 3);
    EXPECT_EQ(at("weir_source_lagging{source=\"1\",name=\"a \\\"quoted\\\"\\\\name\"}"), 1);
    EXPECT_EQ(at("weir_source_last_seen_seconds{source=\"0\",name=\"det0 udp 50001\"}"), 0.25);
    EXPECT_FALSE(series.contains("weir_source_last_seen_seconds{source=\"1\",name=\"a \\\"quoted\\\"\\\\name\"}"));
    EXPECT_EQ(at("weir_lcore_longest_poll_seconds{lcore=\"2\"}"), 0.0003);
    EXPECT_EQ(at("weir_sink_disk_left_seconds{sink=\"0\",kind=\"events\"}"), 9000);
    EXPECT_FALSE(series.contains("weir_sink_disk_left_seconds{sink=\"1\",kind=\"stream\"}"));
    EXPECT_EQ(at("weir_sink_dropped_events_total{sink=\"1\",kind=\"stream\",cause=\"no_client\"}"), 6);
    EXPECT_EQ(at("weir_sink_interruptions_total{sink=\"1\",kind=\"stream\"}"), 3);
    EXPECT_EQ(at("weir_sink_failed{sink=\"1\",kind=\"stream\"}"), 1);
    EXPECT_EQ(at("weir_findings{severity=\"note\"}"), 2);
    EXPECT_EQ(at("weir_cluster_info{node=\"bu0\",role=\"builder\"}"), 1);
    EXPECT_EQ(at("weir_cluster_node_up{node=\"ru0\",role=\"readout\"}"), 1);
    EXPECT_EQ(at("weir_cluster_node_up{node=\"bu1\",role=\"builder\"}"), 0);
    EXPECT_EQ(at("weir_cluster_node_up{node=\"bu2\",role=\"builder\"}"), 1);
    EXPECT_FALSE(series.contains("weir_cluster_node_up{node=\"bu3\",role=\"builder\"}")) << "a spare is not missing";
    EXPECT_EQ(at("weir_cluster_manages"), 1);
    EXPECT_EQ(at("weir_cluster_blocks_given_out_total"), 53);
    EXPECT_EQ(at("weir_cluster_blocks_given_out_again_total"), 54);
    EXPECT_EQ(at("weir_cluster_lives"), 2);
    EXPECT_EQ(at("weir_cluster_lost_blocks{cause=\"nothing_held\"}"), 32);
    EXPECT_EQ(at("weir_cluster_lost_blocks{cause=\"late\"}"), 34);
    EXPECT_EQ(at("weir_cluster_parts_offered_total"), 33);
    EXPECT_EQ(at("weir_cluster_parts_not_held_total"), 35);
    EXPECT_EQ(at("weir_cluster_parts_too_late_total"), 36);
    EXPECT_EQ(at("weir_cluster_parts_held"), 37);
    EXPECT_EQ(at("weir_cluster_parts_handed_over_total{to=\"bu1\"}"), 38);
    EXPECT_EQ(at("weir_cluster_waited_for_seconds_total{to=\"bu1\"}"), 1.25);
    EXPECT_EQ(at("weir_cluster_memory_used_bytes"), 39);
    EXPECT_EQ(at("weir_cluster_memory_capacity_bytes"), 41);
    EXPECT_EQ(at("weir_cluster_waited_seconds_total"), 1.5);
    EXPECT_EQ(at("weir_cluster_blocks_assigned_total"), 42);
    EXPECT_EQ(at("weir_cluster_blocks_built_total{parts=\"incomplete\"}"), 44);
    EXPECT_EQ(at("weir_cluster_blocks_in_hand"), 46);
    EXPECT_EQ(at("weir_cluster_parts_received_total{from=\"ru0\"}"), 47);
    EXPECT_EQ(at("weir_cluster_parts_received_late_total{from=\"ru0\"}"), 48);
    EXPECT_EQ(at("weir_cluster_awaited_seconds_total{from=\"ru0\"}"), 2.5);
    EXPECT_EQ(at("weir_cluster_parts_missing_total{from=\"ru0\",cause=\"not_held\"}"), 50);
    EXPECT_EQ(at("weir_cluster_parts_malformed_total"), 52);
    EXPECT_EQ(at("weir_cluster_callers_refused_total"), 55);
    EXPECT_EQ(at("weir_cluster_quorum"), 1);
    // Each that is listed is there, and nothing else is.
    const std::string text = metrics_text(full_document());
    for (const MetricFamilyInfo& info : other_metrics())
        EXPECT_NE(text.find(fmt::format("# TYPE {} ", info.name)), std::string::npos) << info.name;
}

TEST(Metrics, WithoutARunAreFewAndNothingBreaks) {
    const json idle{{"version", "0.1.0"}, {"status", {{"state", "idle"}}}, {"run", nullptr}};
    EXPECT_EQ(series_of(metrics_text(idle)).size(), 5U);
    EXPECT_EQ(series_of(metrics_text(json::object())).size(), 1U);
    EXPECT_EQ(series_of(metrics_text(json(nullptr))).size(), 1U);
    json odd = full_document();
    for (const char* key : {"ledger", "sources", "pipeline", "where", "findings", "run", "status", "cluster"}) {
        json without = full_document();
        without[key] = 5;
        EXPECT_FALSE(metrics_text(without).empty());
        without[key] = json::array({1, "x", nullptr});
        EXPECT_FALSE(metrics_text(without).empty());
    }
}

TEST(Metrics, WhatIsUnknownIsNotZero) {
    json document = full_document();
    document["ledger"]["devices"][0]["missed"] = "unknown";
    document["where"][0]["packets"] = nullptr;
    const std::map<std::string, double> series = series_of(metrics_text(document));
    EXPECT_FALSE(series.contains("weir_device_missed_packets_total{port=\"det0\"}"));
    EXPECT_FALSE(series.contains("weir_lost_packets{place=\"way\"}"));
    EXPECT_TRUE(series.contains("weir_lost_packets{place=\"weir\"}"));
}

TEST(Metrics, AreTakenByPromtool) {
    if (std::system("command -v promtool > /dev/null") != 0) GTEST_SKIP() << "there is no program 'promtool'";
    const weir::test::TemporaryDirectory directory;
    const std::string in = (directory / "metrics").string();
    const std::string out = (directory / "said").string();
    std::ofstream(in) << metrics_text(full_document());
    const int status = std::system(fmt::format("promtool check metrics < {} > {} 2>&1", in, out).c_str());
    std::stringstream said;
    said << std::ifstream(out).rdbuf();
    EXPECT_EQ(status, 0) << said.str();
    EXPECT_EQ(said.str(), "");
}

TEST(Metrics, TheirPageIsMadeOfTheTables) {
    const std::string path = weir::test::source_root() / "docs/reference/METRICS.md";
    std::stringstream page;
    page << std::ifstream(path).rdbuf();
    const std::string expected = metrics_markdown();
    if (page.str() == expected) return;
    const std::string made = testing::TempDir() + "METRICS.md";
    std::ofstream(made) << expected;
    ADD_FAILURE() << path << " is not what the tables say; that is in " << made;
}

}  // namespace
