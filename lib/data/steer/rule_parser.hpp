// Reads flow rules in the syntax of dpdk-testpmd ("flow create 0 ingress pattern eth / ipv4 src is 10.1.0.10 / udp dst
// is 50001 / end actions queue index 2 / end"), so that a line can be pasted from one program into the other.
// docs/reference/FLOW_RULES.md is the user's page. Syntax: DPDK 22.11, testpmd user guide, "Flow rules management".
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "steer/flow_rule.hpp"

namespace weir::steer {

/// Most rules of one file.
inline constexpr std::size_t rules_max = 4096;

/// All rules of the text, in order. Empty lines and what follows a `#` are skipped.
/// Throws core::UsageError "FILE:LINE:COLUMN: found …; expected: …".
std::vector<FlowRule> parse_rules(std::string_view text, std::string_view file_name);

/// The same for a file.
std::vector<FlowRule> load_rules(const std::filesystem::path& file);

}  // namespace weir::steer
