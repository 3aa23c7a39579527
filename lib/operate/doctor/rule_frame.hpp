// A frame that a flow rule is for, made of the rule's own conditions: to send, and to see where it arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "steer/classifier.hpp"

namespace weir::doctor {

/// A short UDP datagram that `rules` decide by this rule; `variety` makes another flow of it, as far as the rule leaves
/// room. Nothing where the rule is for other packets, or an earlier one takes them all.
[[nodiscard]] std::optional<std::vector<std::byte>> rule_frame(const steer::Classifier& rules, std::uint32_t rule,
                                                               std::uint32_t variety);

}  // namespace weir::doctor
