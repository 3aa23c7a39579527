// A folder as a cluster of two readout nodes and two builders leaves it, made by hand.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../store/support.hpp"
#include "command.hpp"
#include "core/error.hpp"
#include "store/cluster_run.hpp"
#include "store/cluster_run_events.hpp"
#include "store/cluster_run_ledger.hpp"
#include "store/run_path.hpp"
#include "store/run_recovery.hpp"

namespace weir::app {
Command inspect_entry();
Command export_entry();
Command diff_entry();
}  // namespace weir::app

namespace weir::store::test {

using nlohmann::json;

/// Blocks of four event numbers, two readout nodes, two builders; the first of these manages.
inline constexpr std::uint64_t block_events = 4;

inline json cluster_nodes() {
    json nodes = json::array();
    for (const char* name : {"ru0", "ru1"}) nodes.push_back({{"name", name}, {"role", "readout"}, {"manages", false}});
    for (const char* name : {"bu0", "bu1"}) nodes.push_back({{"name", name}, {"role", "builder"}, {"manages", true}});
    return nodes;
}

inline json cluster_config() {
    return {{"cluster", {{"block", block_events}}}, {"node", cluster_nodes()}};
}

inline json cluster_section(const std::string& node, const std::string& role) {
    json nodes = cluster_nodes();
    for (json& each : nodes) {
        each.erase("manages");
        each["up"] = true;
    }
    return {{"node", node},
            {"role", role},
            {"block", block_events},
            {"lives", 1},
            {"settled", 4},
            {"nodes", nodes},
            {"lost_blocks",
             {{"builder_down", 0}, {"nothing_held", 0}, {"node_down", 0}, {"late", 0}, {"list", json::array()}}}};
}

/// Of a builder that has got everything of `blocks` blocks.
inline json builder_section(const std::string& node, std::uint64_t blocks) {
    json section = cluster_section(node, "builder");
    json readouts = json::array();
    for (const char* name : {"ru0", "ru1"})
        readouts.push_back({{"node", name},
                            {"received", blocks},
                            {"received_late", 0},
                            {"missing", {{"node_down", 0}, {"not_held", 0}, {"late", 0}}}});
    section["builder"] = {{"blocks", {{"assigned", blocks}, {"complete", blocks}, {"incomplete", 0}, {"empty", 0}}},
                          {"readouts", readouts}};
    if (node == "bu0") section["manager"] = {{"manages", true}, {"assigned", 4}, {"assigned_again", 0}};
    return section;
}

/// Of a readout node that has given so many parts to each builder.
inline json readout_report(const std::string& node, std::uint64_t first, std::uint64_t second, std::uint64_t events) {
    json section = cluster_section(node, "readout");
    section["readout"] = {
        {"parts", {{"offered", first + second}, {"handed_over", first + second}}},
        {"builders", {{{"node", "bu0"}, {"handed_over", first}}, {{"node", "bu1"}, {"handed_over", second}}}},
        {"events", {{"too_late", 0}, {"left", 0}}}};
    return {{"cluster", section},
            {"lossless", "yes"},
            {"evidence", json::array({"all came"})},
            {"events", {{"written", events}}}};
}

inline void lose_block(json& section, std::uint64_t block, const char* cause) {
    json& lost = section["lost_blocks"];
    lost[cause] = lost[cause].get<std::uint64_t>() + 1;
    lost["list"].push_back({{"block", block}, {"cause", cause}});
}

class ClusterFolder : public testing::Test {
protected:
    static std::vector<TestEvent> events_of(const std::vector<std::uint64_t>& blocks) {
        std::vector<TestEvent> events;
        for (const std::uint64_t block : blocks)
            for (std::uint64_t i = 0; i < block_events; ++i)
                events.push_back(image_event(block * block_events + i, {{1, 2}, {3, 4}}));
        return events;
    }

    /// Closed with this section, or, if that is null, left as a builder leaves it that is killed.
    void write_builder(const std::string& name, const std::vector<TestEvent>& events, const json& section,
                       const json& config = cluster_config()) const {
        RunWriter::Config how;
        how.path = folder_ / name;
        std::filesystem::create_directories(how.path.parent_path());
        how.name = "test";
        how.start_json = json{{"config", config}}.dump();
        RunWriter run(how);
        Pump pump(run);
        for (const TestEvent& event : events) pump.put(event);
        pump.flush();
        if (section.is_null()) return;
        json members = {{"ledger", {{"events", {{"written", events.size()}}}}}, {"config", config}};
        if (section.is_object()) members["cluster"] = section;
        run.close(members);
    }

    void write_report(const std::string& name, const json& report) const {
        std::filesystem::create_directories((folder_ / name).parent_path());
        std::ofstream(folder_ / name) << report.dump();
    }

    void write_readouts(std::uint64_t first = 2, std::uint64_t second = 2, std::uint64_t events = 16) const {
        write_report("ru0.json", readout_report("ru0", first, second, events));
        write_report("ru1.json", readout_report("ru1", first, second, events));
    }

    void write_all() const {
        write_builder("bu0", events_of({0, 2}), builder_section("bu0", 2));
        write_builder("bu1", events_of({1, 3}), builder_section("bu1", 2));
        write_readouts();
    }

    struct Read {
        ClusterRun cluster;
        ClusterEvents events;
        ClusterLedger ledger;

        [[nodiscard]] bool says(const std::string& part) const {
            for (const auto* lines : {&ledger.evidence, &events.all.problems, &cluster.notes, &ledger.blocks.why})
                for (const std::string& line : *lines)
                    if (line.find(part) != std::string::npos) return true;
            return false;
        }
        [[nodiscard]] const ClusterRun::Member& member(const std::string& name) const {
            for (const ClusterRun::Member& each : cluster.members)
                if (each.name == name) return each;
            throw std::runtime_error("no " + name);
        }
    };

    [[nodiscard]] Read read(bool quick = false) const {
        std::optional<ClusterRun> cluster = find_cluster_run(folder_);
        if (!cluster) throw std::runtime_error("no run of a cluster");
        ClusterEvents events = read_cluster_events(*cluster, lost_cluster_blocks(*cluster), quick, {});
        ClusterLedger ledger = make_cluster_ledger(*cluster, events);
        return {*std::move(cluster), std::move(events), std::move(ledger)};
    }

    struct Said {
        int status = 0;
        std::string text;  ///< in one line
    };
    [[nodiscard]] Said inspect_folder(std::vector<std::string> more = {}) const {
        more.insert(more.begin(), folder_.string());
        return execute(app::inspect_entry(), more);
    }
    [[nodiscard]] static Said execute(const app::Command& command, const std::vector<std::string>& args) {
        std::ostringstream out;
        std::streambuf* const old = std::cout.rdbuf(out.rdbuf());
        Said said;
        try {
            said.status = command.execute(args);
        } catch (const core::UsageError& error) {
            said.status = 2;
            out << error.what();
        } catch (const core::RunError& error) {
            said.status = 1;
            out << error.what();
        }
        std::cout.rdbuf(old);
        std::istringstream words(out.str());
        for (std::string word; words >> word;) said.text += (said.text.empty() ? "" : " ") + word;
        return said;
    }

    TemporaryDirectory directory_;
    std::filesystem::path folder_ = directory_.path();
};

}  // namespace weir::store::test
