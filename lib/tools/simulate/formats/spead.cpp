#include "wire/formats/spead/spead.hpp"
#include "simulate/simulated_format.hpp"

namespace weir::simulate {
namespace {

constexpr std::uint32_t spead_items = 6;  ///< those of the heap, time stamp and engine

class SpeadFrames final : public SimulatedBytes {
public:
    SpeadFrames(const SimulatorConfig& config, const wire::FormatContext& context)
        : SimulatedBytes(config), context_(context) {}

    void put_header(const SimulatedPacket& packet, std::span<std::byte> datagram) const noexcept override {
        const std::array<wire::SpeadItem, 2> items{{{0x1600, packet.event}, {0x4101, packet.source}}};
        const wire::SpeadHeader header{.heap = packet.event,
                                       .heap_bytes = packet.total,
                                       .offset = packet.offset,
                                       .payload_bytes = datagram.size() - context_.header_bytes,
                                       .items = items};
        wire::write_spead(header, {}, datagram);
    }

private:
    const wire::FormatContext& context_;
};

}  // namespace

SimulationEntry simulated_spead() {
    return {.name = wire::Spead::name,
            .context = header_only<wire::Spead::header_bytes + spead_items * wire::Spead::item_bytes>,
            .make = make_simulated<SpeadFrames>,
            .port = 7148};  // MeerKAT's
}

}  // namespace weir::simulate
