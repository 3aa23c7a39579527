// From a [[port]] to what LivePort needs: one way for runs and for whoever only looks at the device.
#pragma once

#include <cstdint>

#include "config/run_config.hpp"
#include "port/port_setup.hpp"

namespace weir::port {

/// `index`: in the configuration. Answers nobody's RDMA requests; otherwise complete.
[[nodiscard]] LivePortConfig live_port_config(const config::PortConfig& config, std::uint8_t index);

}  // namespace weir::port
