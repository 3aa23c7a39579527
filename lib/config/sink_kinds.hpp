// The kinds of sink whose keys are read in files of their own: for the table in config_sink.cpp. Private to
// config*.cpp.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "config/sink.hpp"

namespace weir::pipeline::detail {

class TableReader;
class Printer;

void read_hdf5_sink(TableReader& table, SinkConfig& sink);
void print_hdf5_sink(Printer& out, const SinkConfig& sink);
void hdf5_sink_json(nlohmann::json& out, const SinkConfig& sink);
inline constexpr auto hdf5_keys =
    std::to_array<std::string_view>({"segment_bytes", "events_per_file", "sync_bytes", "sync_ms", "codec", "nexus"});

}  // namespace weir::pipeline::detail
