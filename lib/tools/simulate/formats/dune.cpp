// DUNE in the simulator: WIBEth frames, of boards of 256 streams in crates of 16 boards.
#include "wire/formats/dune/dune.hpp"
#include "simulate/simulated_format.hpp"

namespace weir::simulate {
namespace {

constexpr std::uint32_t wibeth_bytes = 7184;  ///< of a WIBEth frame, after the DAQEthHeader
constexpr std::uint32_t wibeth_ticks = 2048;  ///< from frame to frame of a stream

class DuneFrames final : public SimulatedBytes {
public:
    DuneFrames(const SimulatorConfig& config, const wire::FormatContext& /*context*/) : SimulatedBytes(config) {}

    void put_header(const SimulatedPacket& packet, std::span<std::byte> datagram) const noexcept override {
        const wire::DuneHeader header{.crate = packet.source >> 12U,
                                      .slot = packet.source >> 8U & 0xfU,
                                      .stream = packet.source & 0xffU,
                                      .sequence = packet.counter,
                                      .timestamp = packet.event * wibeth_ticks,
                                      .block_length = packet.total / wire::Dune::word_bytes};
        wire::write_dune(header, {}, datagram);
    }
};

}  // namespace

SimulationEntry simulated_dune() {
    return {.name = wire::Dune::name,
            .context = [](const SimulatorConfig&) -> wire::FormatContext {
                return {.header_bytes = wire::Dune::header_bytes,
                        .payload_bytes = wibeth_bytes,
                        .message_bytes = wibeth_bytes};
            },
            .make = make_simulated<DuneFrames>,
            .fixed_packets = true};
}

}  // namespace weir::simulate
