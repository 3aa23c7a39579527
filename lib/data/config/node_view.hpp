// A run over many nodes as one of them sees it: the configuration of what this node does by itself.
#pragma once

#include <cstdint>
#include <vector>

#include "config/run_config.hpp"

namespace weir::config {

/// Of a readout node: the streams that arrive at it, their sources from 0 on, and the ports that they name. Its events
/// are parts of events; they go to builders (ClusterSinkConfig) and, as packets, to what records them.
[[nodiscard]] RunConfig readout_view(const RunConfig& run, std::uint32_t node);

/// Of a builder: all sources, what is done to events, and where they go.
[[nodiscard]] RunConfig builder_view(const RunConfig& run, std::uint32_t node);

/// What the sources of a readout_view are called in the whole run: its ids by those of the view.
[[nodiscard]] std::vector<std::uint32_t> global_sources(const RunConfig& run, std::uint32_t node);

}  // namespace weir::config
