// The ledger as the run report and telemetry have it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "observe/ledger.hpp"

namespace weir::observe {

/// "packets", "bytes", "messages", "events", "balanced", "wire_loss" and so on, as in the run report; without
/// "sources".
[[nodiscard]] nlohmann::json account_json(const Ledger& ledger);

/// The same with "sources".
[[nodiscard]] nlohmann::json ledger_json(const Ledger& ledger);

/// {"active": {"seconds", "packets_per_s", "gbps", "events_per_s", "sink_bytes_per_s"}, "run": {...}}
[[nodiscard]] nlohmann::json rates_json(const Ledger& ledger, double seconds, double active_seconds);

}  // namespace weir::observe
