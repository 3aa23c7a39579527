// What the simulated detectors of PSI have in common.
#pragma once

#include "simulate/simulated_format.hpp"

namespace weir::simulate {

wire::FormatContext sls_context_of(const SimulatorConfig& config);

/// Frame and packet number, time and module. A source is a UDP port.
wire::SlsHeader sls_header(const SimulatorConfig& config, const wire::FormatContext& context,
                           const SimulatedPacket& packet, std::uint8_t detector_type) noexcept;

}  // namespace weir::simulate
