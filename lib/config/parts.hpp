// The sections of the configuration, one function each. Private to config*.cpp.
#pragma once

#include <array>

#include "config/reader.hpp"

namespace weir::pipeline::detail {

inline constexpr std::uint32_t sources_max = 65536;
inline constexpr std::uint32_t message_bytes_default = 16U << 20;
inline constexpr std::uint64_t message_bytes_limit = (std::uint64_t{1} << 32) - 1;  // offsets have 32 bits

std::vector<PortConfig> read_ports(TableReader& root);
/// The keys of a port that are about flow rules: flows, steer, on_refusal, isolated; `port.queues` is read already.
/// `index` is the port's place in the configuration, which is its number in its rules.
void read_flow_keys(TableReader& table, std::uint32_t index, PortConfig& port);
/// [[format]] of the file and of those in `include`, whose errors name the included file.
std::vector<wire::DeclaredSpec> read_formats(TableReader& root);
/// Throws if no rule of the port gives this mark.
void check_mark(const TableReader& table, const PortConfig& port, std::uint32_t mark);
/// All of [events] but the comparison of `sources` with the streams.
EventsConfig read_events(TableReader& root);
std::vector<ReduceConfig> read_reducers(TableReader& root);
/// Throws if a reducer cannot take what it would get; wants `run.streams`.
void check_reducers(RunConfig& run);
/// [[sink]], each as its kind has it.
std::vector<SinkConfig> read_sinks(TableReader& root);
/// The keys of a sink of kind "pcapng" besides those that all have.
void read_recorder(TableReader& table, SinkConfig& sink);
inline constexpr auto recorder_keys =
    std::to_array<std::string_view>({"packets", "snap_bytes", "memory", "seconds", "before", "after", "drops",
                                     "files_max", "bytes_max", "segment_bytes", "keep_free"});
/// Throws if a flight recorder forgets sooner than events time out; wants `run.events` and `run.sinks`.
void check_recorders(const RunConfig& run);
/// HDF5 files that not everybody can read, or that cost more than need be.
void warn_of_codecs(RunConfig& run);
LcoresConfig read_lcores(TableReader& root);
/// A field of a header of `header_bytes`: offset, bytes, mask, shift. `more` are keys that the caller reads; it calls
/// finish().
wire::DeclaredField read_field(TableReader& table, std::uint32_t header_bytes,
                               std::initializer_list<std::string_view> more = {});

/// Streams and the sources that follow from them; wants `run.ports`, `run.formats` and `run.events`.
void read_streams(TableReader& root, RunConfig& run);
/// The keys of PSI's detectors: interfaces, rows, bit_depth, tengiga. Refuses those that the format does not have.
void read_detector_keys(TableReader& table, StreamConfig& stream);
/// The keys of a stream that is answered: service, peer, psn, region and so on; `stream.qp` and `stream.exchange` are
/// read already. Refuses those that the service does not have.
void read_responder_keys(TableReader& table, StreamConfig& stream);
/// Throws if regions are to be real memory and cannot be; wants `stream.event` and `run.events`.
void check_backed_regions(TableReader& table, const RunConfig& run, const StreamConfig& stream);
/// What follows from `exchange`, which is read already: where to listen, and memory for WRITEs where none was
/// configured. All other keys of the stream are read.
void read_exchange(TableReader& table, const RunConfig& run, StreamConfig& stream);
/// Throws if two streams listen at one place.
void check_listeners(const RunConfig& run, std::vector<TableReader>& readers);
/// Throws if two streams claim the same packets. `readers` are those of the streams, in order.
void check_claims(const RunConfig& run, std::vector<TableReader>& readers);

/// The whole file, at most 16 MiB. Throws core::UsageError.
std::string read_text(const std::filesystem::path& file);
/// TOML or a core::UsageError with line and column.
toml::table parse_toml(std::string_view text, std::string_view file_name);

}  // namespace weir::pipeline::detail
