// The tables of the configuration, and the checks across them.
#pragma once

#include "config/names.hpp"
#include "config/run_config.hpp"
#include "options/kind.hpp"
#include "options/reference.hpp"

namespace weir::config::detail {

using options::any_of;
using options::Bounds;
using options::describe;
using options::Explained;
using options::fail;
using options::format_size;
using options::hex_text;
using options::in_quotes;
using options::Kind;
using options::kind_of;
using options::name_of;
using options::names_in;
using options::nearest;
using options::Option;
using options::OptionTable;
using options::Place;
using options::quoted_words;
using options::Reference;
using options::TableReader;
using options::toml_text;
using options::value_of;

inline constexpr std::uint32_t sources_max = 65536;
inline constexpr std::uint32_t message_bytes_default = 16U << 20;
inline constexpr std::uint64_t message_bytes_limit = (std::uint64_t{1} << 32) - 1;  // offsets have 32 bits

/// Wants `run.cluster`.
std::vector<PortConfig> read_ports(TableReader& root, const RunConfig& run);
OptionTable<PortConfig> port_options();
/// The keys of a port that are about flow rules, after `queues`.
void add_flow_options(OptionTable<PortConfig>& out);
/// Throws if the rules are not about this port, or name queues that it does not have: what their syntax cannot know.
/// `index` is the port's place in the configuration, which is its number in its rules.
void check_rules(const PortConfig& port, std::uint32_t index);
/// [[format]] of the file and of those in `include`, whose errors name the included file.
std::vector<wire::DeclaredSpec> read_formats(TableReader& root);
/// Throws if no rule of the port gives this mark.
void check_mark(const TableReader& table, const PortConfig& port, std::uint32_t mark);
/// The keys that are in no table.
OptionTable<RunConfig> run_options();
/// [events], without the comparison of `sources` with the streams.
OptionTable<EventsConfig> events_options();
OptionTable<LcoresConfig> lcores_options();
OptionTable<ServeConfig> serve_options();
OptionTable<ClusterConfig> cluster_options();
OptionTable<ClusterNode> node_options();
/// [cluster] and its [[node]]s.
void read_cluster(TableReader& root, RunConfig& run);
/// What a cluster asks of streams, ports and sinks; wants all of them.
void check_cluster(const RunConfig& run);
/// Throws if two ports of a node are the same device.
void check_node_devices(const RunConfig& run);
/// Throws if the path has {node} where there is none, or has to have it.
void check_node_in_path(TableReader& table, const RunConfig& run, const SinkConfig& sink);
/// A [[format]] table.
OptionTable<wire::DeclaredSpec> format_table_options();
std::vector<ReduceConfig> read_reducers(TableReader& root);
std::string print_reducer(const ReduceConfig& reducer);
nlohmann::json reducer_json(const ReduceConfig& reducer);
void explain_reducers(Reference& out);
/// Throws if a reducer cannot take what it would get; wants `run.streams`.
void check_reducers(RunConfig& run);
/// [[sink]], each as its kind has it; wants `run.cluster`.
std::vector<SinkConfig> read_sinks(TableReader& root, const RunConfig& run);
std::string print_sink(const SinkConfig& sink);
nlohmann::json sink_json(const SinkConfig& sink);
void explain_sinks(Reference& out);
/// In a cluster: whether builders have it, because it takes whole events, or readout nodes, because it takes packets.
bool goes_to_builders(const SinkConfig& sink);
/// What kinds of sinks ask of the run as a whole; wants `run.events` and `run.sinks`.
void check_sinks(const RunConfig& run);
/// What they warn of, once everything is known.
void warn_of_sinks(RunConfig& run);
/// Streams and the sources that follow from them; wants `run.ports`, `run.formats`, `run.events` and
/// `run.cluster`.
void read_streams(TableReader& root, RunConfig& run);
/// Throws if regions are to be real memory and cannot be; wants `stream.event` and `run.events`.
void check_backed_regions(TableReader& table, const RunConfig& run, const StreamConfig& stream);
/// Throws if such memory is not as large as the format's header and a whole frame.
void check_frame_bytes(TableReader& table, const StreamConfig& stream, const wire::FormatContext& context);
/// What an exchange asks of the stream and its port, and memory for WRITEs where none was configured.
void agree_on_exchange(TableReader& table, const RunConfig& run, StreamConfig& stream);
/// Throws if two streams listen at one place.
void check_listeners(const RunConfig& run, std::vector<TableReader>& readers);
/// Throws if two streams claim the same packets. `readers` are those of the streams, in order.
void check_claims(const RunConfig& run, std::vector<TableReader>& readers);

/// The whole file, at most 16 MiB. Throws core::UsageError.
std::string read_text(const std::filesystem::path& file);
/// TOML or a core::UsageError with line and column.
toml::table parse_toml(std::string_view text, std::string_view file_name);

}  // namespace weir::config::detail
