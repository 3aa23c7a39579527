// [cluster] and [[node]].
#include "config/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "config/parts.hpp"
#include "core/units.hpp"

namespace weir::config {

namespace detail {

namespace {

constexpr std::size_t nodes_max = 1024;
constexpr std::string_view address_example = "\"HOST:PORT\" or \"[V6]:PORT\", as \"10.0.0.1:7471\"";

std::vector<std::string_view> node_names(const ClusterConfig& cluster) {
    std::vector<std::string_view> names;
    for (const ClusterNode& node : cluster.nodes) names.push_back(node.name);
    return names;
}

/// The name, and which it may have been meant to be.
std::string unknown_node(std::string_view name, const std::vector<std::string_view>& names) {
    const auto guess = nearest(name, names);
    return in_quotes(name) + (guess ? fmt::format("; did you mean {}?", in_quotes(*guess)) : "");
}

/// UCX's names of what it may use or, with '^' in front, may not. Whether it has them is not known here.
bool are_transports(std::string_view text) {
    if (text.starts_with('^')) text.remove_prefix(1);
    const auto is_part = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ',';
    };
    return !text.empty() && text.front() != ',' && text.back() != ',' && text.find(",,") == std::string_view::npos &&
           std::ranges::all_of(text, is_part);
}

bool is_port_number(std::string_view text) {
    std::uint16_t port = 0;
    const char* const end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, port);
    return error == std::errc() && read == end && port != 0;
}

bool is_node_address(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || !is_port_number(text.substr(colon + 1))) return false;
    const std::string_view host = text.substr(0, colon);
    if (host.starts_with('[')) {
        const auto address = host.ends_with(']') ? parse_ip_address(host.substr(1, host.size() - 2)) : std::nullopt;
        return address && address->v6;
    }
    return !host.empty() && std::ranges::all_of(host, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
               c == '_';
    });
}

/// All nodes read the same file: an address that means "any of mine" tells nobody where the node is.
bool is_any_address(std::string_view text) {
    std::string_view host = text.substr(0, text.rfind(':'));
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    const auto address = parse_ip_address(host);
    return address && std::ranges::all_of(address->bytes, [](std::uint8_t byte) { return byte == 0; });
}

void check_node_address(TableReader& table, const ClusterNode& node) {
    if (!is_node_address(node.address)) table.wrong("address", in_quotes(node.address), address_example);
    if (is_any_address(node.address))
        table.wrong("address", in_quotes(node.address), "the address at which the other nodes reach this one");
}

void check_serve(TableReader& table, const ClusterNode& node) {
    if (node.serve.empty()) return;
    if (!is_node_address(node.serve))
        table.wrong("serve", in_quotes(node.serve), "\"HOST:PORT\" or \"[V6]:PORT\", as \"10.0.0.1:9321\"");
    if (is_any_address(node.serve))
        table.wrong("serve", in_quotes(node.serve), "the address at which the other nodes reach this one");
    if (node.serve == node.address)
        table.wrong("serve", in_quotes(node.serve) + ", which is its address, too", "another port");
}

void check_node(const ClusterConfig& cluster, TableReader& table, const ClusterNode& node) {
    if (cluster.nodes.size() == nodes_max)
        fail(node.place, "node", fmt::format("{} nodes", nodes_max + 1), fmt::format("at most {}", nodes_max));
    for (const ClusterNode& other : cluster.nodes) {
        const auto must_differ = [&](const char* key, const std::string& own, const std::string& others,
                                     const char* what) {
            if (own.empty() || own != others) return;
            table.wrong(key,
                        fmt::format("{}, the {} of the node at line {}", in_quotes(own),
                                    key == std::string_view("serve") ? "page" : key, other.place.line),
                        fmt::format("{} of its own for each node", what));
        };
        must_differ("name", node.name, other.name, "a name");
        must_differ("address", node.address, other.address, "an address");
        must_differ("serve", node.serve, other.serve, "an address");
    }
    if (node.weight != 1 && (cluster.barrier || cluster.slot_us > 0))
        table.wrong("weight", fmt::format("{} with {}", node.weight, cluster.barrier ? "barrier = true" : "slot_us"),
                    "1: in step, and by time, each builder has as many turns as any other");
}

bool has_role(const ClusterConfig& cluster, NodeRole role) {
    return std::ranges::any_of(cluster.nodes, [role](const ClusterNode& node) { return node.role == role; });
}

/// Somebody has to be there.
void check_spares(const ClusterConfig& cluster) {
    const auto needs = [&](auto is_one, std::string_view what) {
        if (std::ranges::none_of(cluster.nodes, [&](const ClusterNode& node) { return is_one(node) && !node.spare; }))
            fail(cluster.place, "cluster", fmt::format("only spares among the nodes that {}", what),
                 "at least one that is none");
    };
    needs([](const ClusterNode& node) { return node.role == NodeRole::builder; }, "build");
    needs([](const ClusterNode& node) { return node.manages; }, "manage");
}

void check_roles(const ClusterConfig& cluster) {
    for (const NodeRole role : {NodeRole::readout, NodeRole::builder})
        if (!has_role(cluster, role))
            fail(cluster.place, "cluster",
                 fmt::format("no [[node]] with role = {}", in_quotes(name_of(role_names, role))), "at least one");
    if (std::ranges::none_of(cluster.nodes, &ClusterNode::manages))
        fail(cluster.place, "cluster", "no [[node]] that manages",
             "at least one: builders and managers do, unless manages = false");
    check_spares(cluster);
}

void check_list(TableReader& table, const ClusterConfig& cluster) {
    std::vector<std::string_view> accepted;
    for (const ClusterNode& node : cluster.nodes)
        if (node.role != NodeRole::manager) accepted.push_back(node.name);
    for (auto name = cluster.list.begin(); name != cluster.list.end(); ++name) {
        if (std::ranges::find(accepted, std::string_view(*name)) == accepted.end()) {
            const bool manager = std::ranges::find(cluster.nodes, *name, &ClusterNode::name) != cluster.nodes.end();
            table.wrong("list", manager ? in_quotes(*name) + ", which only manages" : unknown_node(*name, accepted),
                        "the names of readout nodes and builders, " + any_of(accepted));
        }
        if (std::find(cluster.list.begin(), name, *name) != name)
            table.wrong("list", in_quotes(*name) + " twice", "each readout node and each builder once");
    }
    for (const std::string_view name : accepted)
        if (std::ranges::find(cluster.list, name) == cluster.list.end())
            table.wrong("list", "a list without " + in_quotes(name), "each readout node and each builder once");
}

void add_order(OptionTable<ClusterConfig>& out) {
    out.choice("order", send_order_names, &ClusterConfig::order,
               "in which order a node turns to the others. `\"linear\"`: to the one after itself in this file first, "
               "so that no two turn to the same one at the same time; `\"random\"`: another one for each block; "
               "`\"listed\"`: linear in `list`");
    out.add("list", "names",
            "`order = \"listed\"` only: all readout nodes and builders, each once, by their places in the network")
        .required("the names of all readout nodes and builders, each once")
        .refused_where([](const ClusterConfig& cluster) {
            return cluster.order == cluster::Order::listed ? "" : "nothing: it belongs to order = \"listed\"";
        })
        .reads([](TableReader& table, ClusterConfig& cluster) {
            cluster.list = table.texts("list", "the name of a node");
        })
        .schema(options::one_or_more_schema(options::name_schema()))
        .shows([](const ClusterConfig& cluster) { return value_of(cluster.list); })
        .usually("required with `\"listed\"`");
}

/// What is wrong with `key` where nodes push in step, if it is `set`.
void check_steps(TableReader& table, const ClusterConfig& cluster, std::string_view key, std::string_view set,
                 std::string_view unset) {
    if (cluster.strategy != cluster::Strategy::push)
        table.wrong(key, fmt::format("{} with strategy = \"pull\"", set),
                    fmt::format("{}, or strategy = \"push\"", unset));
    if (cluster.order == cluster::Order::random)
        table.wrong(key, fmt::format("{} with order = \"random\", in which nodes meet all the same", set),
                    fmt::format("{}, or another order", unset));
}

void add_steps(OptionTable<ClusterConfig>& out) {
    out.boolean(
           "barrier", &ClusterConfig::barrier,
           "`strategy = \"push\"` only: readout nodes turn to their next builder together, once each has sent what it "
           "had for the one before. No two send to the same builder then, as long as all are equally fast; "
           "the slowest one sets the pace")
        .check([](TableReader& table, const ClusterConfig& cluster) {
            if (cluster.barrier) check_steps(table, cluster, "barrier", "true", "false");
        });
    out.integer("slot_us", {0, 1'000'000}, &ClusterConfig::slot_us,
                "`strategy = \"push\"` only: readout nodes turn to their next builder at the same time, every so long, "
                "and send it one part: what a part takes on the network, and a little more than the nodes' system "
                "times differ (PTP). 0: not by time")
        .check([](TableReader& table, const ClusterConfig& cluster) {
            if (cluster.slot_us == 0) return;
            check_steps(table, cluster, "slot_us", std::to_string(cluster.slot_us), "0");
            if (cluster.barrier)
                table.wrong("slot_us", fmt::format("{} with barrier = true", cluster.slot_us),
                            "0, or barrier = false: steps last a fixed time, or until all have sent");
        });
}

void add_cluster_times(OptionTable<ClusterConfig>& out) {
    constexpr std::uint32_t hour_ms = 3'600'000;
    out.integer(
        "timeout_ms", {1, hour_ms}, &ClusterConfig::timeout_ms,
        "a readout node that does not get on for so long while others do is not waited for: blocks are built "
        "without its part. It is at least twice `events.timeout_ms` and 1.3 s. What a node has is waited for as "
        "long as it lives, unless nothing at all has arrived from it for 30 times as long");
    out.integer(
        "hold_ms", {0, hour_ms}, &ClusterConfig::hold_ms,
        "how long an event waits in its readout node for the others of its block. After that what is there leaves as a "
        "block of its own, as soon as no number is missing in between. 0: until the block is full, as always with "
        "`barrier` and with `slot_us`");
    out.integer(
        "join_wait_ms", {0, hour_ms}, &ClusterConfig::join_wait_ms,
        "how long the start waits for nodes that are listed here. It goes on without them, and they may come later");
    out.integer("silence_ms", {100, hour_ms}, &ClusterConfig::silence_ms,
                "a node that says nothing for so long counts as gone, but for readout nodes: see `return_ms`");
    out.integer("return_ms", {0, hour_ms}, &ClusterConfig::return_ms,
                "so much longer a readout node may say nothing, or not be reached by another one: it holds what nobody "
                "else has, and blocks wait for it. Where its host has lost its power, data taking stands still for so "
                "long. A process that dies is noticed at once");
    out.integer(
        "leave_ms", {0, hour_ms}, &ClusterConfig::leave_ms,
        "a node that was told to stop waits so long for the others to end; a builder only where no other builder "
        "goes on");
    out.integer(
        "alone_ms", {0, hour_ms}, &ClusterConfig::alone_ms,
        "a node that can do nothing because no other one has been here for so long ends, with status 1: a builder "
        "without readout nodes, a readout node that replays captures without builders. 0: never");
}

}  // namespace

OptionTable<ClusterConfig> cluster_options() {
    constexpr std::uint64_t memory_max = std::uint64_t{1} << 44;
    OptionTable<ClusterConfig> out;
    out.integer(
        "block", {1, std::uint64_t{1} << 40}, &ClusterConfig::block,
        "event numbers of a block: consecutive ones, which one builder builds together (the block of an event is its "
        "number divided by this). Large enough that a readout node's part of a block has some 100 KB; "
        "where numbers are time stamps, as many ticks as that takes");
    out.choice("strategy", strategy_names, &ClusterConfig::strategy,
               "who begins to move a part of a block: the builder that wants it, or the readout node that has it");
    add_order(out);
    out.choice("keep", keep_names, &ClusterConfig::keep,
               "until when readout nodes keep a part: until its block is assembled, or until its events are written, "
               "so that another builder can build them if this one goes away");
    out.choice(
        "quorum", quorum_names, &ClusterConfig::quorum,
        "where the network falls into parts, the part goes on that has more than half of these nodes, or half and "
        "the first of them; the others wait. Nodes that have ended, or were not started, do not count: one whose host "
        "is silent does, as when it has lost power. With `\"none\"` every part goes on, and events are there twice");
    out.integer("credits", {1, 65536}, &ClusterConfig::credits, "blocks that a builder has room for");
    out.integer(
        "parallel", {1, 4096}, &ClusterConfig::parallel,
        "parts on their way at the same time: of a block to a builder that pulls, from a readout node that pushes");
    add_steps(out);
    add_cluster_times(out);
    out.size("memory", {1U << 20, memory_max}, &ClusterConfig::memory_bytes,
             "of a readout node, for parts that are not released yet");
    out.text("transports", &ClusterConfig::transports,
             "what UCX may use, by its own names: `\"tcp\"`, `\"tcp,sm\"`, `\"rc,tcp\"`")
        .check([](TableReader& table, const ClusterConfig& cluster) {
            if (!are_transports(cluster.transports))
                table.wrong("transports", in_quotes(cluster.transports),
                            "\"all\", or names of UCX's with commas between, as \"tcp,sm\"");
        });
    out.text("secret_file", &ClusterConfig::secret_file,
             "a file whose content is the same for all nodes: who does not know it is not let in. It must not be open "
             "to everybody (`chmod o-rw`)")
        .unset("anybody who can reach a node's `address` may call it");
    return out;
}

OptionTable<ClusterNode> node_options() {
    OptionTable<ClusterNode> out;
    out.name("name", &ClusterNode::name, "what `[[stream]]`, `list` and the command line call it; each once")
        .required("a name for the node");
    out.text("address", &ClusterNode::address,
             "`\"HOST:PORT\"` or `\"[V6]:PORT\"`: where it listens, and the others reach it; each once")
        .kind("address:port")
        .required(std::string(address_example))
        .check(check_node_address);
    out.choice("role", role_names, &ClusterNode::role,
               "streams arrive at a `\"readout\"`; a `\"builder\"` builds events and has the sinks; "
               "a `\"manager\"` does nothing but manage")
        .required(any_of(names_in(role_names)));
    out.boolean("manages", &ClusterNode::manages,
                "it may manage the cluster: give blocks to builders. One does at a time, the first that is there")
        .otherwise([](ClusterNode& node) { node.manages = node.role != NodeRole::readout; })
        .usually("true for builders and managers")
        .check([](TableReader& table, const ClusterNode& node) {
            if (node.role == NodeRole::manager && !node.manages)
                table.wrong("manages", "false with role = \"manager\"", "true, because such a node does nothing else");
        });
    out.integer("weight", {1, 100}, &ClusterNode::weight,
                "builders only: it gets so many blocks where one of weight 1 gets one, as long as it has credits. For "
                "builders of unlike speed; neither with `barrier` nor with `slot_us`")
        .refused_where([](const ClusterNode& node) {
            return node.role == NodeRole::builder ? "" : "nothing: only builders are given blocks";
        });
    out.boolean("spare", &ClusterNode::spare,
                "it may be absent: the start does not wait for it, it does not count for `quorum` (unless nobody else "
                "does), and nothing is said where it is not there. When it comes it takes part from the next block on. "
                "Not for readout nodes, whose data would be missing")
        .refused_where([](const ClusterNode& node) {
            return node.role != NodeRole::readout
                       ? ""
                       : "nothing: without a readout node its part of all events would be missing";
        });
    out.text("serve", &ClusterNode::serve,
             "`\"HOST:PORT\"`: where its page, `/metrics` and `/api` are, in place of `[serve]` `listen`. The other "
             "nodes reach it there for `weir ctl --cluster`, `weir top --cluster` and the page of all nodes")
        .kind("address:port")
        .unset("as `[serve]` says; no other node asks it")
        .check(check_serve);
    return out;
}

void read_cluster(TableReader& root, RunConfig& run) {
    auto table = root.table("cluster");
    std::vector<TableReader> nodes = root.tables("node");
    if (!table) {
        if (!nodes.empty())
            fail(nodes.front().place(), "node", "[[node]] without [cluster]",
                 "[cluster] beside it, even if nothing is in it; or no [[node]]");
        return;
    }
    ClusterConfig cluster = cluster_options().read(*table);
    cluster.place = table->place();
    for (TableReader& reader : nodes) {
        ClusterNode node = node_options().read(reader);
        node.place = reader.place();
        check_node(cluster, reader, node);
        cluster.nodes.push_back(std::move(node));
    }
    check_roles(cluster);
    if (cluster.order == cluster::Order::listed) check_list(*table, cluster);
    run.cluster = std::move(cluster);
}

void add_node(OptionTable<StreamConfig>& out, const RunConfig& run) {
    std::vector<std::string_view> readouts;
    if (run.cluster)
        for (const ClusterNode& node : run.cluster->nodes)
            if (node.role == NodeRole::readout) readouts.push_back(node.name);
    const std::string accepted = "the name of a readout node: " + any_of(readouts);
    out.add("node", "text", "with `[cluster]` only: the name of the readout `[[node]]` that these packets arrive at")
        .required(accepted)
        .refused_where([&run](const StreamConfig&) {
            return run.cluster ? "" : "nothing: it belongs to [cluster], and there is none";
        })
        .reads([&run, readouts, accepted](TableReader& table, StreamConfig& stream) {
            const std::string name = *table.text("node");
            const std::vector<ClusterNode>& nodes = run.cluster->nodes;
            const auto found = std::ranges::find(nodes, name, &ClusterNode::name);
            if (found == nodes.end()) table.wrong("node", unknown_node(name, readouts), accepted);
            if (found->role != NodeRole::readout)
                table.wrong("node", fmt::format("{}, a {}", in_quotes(name), name_of(role_names, found->role)),
                            accepted);
            stream.node = static_cast<std::uint32_t>(found - nodes.begin());
        })
        .schema(options::name_schema())
        .shows([&run](const StreamConfig& stream) {
            return stream.node && run.cluster ? nlohmann::json(run.cluster->nodes[*stream.node].name)
                                              : nlohmann::json();
        })
        .usually("required with `[cluster]`");
}

void check_node_in_path(TableReader& table, const RunConfig& run, const SinkConfig& sink) {
    const bool named = sink.path.find("{node}") != std::string::npos;
    if (!run.cluster) {
        if (named)
            table.wrong("path", "{node} where there is no [cluster]",
                        "a path without it: it is the name of a node of a cluster");
        return;
    }
    const NodeRole role = goes_to_builders(sink) ? NodeRole::builder : NodeRole::readout;
    if (!named && std::ranges::count(run.cluster->nodes, role, &ClusterNode::role) > 1)
        table.wrong(
            "path", in_quotes(sink.path),
            fmt::format("a path with {{node}} in it: several {} write by this sink, and where they share a file "
                        "system they would take each other's names and run numbers",
                        role == NodeRole::builder ? "builders" : "readout nodes"));
}

void check_cluster(const RunConfig& run) {
    if (!run.cluster) return;
    const std::vector<ClusterNode>& nodes = run.cluster->nodes;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        const bool used =
            std::ranges::any_of(run.streams, [i](const StreamConfig& stream) { return stream.node == i; });
        if (nodes[i].role == NodeRole::readout && !used)
            fail(nodes[i].place, "node.name", fmt::format("{}, at which no stream arrives", in_quotes(nodes[i].name)),
                 fmt::format("a readout node that a [[stream]] has: node = {}", in_quotes(nodes[i].name)));
    }
    if (std::ranges::none_of(run.sinks, goes_to_builders))
        fail(run.cluster->place, "sink", "only sinks of kind \"pcapng\", which readout nodes have",
             "at least one [[sink]] of another kind, for the builders");
    check_node_devices(run);
}

}  // namespace detail

namespace {

/// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
    constexpr std::uint64_t basis = 0xcbf29ce484222325U;
    constexpr std::uint64_t prime = 0x100000001b3U;
    std::uint64_t hash = basis;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * prime;
    return hash;
}

}  // namespace

cluster::Settings cluster_settings(const RunConfig& run) {
    const ClusterConfig& from = *run.cluster;
    cluster::Settings out;
    out.nodes = static_cast<std::uint16_t>(from.nodes.size());
    for (cluster::NodeId i = 0; i < out.nodes; ++i) {
        const ClusterNode& node = from.nodes[i];
        if (node.role == NodeRole::readout) out.readouts.insert(i);
        if (node.role == NodeRole::builder) out.builders.insert(i);
        if (node.manages) out.managers.insert(i);
        if (node.spare) out.spares.insert(i);
        out.weights.push_back(node.weight);
    }
    for (const std::string& name : from.list) out.list.push_back(static_cast<cluster::NodeId>(find_node(run, name)));
    // Nobody turns to those that only manage, but the list has every node.
    if (from.order == cluster::Order::listed)
        for (cluster::NodeId i = 0; i < out.nodes; ++i)
            if (from.nodes[i].role == NodeRole::manager) out.list.push_back(i);
    out.strategy = from.strategy;
    out.order = from.order;
    out.keep = from.keep;
    out.quorum = from.quorum;
    out.credits = from.credits;
    out.parallel = from.parallel;
    out.barrier = from.barrier;
    out.slot_ns = from.slot_us * core::TimeNs{1000};
    out.block = from.block;
    out.timeout_ns = from.timeout_ms * core::ns_per_ms;
    out.join_wait_ns = from.join_wait_ms * core::ns_per_ms;
    return out;
}

std::uint32_t find_node(const RunConfig& run, std::string_view name) {
    using namespace detail;
    if (!run.cluster)
        throw core::UsageError(fmt::format(
            "node: found {}; accepted: no name, because the configuration has no [cluster]", in_quotes(name)));
    const std::vector<std::string_view> names = node_names(*run.cluster);
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
        throw core::UsageError(fmt::format("node: found {}; accepted: {}", unknown_node(name, names), any_of(names)));
    return static_cast<std::uint32_t>(found - names.begin());
}

std::uint64_t agreement(const RunConfig& run) {
    const nlohmann::json all = config_json(run);
    nlohmann::json common;
    for (const char* table : {"cluster", "node", "stream", "format", "events"})
        if (const auto found = all.find(table); found != all.end()) common[table] = *found;
    for (nlohmann::json& stream : common["stream"]) stream.erase("port");
    for (nlohmann::json& node : common["node"]) node.erase("serve");
    common["cluster"].erase("memory");
    common["cluster"].erase("secret_file");  // where a node has it; what is in it is asked for beside this number
    // How a node keeps its own open events.
    for (const char* key : {"memory", "window", "assembly", "horizon"}) common["events"].erase(key);
    return hash_of(common.dump());
}

}  // namespace weir::config
