#include "wire/formats/message/message.hpp"
#include "simulate/simulated_format.hpp"

namespace weir::simulate {
namespace {

class MessageFrames final : public SimulatedBytes {
public:
    MessageFrames(const SimulatorConfig& config, const wire::FormatContext& /*context*/) : SimulatedBytes(config) {}

    void put_header(const SimulatedPacket& /*packet*/, std::span<std::byte> /*datagram*/) const noexcept override {}
};

}  // namespace

SimulationEntry simulated_message() {
    return {.name = wire::WholeMessage::name,
            .context = header_only<0>,
            .make = make_simulated<MessageFrames>,
            .one_datagram = true,
            .over_roce = true,
            .fills_datagram = [](const SimulatorConfig&) { return true; }};
}

}  // namespace weir::simulate
