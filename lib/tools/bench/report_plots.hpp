// The plots of a report.
#pragma once

#include <string>

#include "bench/point_group.hpp"

namespace weir::bench {

/// Loss ratio against the load: a figure for each transport, sender, depth and message, with every trial.
[[nodiscard]] std::string loss_figures(const std::vector<PointGroup>& groups);

/// Rate without loss against the size of a packet: a figure for each depth, message and goal.
[[nodiscard]] std::string rate_figures(const std::vector<PointGroup>& groups);

/// CPU seconds per GB of sender and receiver; empty where nobody measured them.
[[nodiscard]] std::string cpu_figure(const std::vector<PointGroup>& groups);

/// Quantiles of the latency; empty where there are none.
[[nodiscard]] std::string latency_figure(const std::vector<PointGroup>& groups);

}  // namespace weir::bench
