#include "wire/formats/moench/moench.hpp"
#include "simulate/formats/sls.hpp"

namespace weir::simulate {
namespace {

class MoenchFrames final : public SimulatedBytes {
public:
    MoenchFrames(const SimulatorConfig& config, const wire::FormatContext& context)
        : SimulatedBytes(config), config_(config), context_(context) {}

    void put_header(const SimulatedPacket& packet, std::span<std::byte> datagram) const noexcept override {
        wire::write_sls(sls_header(config_, context_, packet, wire::Moench::detector_type), {}, datagram);
    }

private:
    const SimulatorConfig& config_;
    const wire::FormatContext& context_;
};

}  // namespace

SimulationEntry simulated_moench() {
    return {.name = wire::Moench::name,
            .context = sls_context_of,
            .make = make_simulated<MoenchFrames>,
            .fixed_packets = true,
            .over_roce = true,
            .row_bytes = [](const SimulatorConfig&) { return wire::Moench::row_bytes; }};
}

}  // namespace weir::simulate
