// Gives a device the rules of a run, and looks whether it does what it accepted: by packets that are sent for them, by
// those that come anyway, and by its own counters. A device that says yes and does nothing is found out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "doctor/host_facts.hpp"
#include "steer/port_rules.hpp"

namespace weir::doctor {

/// How packets get to the device, and from it. One real one behind it (device_probe.cpp), one in the tests.
class RuleTraffic {
public:
    struct Arrival {
        std::span<const std::byte> frame;
        std::uint16_t queue = 0;
        std::optional<std::uint32_t> mark{};
    };
    virtual ~RuleTraffic() = default;
    /// Towards the device, from outside. False: this cannot be done here.
    virtual bool send(std::span<const std::byte> frame) = 0;
    /// What has arrived since.
    virtual void receive(const std::function<void(const Arrival&)>& take) = 0;
    /// False: that was long enough. Asked once in every turn.
    virtual bool go_on() = 0;
};

/// By rule. Takes them out of the device again.
[[nodiscard]] std::vector<RuleOutcome> try_rules(const std::vector<steer::FlowRule>& rules,
                                                 const steer::PortRules::Options& options, steer::RuleDevice& device,
                                                 RuleTraffic& traffic);

}  // namespace weir::doctor
