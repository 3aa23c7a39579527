#include "wire/formats/ess/ess.hpp"
#include "core/error.hpp"
#include "simulate/simulated_format.hpp"

namespace weir::simulate {
namespace {

constexpr std::uint32_t ess_pulses_per_s = 14;
constexpr std::uint32_t ess_pulse_ticks = 88'052'500 / ess_pulses_per_s;

class EssFrames final : public SimulatedBytes {
public:
    EssFrames(const SimulatorConfig& config, const wire::FormatContext& /*context*/) : SimulatedBytes(config) {}

    void put_header(const SimulatedPacket& packet, std::span<std::byte> datagram) const noexcept override {
        const std::uint64_t previous = packet.event != 0 ? packet.event - 1 : 0;
        const wire::EssHeader header{
            .output_queue = static_cast<std::uint8_t>(packet.source % (wire::Ess::output_queue_max + 1)),
            .pulse_seconds = seconds(packet.event),
            .pulse_ticks = ticks(packet.event),
            .previous_seconds = seconds(previous),
            .previous_ticks = ticks(previous),
            .sequence = packet.counter};
        // The length is in the header, so the encoder wants to see the content.
        wire::write_ess(header, datagram.subspan(wire::Ess::header_bytes_v0), datagram);
    }

private:
    static std::uint32_t seconds(std::uint64_t pulse) noexcept {
        return static_cast<std::uint32_t>(pulse / ess_pulses_per_s);
    }
    static std::uint32_t ticks(std::uint64_t pulse) noexcept {
        return static_cast<std::uint32_t>(pulse % ess_pulses_per_s) * ess_pulse_ticks;
    }
};

}  // namespace

SimulationEntry simulated_ess() {
    return {.name = wire::Ess::name,
            .context = header_only<wire::Ess::header_bytes_v0>,
            .make = make_simulated<EssFrames>,
            .port = 9000,  // the event formation units'
            .one_datagram = true,
            .fills_datagram = [](const SimulatorConfig&) { return true; },
            .check =
                [](const SimulatorConfig& config, const wire::FormatContext&) {
                    core::require(config.bytes_min > 0,
                                  "--bytes-min 0: an ESS packet without data is a heartbeat, which is no message");
                }};
}

}  // namespace weir::simulate
