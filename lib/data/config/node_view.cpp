#include "config/node_view.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "config/parts.hpp"
#include "config/reducers/jungfrau.hpp"
#include "config/sinks/cluster.hpp"

namespace weir::config {

namespace {

/// Only the ports that streams name. Flow rules have the number of their port, or 0.
void leave_out_ports(RunConfig& view) {
    std::vector<PortConfig> ports;
    std::vector<std::uint32_t> places(view.ports.size());
    for (std::uint32_t i = 0; i < view.ports.size(); ++i) {
        if (std::ranges::find(view.streams, i, &StreamConfig::port) == view.streams.end()) continue;
        places[i] = static_cast<std::uint32_t>(ports.size());
        ports.push_back(std::move(view.ports[i]));
        for (steer::FlowRule& rule : ports.back().rules)
            if (rule.port != 0) rule.port = places[i];
    }
    for (StreamConfig& stream : view.streams) stream.port = places[stream.port];
    view.ports = std::move(ports);
}

/// The sources of the streams that are left, from 0 on.
void number_sources_again(RunConfig& view, const RunConfig& run) {
    view.sources.clear();
    for (std::uint32_t i = 0; i < view.streams.size(); ++i) {
        StreamConfig& stream = view.streams[i];
        const auto first = run.sources.begin() + stream.first_source;
        stream.first_source = static_cast<std::uint32_t>(view.sources.size());
        view.sources.insert(view.sources.end(), first, first + stream.source_count);
        for (auto source = view.sources.begin() + stream.first_source; source != view.sources.end(); ++source)
            source->stream = i;
    }
}

void put_node(std::string& path, const std::string& node) {
    constexpr std::string_view placeholder = "{node}";
    for (std::size_t at = 0; (at = path.find(placeholder, at)) != std::string::npos; at += node.size())
        path.replace(at, placeholder.size(), node);
}

/// Nodes of one host have the same [serve], and sockets, addresses and files of their own.
void serve_as_node(RunConfig& view, const ClusterNode& node) {
    view.node = node.name;
    if (!view.serve && node.serve.empty()) return;
    if (!view.serve) view.serve.emplace();
    if (!node.serve.empty()) view.serve->listen = node.serve;
    for (std::string* path : {&view.serve->socket, &view.serve->reports, &view.serve->run_log})
        put_node(*path, node.name);
}

}  // namespace

RunConfig readout_view(const RunConfig& run, std::uint32_t node) {
    RunConfig view = run;
    serve_as_node(view, run.cluster->nodes[node]);
    std::erase_if(view.streams, [node](const StreamConfig& stream) { return stream.node != node; });
    leave_out_ports(view);
    number_sources_again(view, run);
    view.reduce.clear();
    view.events.sources = static_cast<std::uint32_t>(view.sources.size());
    // What becomes of an event that is incomplete is for the builder to decide.
    view.events.incomplete = IncompleteMode::keep;
    std::erase_if(view.sinks, detail::goes_to_builders);
    SinkConfig parts;
    parts.options = ClusterSinkConfig{};
    parts.place = run.cluster->place;
    view.sinks.insert(view.sinks.begin(), std::move(parts));
    return view;
}

RunConfig builder_view(const RunConfig& run, std::uint32_t node) {
    RunConfig view = run;
    serve_as_node(view, run.cluster->nodes[node]);
    std::erase_if(view.sinks, [](const SinkConfig& sink) { return !detail::goes_to_builders(sink); });
    // A builder has the events of its blocks only: readout nodes know which numbers are missing.
    view.events.stride = EventsConfig::stride_sparse;
    // Blocks come whole, and say what is missing in them.
    view.events.timeout_ms = std::numeric_limits<decltype(view.events.timeout_ms)>::max();
    // And no packets come.
    for (ReduceConfig& reducer : view.reduce)
        if (auto* const jungfrau = reducer.options.get_if<JungfrauOptions>(); jungfrau != nullptr)
            jungfrau->at = JungfrauOptions::At::event;
    if (!view.lcores.rx.empty()) view.lcores.rx.resize(1);
    return view;
}

std::vector<std::uint32_t> global_sources(const RunConfig& run, std::uint32_t node) {
    std::vector<std::uint32_t> ids;
    for (const StreamConfig& stream : run.streams)
        if (stream.node == node)
            for (std::uint32_t i = 0; i < stream.source_count; ++i) ids.push_back(stream.first_source + i);
    return ids;
}

}  // namespace weir::config
