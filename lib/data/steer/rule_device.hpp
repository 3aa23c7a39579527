// What a device can be asked to do with rules. One real device behind it (rte_rules.hpp), and one in the tests that
// does what it accepted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "steer/flow_rule.hpp"

namespace weir::steer {

/// Control thread only. `slot` is the caller's number for a rule.
class RuleDevice {
public:
    virtual ~RuleDevice() = default;
    /// Empty: the device has the rule now. Otherwise why not, in the driver's words.
    [[nodiscard]] virtual std::string create(std::uint32_t slot, const FlowRule& rule, std::uint32_t priority) = 0;
    virtual void destroy(std::uint32_t slot) = 0;
    /// Packets that the device counted for the rule; nothing where it does not count.
    [[nodiscard]] virtual std::optional<std::uint64_t> hits(std::uint32_t slot) = 0;
};

}  // namespace weir::steer
