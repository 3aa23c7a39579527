#include "run/cluster_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/node_view.hpp"
#include "fabric/part_sink.hpp"
#include "run/cluster_secret.hpp"
#include "run/privileges.hpp"

namespace weir::run {

namespace {

using config::NodeRole;

constexpr const char* name_of(NodeRole role) {
    return role == NodeRole::readout ? "readout" : role == NodeRole::builder ? "builder" : "manager";
}

/// The node of each source of the whole run.
std::vector<cluster::NodeId> readouts_of(const config::RunConfig& whole) {
    std::vector<cluster::NodeId> nodes;
    for (const config::SourceConfig& source : whole.sources)
        nodes.push_back(static_cast<cluster::NodeId>(whole.streams[source.stream].node.value_or(0)));
    return nodes;
}

std::uint64_t at(const std::vector<std::uint64_t>& counts, std::size_t node) {
    return node < counts.size() ? counts[node] : 0;
}

double seconds(std::uint64_t ns) {
    return static_cast<double>(ns) * 1e-9;
}

/// Those that have something of what is counted by node, or all of a role.
nlohmann::json received_json(const ClusterPart& part, const cluster::Builder::Stats& stats) {
    nlohmann::json nodes = nlohmann::json::array();
    const auto& all = part.whole.cluster->nodes;
    for (std::size_t node = 0; node < all.size(); ++node)
        if (all[node].role == NodeRole::readout)
            nodes.push_back({{"node", all[node].name},
                             {"received", at(stats.received, node)},
                             {"received_late", at(stats.late, node)},
                             {"awaited_s", seconds(at(stats.awaited_ns, node))},
                             {"missing",
                              {{"node_down", at(stats.node_down, node)},
                               {"not_held", at(stats.not_held, node)},
                               {"late", at(stats.timed_out, node)}}}});
    return nodes;
}

nlohmann::json handed_json(const ClusterPart& part, const fabric::Account& account) {
    nlohmann::json nodes = nlohmann::json::array();
    const auto& all = part.whole.cluster->nodes;
    for (std::size_t node = 0; node < all.size(); ++node)
        if (all[node].role == NodeRole::builder)
            nodes.push_back({{"node", all[node].name},
                             {"handed_over", at(account.readout.handed_to, node)},
                             {"waited_s", seconds(at(account.waited_for_ns, node))}});
    return nodes;
}

nlohmann::json losses_json(const std::vector<cluster::Loss>& losses, std::uint64_t block_numbers) {
    constexpr std::size_t listed_max = 1000;
    nlohmann::json list = nlohmann::json::array();
    nlohmann::json all = nlohmann::json::object();
    std::array<std::uint64_t, cluster::loss_causes> counts{};
    for (const cluster::Loss& loss : losses) {
        ++counts[static_cast<std::size_t>(loss.cause)];
        if (list.size() < listed_max)
            list.push_back({{"block", loss.block / block_numbers},
                            {"first", loss.block},
                            {"last", loss.end - 1},
                            {"cause", cluster::name_of(loss.cause)}});
    }
    for (std::size_t cause = 0; cause < counts.size(); ++cause)
        all[cluster::name_of(static_cast<cluster::LossCause>(cause))] = counts[cause];
    all["list"] = std::move(list);
    return all;
}

nlohmann::json readout_json(const ClusterPart& part, const fabric::Account& account) {
    const cluster::Readout::Stats& stats = account.readout;
    return {{"parts",
             {{"offered", stats.offered},
              {"handed_over", stats.handed_over},
              {"not_held", stats.not_held},
              {"too_late", stats.dropped},
              {"held", stats.held},
              {"held_highest", stats.held_highest}}},
            {"builders", handed_json(part, account)},
            {"events", {{"too_late", account.events_too_late}, {"left", account.events_left}}},
            {"memory",
             {{"used", account.memory_bytes},
              {"highest", account.memory_highest},
              {"bound", account.memory_bound},
              {"waited_s", seconds(account.waited_ns)}}}};
}

/// For room in the memory for parts, and for whom most; empty: it did not.
std::string waited_text(const ClusterPart& part, const fabric::Account& account) {
    if (account.waited_ns == 0) return {};
    std::string text = fmt::format("; {:.1f} s waited for room in [cluster] memory", seconds(account.waited_ns));
    const auto longest = std::ranges::max_element(account.waited_for_ns);
    if (longest == account.waited_for_ns.end() || *longest < account.waited_ns / 10) return text;
    const auto node = static_cast<std::size_t>(longest - account.waited_for_ns.begin());
    return text + fmt::format(", {:.1f} s of it for {}", seconds(*longest), part.whole.cluster->nodes[node].name);
}

nlohmann::json builder_json(const ClusterPart& part, const fabric::Account& account) {
    const cluster::Builder::Stats& stats = account.builder;
    return {{"blocks",
             {{"assigned", stats.assigned},
              {"complete", stats.complete},
              {"incomplete", stats.incomplete},
              {"empty", stats.empty},
              {"in_hand", account.blocks_in_hand},
              {"given_up", account.blocks_given_up},
              {"open_highest", stats.open_highest}}},
            {"readouts", received_json(part, stats)},
            {"malformed_parts", account.malformed_parts}};
}

/// A message waits for its packets, then its event for the other messages.
core::TimeNs event_wait_ns(const ClusterPart& part) {
    return 2 * core::TimeNs{part.whole.events.timeout_ms} * core::ns_per_ms;
}

/// What has left the builder waits for a worker, and in its buffer.
constexpr core::TimeNs in_buffers_ns = 300 * core::ns_per_ms;

/// What other nodes had so long ago would have come here as well.
core::TimeNs part_idle_ns(const ClusterPart& part) {
    return event_wait_ns(part) + in_buffers_ns;
}

}  // namespace

config::RunConfig ClusterPart::view() const {
    return self().role == NodeRole::readout ? config::readout_view(whole, node) : config::builder_view(whole, node);
}

cluster::NodeSet nodes_named(const config::RunConfig& whole, std::string_view names) {
    cluster::NodeSet nodes;
    for (std::size_t at = 0; at < names.size();) {
        const std::size_t end = std::min(names.find(' ', at), names.size());
        if (end > at) nodes.insert(static_cast<cluster::NodeId>(find_node(whole, names.substr(at, end - at))));
        at = end + 1;
    }
    return nodes;
}

std::unique_ptr<fabric::ClusterThread> make_cluster_thread(const ClusterPart& part, std::optional<std::uint32_t> run) {
    const config::ClusterConfig& cluster = *part.whole.cluster;
    fabric::ClusterThread::Config config;
    for (const config::ClusterNode& node : cluster.nodes) {
        config.network.addresses.push_back(node.address);
        config.network.names.push_back(node.name);
    }
    config.network.self = static_cast<cluster::NodeId>(part.node);
    config.network.agreement = config::agreement(part.whole);
    config.network.run = run.value_or(0);
    config.network.secret = read_cluster_secret(cluster.secret_file);
    config.network.transports = cluster.transports;
    config.network.silence_ns = cluster.silence_ms * core::ns_per_ms;
    config.network.return_ns = cluster.return_ms * core::ns_per_ms;
    config.settings = config::cluster_settings(part.whole);
    config.network.readouts = config.settings.readouts;
    config.settings.left_out = part.left_out;
    for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node)
        if (part.may_be_absent(node)) config.network.may_be_absent.insert(static_cast<cluster::NodeId>(node));
    // A readout node says that it stands still only when it would have sent what it has.
    config.settings.timeout_ns = std::max(config.settings.timeout_ns, part_idle_ns(part) + core::ns_per_s);
    config.layout = {readouts_of(part.whole)};
    config.memory_bytes = cluster.memory_bytes;
    config.leave_ns = cluster.leave_ms * core::ns_per_ms;
    if (cluster.alone_ms > 0) config.alone_ns = cluster.alone_ms * core::ns_per_ms;
    std::unique_ptr<fabric::ClusterThread> member;
    run_without_privileges([&] { member = std::make_unique<fabric::ClusterThread>(std::move(config)); });
    return member;
}

std::unique_ptr<store::EventSink> make_part_sink(const ClusterPart& part, bool is_replay,
                                                 fabric::ClusterThread& member) {
    fabric::PartCutter::Config config;
    config.block = part.whole.cluster->block;
    config.sources = config::global_sources(part.whole, part.node);
    config.wait_ns = event_wait_ns(part);
    config.linger_ns = in_buffers_ns;
    // A replay has no time of its own, and in step all blocks are full.
    if (is_replay) return std::make_unique<fabric::PartSink>(std::move(config), member);
    config.idle_ns = part_idle_ns(part);
    const config::ClusterConfig& cluster = *part.whole.cluster;
    if (cluster.hold_ms > 0 && !cluster.barrier && cluster.slot_us == 0)
        config.hold_ns = cluster.hold_ms * core::ns_per_ms;
    return std::make_unique<fabric::PartSink>(std::move(config), member);
}

std::string alone_text(const ClusterPart& part) {
    const char* others = "other node";
    if (part.self().role == NodeRole::builder) others = "readout node";
    if (part.self().role == NodeRole::readout) others = "builder";
    return fmt::format("no {} of the cluster has been here for {:.1f} s (cluster.alone_ms)", others,
                       part.whole.cluster->alone_ms / 1000.0);
}

std::string cluster_start_text(const ClusterPart& part, const fabric::ClusterThread& member) {
    const config::ClusterConfig& cluster = *part.whole.cluster;
    std::size_t readouts = 0;
    std::size_t builders = 0;
    for (const config::ClusterNode& node : cluster.nodes) {
        readouts += node.role == NodeRole::readout ? 1 : 0;
        builders += node.role == NodeRole::builder ? 1 : 0;
    }
    return fmt::format("cluster: this is {}, a {} at {}, of {} readout nodes and {} builders; {}\n", part.self().name,
                       name_of(part.self().role), part.self().address, readouts, builders, member.network_text());
}

std::string cluster_text(const ClusterPart& part, const fabric::Account& account) {
    std::string text;
    if (part.self().role == NodeRole::readout) {
        const cluster::Readout::Stats& stats = account.readout;
        text += fmt::format("cluster: {} parts offered, {} handed over, {} held at most", stats.offered,
                            stats.handed_over, stats.held_highest);
        text += waited_text(part, account);
        text += '\n';
    }
    if (part.self().role == NodeRole::builder) {
        const cluster::Builder::Stats& stats = account.builder;
        text += fmt::format("cluster: {} blocks assigned, {} built with all parts, {} without some, {} empty\n",
                            stats.assigned, stats.complete, stats.incomplete, stats.empty);
        if (account.blocks_given_up > 0)
            text +=
                fmt::format("  {} of these were not written, because the sinks failed; the others list them as lost\n",
                            account.blocks_given_up);
    }
    if (!account.losses.empty())
        text += fmt::format("  {} blocks are lost whole: their builder went away, or no node had a part\n",
                            account.losses.size());
    return text;
}

void add_cluster_findings(const ClusterPart& part, const fabric::Account& account,
                          std::vector<pipeline::Finding>& findings) {
    const cluster::Builder::Stats& stats = account.builder;
    const auto& nodes = part.whole.cluster->nodes;
    const auto add = [&](std::uint64_t blocks, std::size_t node, const char* counter, const char* why) {
        if (blocks == 0) return;
        findings.push_back(
            {counter, 0, true,
             fmt::format("{} has no part in {} of the blocks that were built here: {}", nodes[node].name, blocks, why),
             "docs/guides/CLUSTER.md#what-is-lost"});
    };
    for (std::size_t node = 0; node < stats.node_down.size(); ++node) {
        add(stats.node_down[node], node, "events.incomplete.node_down", "it went away");
        add(stats.not_held[node], node, "events.incomplete.timeout",
            "it had none, because nothing came there, or it had not begun, or had given up waiting");
        add(stats.timed_out[node], node, "events.incomplete.timeout",
            "it stood still for longer than `cluster.timeout_ms` while others had theirs, or its parts did not arrive");
    }
}

nlohmann::json cluster_json(const ClusterPart& part, const fabric::Account& account) {
    const std::uint64_t block = part.whole.cluster->block;
    nlohmann::json json = {{"node", part.self().name},
                           {"role", name_of(part.self().role)},
                           {"block", block},
                           {"lives", account.lives},
                           {"settled", account.settled / block},
                           {"lost_blocks", losses_json(account.losses, block)}};
    json["callers_refused"] = account.callers_refused;
    json["has_quorum"] = account.has_quorum;
    json["transports"] = account.transports;
    json["nodes"] = nlohmann::json::array();
    const auto& nodes = part.whole.cluster->nodes;
    for (std::size_t node = 0; node < nodes.size(); ++node)
        json["nodes"].push_back({{"name", nodes[node].name},
                                 {"role", name_of(nodes[node].role)},
                                 {"spare", part.may_be_absent(static_cast<std::uint32_t>(node))},
                                 {"up", node < account.is_up.size() && account.is_up[node] != 0}});
    if (part.self().role == NodeRole::readout) json["readout"] = readout_json(part, account);
    if (part.self().role == NodeRole::builder) json["builder"] = builder_json(part, account);
    if (account.manages || account.manager.assigned > 0)
        json["manager"] = {{"manages", account.manages},
                           {"assigned", account.manager.assigned},
                           {"pieces", account.manager.pieces},
                           {"assigned_again", account.manager.assigned_again},
                           {"committed", account.manager.committed},
                           {"lost", account.manager.lost}};
    return json;
}

nlohmann::json shown_cluster_json(const ClusterPart& part, const fabric::Account& account) {
    nlohmann::json json = cluster_json(part, account);
    json["lost_blocks"].erase("list");
    return json;
}

}  // namespace weir::run
