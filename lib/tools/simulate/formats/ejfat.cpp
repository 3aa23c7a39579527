#include "wire/formats/ejfat/ejfat.hpp"
#include "simulate/simulated_format.hpp"

namespace weir::simulate {
namespace {

class EjfatFrames final : public SimulatedBytes {
public:
    EjfatFrames(const SimulatorConfig& config, const wire::FormatContext& /*context*/)
        : SimulatedBytes(config), config_(config) {}

    void put_header(const SimulatedPacket& packet, std::span<std::byte> datagram) const noexcept override {
        const wire::EjfatHeader header{.data_id = static_cast<std::uint16_t>(packet.source),
                                       .offset = packet.offset,
                                       .total = packet.total,
                                       .event = packet.event,
                                       .lb_version = config_.lb_version,
                                       .re_version = config_.re_version,
                                       .entropy = static_cast<std::uint16_t>(mix(config_.seed, packet.event)),
                                       .tick = packet.event};
        wire::write_ejfat(header, {}, datagram);
    }

private:
    const SimulatorConfig& config_;
};

}  // namespace

SimulationEntry simulated_ejfat() {
    return {.name = wire::Ejfat::name,
            .context = [](const SimulatorConfig& config) -> wire::FormatContext {
                const std::uint32_t lb_bytes = config.lb_version != 0 ? wire::Ejfat::lb_header_bytes : 0;
                return {.header_bytes = wire::Ejfat::re_header_bytes + lb_bytes};
            },
            .make = make_simulated<EjfatFrames>,
            .port = 19522,  // the load balancer's, 0x4C42
            .source_port = 20000,
            .over_roce = true,
            .load_balancer = true};
}

}  // namespace weir::simulate
