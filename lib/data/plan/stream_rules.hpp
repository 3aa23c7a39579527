// Flow rules and streams: the rules that weir writes for a port from its streams, and which rx lcore the rules of a
// port send a stream to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "plan/placement.hpp"
#include "steer/flow_rule.hpp"

namespace weir::plan {

/// The port's own rules: each stream to a queue that the rx lcore polls which assembles it. Empty with one queue, or
/// where the configuration has rules or wants none; `steer = "rules"` and isolation want them with one queue, too.
/// `owners` per source (make_owners). Lines count from 1.
[[nodiscard]] std::vector<steer::FlowRule> make_own_rules(const config::RunConfig& config, std::uint32_t port,
                                                          const std::vector<std::uint16_t>& owners,
                                                          const Placement& placement);

/// What a port does with rules, in words, where it has none of its own making or any other.
[[nodiscard]] std::string_view no_rules_reason(const config::PortConfig& port);

/// Moves the sources of streams that the rule file of their port sends to one queue to the rx lcore that polls it.
void own_by_rules(const config::RunConfig& config, const Placement& placement, std::vector<std::uint16_t>& owners);

/// The rules of every port, or of the one named, as dpdk-testpmd and parse_rules read them; remarks between them.
/// Throws core::UsageError where a stream's format refuses its options, or there is no such port.
[[nodiscard]] std::string flow_rules_text(const config::RunConfig& config, std::string_view port_name);

}  // namespace weir::plan
