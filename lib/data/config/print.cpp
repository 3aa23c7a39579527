// A RunConfig as TOML that reads back the same, as JSON for the report and the manifest, and the reference of all keys.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/parts.hpp"
#include "config/run_config.hpp"
#include "config/stream_options.hpp"

namespace weir::config {

using namespace detail;

namespace {

std::string print_port(const PortConfig& port) {
    const std::string from =
        port.profile.file.empty() ? "" : fmt::format("# with the values of {}\n", in_quotes(port.profile.file));
    return "\n[[port]]\n" + from + port_options().print(port);
}

std::string print_stream(const RunConfig& run, const StreamConfig& stream) {
    const std::uint32_t last = stream.first_source + stream.source_count - 1;
    const std::string sources = stream.source_count == 1 ? fmt::format("source {}", stream.first_source)
                                                         : fmt::format("sources {}..{}", stream.first_source, last);
    return fmt::format("\n[[stream]]\n# {}\n", sources) + stream_options(run).print(stream);
}

}  // namespace

std::string print_config(const RunConfig& config) {
    std::string out =
        "# The effective configuration: what was written, what a profile added, and what was filled in (default).\n";
    out += run_options().print(config);
    for (const PortConfig& port : config.ports) out += print_port(port);
    for (const StreamConfig& stream : config.streams) out += print_stream(config, stream);
    for (const wire::DeclaredSpec& spec : config.formats) out += "\n[[format]]\n" + format_table_options().print(spec);
    out += "\n[events]\n" + events_options().print(config.events);
    for (const ReduceConfig& reducer : config.reduce) out += print_reducer(reducer);
    for (const SinkConfig& sink : config.sinks) out += print_sink(sink);
    out += "\n[lcores]\n" + lcores_options().print(config.lcores);
    if (config.serve) out += "\n[serve]\n" + serve_options().print(*config.serve);
    if (!config.cluster) return out;
    out += "\n[cluster]\n" + cluster_options().print(*config.cluster);
    for (const ClusterNode& node : config.cluster->nodes) out += "\n[[node]]\n" + node_options().print(node);
    return out;
}

nlohmann::json config_json(const RunConfig& config) {
    nlohmann::json out = run_options().report(config);
    out["events"] = events_options().report(config.events);
    out["lcores"] = lcores_options().report(config.lcores);
    if (config.serve) out["serve"] = serve_options().report(*config.serve);
    if (config.cluster) {
        out["cluster"] = cluster_options().report(*config.cluster);
        for (const ClusterNode& node : config.cluster->nodes) out["node"].push_back(node_options().report(node));
    }
    for (const char* key : {"port", "stream", "format", "reduce", "sink", "sources"})
        out[key] = nlohmann::json::array();
    for (const PortConfig& port : config.ports) out["port"].push_back(port_options().report(port));
    for (const StreamConfig& stream : config.streams) out["stream"].push_back(stream_options(config).report(stream));
    for (const wire::DeclaredSpec& spec : config.formats) out["format"].push_back(format_table_options().report(spec));
    for (const ReduceConfig& reducer : config.reduce) out["reduce"].push_back(reducer_json(reducer));
    for (const SinkConfig& sink : config.sinks) out["sink"].push_back(sink_json(sink));
    for (const SourceConfig& source : config.sources) out["sources"].push_back(source.label);
    return out;
}

options::Reference config_reference() {
    const RunConfig nothing;
    options::Reference out{{"top", "key", run_options().explained()},
                           {"port", "key", port_options().explained()},
                           {"stream", "key", stream_options(nothing).explained()},
                           {"events", "key", events_options().explained()}};
    explain_reducers(out);
    explain_sinks(out);
    out.push_back({"lcores", "key", lcores_options().explained()});
    out.push_back({"serve", "key", serve_options().explained()});
    out.push_back({"cluster", "key", cluster_options().explained()});
    out.push_back({"node", "key", node_options().explained()});
    out.push_back({"format", "key", format_table_options().explained()});
    return out;
}

}  // namespace weir::config
