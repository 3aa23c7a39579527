#include "wire/formats/eiger/eiger.hpp"
#include "core/error.hpp"
#include "simulate/formats/sls.hpp"

namespace weir::simulate {
namespace {

class EigerFrames final : public SimulatedBytes {
public:
    EigerFrames(const SimulatorConfig& config, const wire::FormatContext& context)
        : SimulatedBytes(config), config_(config), context_(context) {}

    void put_header(const SimulatedPacket& packet, std::span<std::byte> datagram) const noexcept override {
        // The two tiles of a half module stand side by side and have ids of their own.
        wire::SlsHeader header = sls_header(config_, context_, packet, wire::Eiger::detector_type);
        header.row = static_cast<std::uint16_t>(packet.source / 2);
        header.column = static_cast<std::uint16_t>(packet.source % 2);
        wire::write_sls(header, {}, datagram);
    }

private:
    const SimulatorConfig& config_;
    const wire::FormatContext& context_;
};

}  // namespace

SimulationEntry simulated_eiger() {
    return {.name = wire::Eiger::name,
            .context = sls_context_of,
            .make = make_simulated<EigerFrames>,
            .fixed_packets = true,
            .over_roce = true,
            .row_bytes =
                [](const SimulatorConfig& config) { return wire::Eiger::columns * config.bit_depth.value_or(16) / 8; },
            .check =
                [](const SimulatorConfig& config, const wire::FormatContext&) {
                    core::require(config.first_event != 0, "--first-event 0: EIGER counts its frames from 1");
                }};
}

}  // namespace weir::simulate
