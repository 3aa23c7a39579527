#include "simulate/formats/sls.hpp"

namespace weir::simulate {

wire::FormatContext sls_context_of(const SimulatorConfig& config) {
    wire::FormatOptions options;
    options.interfaces = static_cast<int>(config.interfaces);
    options.sls = {.rows = config.rows, .bit_depth = config.bit_depth, .tengiga = config.tengiga};
    return wire::find_format(config.format)->make_context(options);
}

wire::SlsHeader sls_header(const SimulatorConfig& config, const wire::FormatContext& context,
                           const SimulatedPacket& packet, std::uint8_t detector_type) noexcept {
    // Modules stand on top of each other.
    return {.frame_number = packet.event,
            .exposure_100ns = 100,
            .packet_number = context.sls.lanes[packet.source % config.interfaces].first_packet + packet.index,
            .timestamp_100ns = packet.event * 10000,  // as if at 1 kHz
            .module_id = static_cast<std::uint16_t>(packet.source / config.interfaces),
            .row = static_cast<std::uint16_t>(packet.source),
            .detector_type = detector_type};
}

}  // namespace weir::simulate
