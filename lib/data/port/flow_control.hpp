// Pause frames and priority flow control, as the configuration asks for them and as far as the driver takes them.
#pragma once

#include <cstdint>
#include <string>

#include "config/port_options.hpp"

namespace weir::port {

struct FlowControlResult {
    std::string text;     ///< what is in force: "left as the device has it", "pause frames: full; PFC on priority 3"
    std::string refused;  ///< what the driver did not do, with its reason; empty if nothing
};

/// For a port that has been started.
[[nodiscard]] FlowControlResult set_flow_control(std::uint16_t port_id, const config::PortOptions& options);

}  // namespace weir::port
