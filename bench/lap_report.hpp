// What is said of the laps of a case: rates with their spread, and ratios within a turn.
#pragma once

#include <nlohmann/json.hpp>

#include <span>
#include <string>

#include "lap.hpp"

namespace weir::bench {

/// The case itself: its packets, its order, the size of the working set.
[[nodiscard]] nlohmann::json describe_case(const StreamKind& kind, const WorkingSet& set, const Mix& mix);

/// NAME_mpps (median, _min, _max), NAME_gbps (of frames), NAME_cycles, and the least share of the CPU, NAME_busy_min.
void report_laps(nlohmann::json& out, const std::string& name, std::span<const Lap> laps, const WorkingSet& set,
                 double tsc_hz);

/// How many times as fast `above` is as `below`: the median of the turns. Nothing if one of them has not run.
void report_ratio(nlohmann::json& out, const std::string& name, std::span<const Lap> above, std::span<const Lap> below);

}  // namespace weir::bench
