// Findings for people, and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "probe/findings.hpp"

namespace weir::probe {

/// Tables: what came, which streams it makes, their sources. Lines may be long.
[[nodiscard]] std::string findings_text(const Findings& findings);

/// docs/guides/PROBE.md has its fields.
[[nodiscard]] nlohmann::json findings_json(const Findings& findings);

}  // namespace weir::probe
