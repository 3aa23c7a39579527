// How rules stand to each other and to a packet that is known in part: which come first, which can meet in a packet,
// and what becomes of a stream of which only some header fields are known.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "steer/flow_rule.hpp"

namespace weir::steer {

/// Indices of the rules, the one that wins first: by priority number, then as they stand.
[[nodiscard]] std::vector<std::uint32_t> precedence(std::span<const FlowRule> rules);

/// Whether some packet may match both. May say yes where there is none, never no where there is one.
[[nodiscard]] bool may_overlap(const FlowRule& a, const FlowRule& b) noexcept;

/// The same becomes of a packet (counting aside).
[[nodiscard]] bool same_outcome(const FlowRule& a, const FlowRule& b);

/// Has the action.
[[nodiscard]] bool has_action(const FlowRule& rule, ActionKind kind) noexcept;

/// Priority numbers for a device, per rule: as few as do, from 0. rte_flow leaves open which of two rules of one number
/// wins; so a rule that may meet one of higher precedence with another outcome has a higher number, and all others
/// stay at 0, which is the only number that many devices know.
[[nodiscard]] std::vector<std::uint32_t> device_priorities(std::span<const FlowRule> rules);

/// A packet of which some fields are known.
struct PartialPacket {
    Shape shape{};
    std::array<std::optional<Wide>, field_count> values{};

    void set(Field field, const Wide& value) noexcept { values[static_cast<std::size_t>(field)] = value; }
};

enum class Match : std::uint8_t { no, maybe, yes };
[[nodiscard]] Match match(const FlowRule& rule, const PartialPacket& packet) noexcept;

/// The queue to which the rules send all packets that look so, or nothing: none, several, or it cannot be known.
/// Packets that a rule drops go nowhere and do not count.
[[nodiscard]] std::optional<std::uint16_t> queue_of(std::span<const FlowRule> rules, const PartialPacket& packet);

}  // namespace weir::steer
