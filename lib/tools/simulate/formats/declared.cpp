// Formats that a [[format]] describes, in the simulator.
#include "wire/formats/declared/declared.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "simulate/simulated_format.hpp"
#include "wire/network.hpp"

namespace weir::simulate {
namespace {

/// Whether every packet is a whole message.
bool is_one_packet(const wire::DeclaredSpec& spec) noexcept {
    return !spec.index && !spec.offset;
}

class DeclaredFrames final : public SimulatedBytes {
public:
    DeclaredFrames(const SimulatorConfig& config, const wire::FormatContext& context)
        : SimulatedBytes(config), config_(config), context_(context) {}

    void put_header(const SimulatedPacket& packet, std::span<std::byte> datagram) const noexcept override {
        const unsigned bits = context_.number_bits;
        const std::uint64_t counter = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
        const wire::DeclaredValues values{.event = packet.event & counter,
                                          .index = packet.index,
                                          .offset = packet.offset,
                                          .total = packet.total,
                                          .source = config_.source_id + packet.source,
                                          .sequence = packet.counter};
        wire::write_declared(config_.declared, values, {}, datagram);
    }

private:
    const SimulatorConfig& config_;
    const wire::FormatContext& context_;
};

/// Whether the field, if there is one, can hold every number up to `largest`.
void check_field(const wire::DeclaredSpec& spec, const char* key, const wire::FieldReader& field,
                 std::uint64_t largest) {
    if (field.mask == 0 || largest <= field.mask) return;
    throw core::UsageError(
        fmt::format("format \"{}\": its {} holds numbers up to {}, and {} is needed; "
                    "--bytes sets the size of messages",
                    spec.name, key, field.mask, largest));
}

void check_declared(const SimulatorConfig& config, const wire::FormatContext& context) {
    const std::uint32_t headers = wire::ipv4_header_bytes + wire::udp_header_bytes + context.header_bytes;
    const bool one_packet = is_one_packet(config.declared);
    const std::uint64_t bytes = context.message_bytes != 0 ? context.message_bytes : config.bytes_max;
    const std::uint64_t packet = context.payload_bytes != 0 ? context.payload_bytes : one_packet ? bytes : 1;
    if (config.mtu < headers + packet)
        throw core::UsageError(
            fmt::format("--mtu {}: a packet of the format \"{}\" has {} bytes and is never fragmented", config.mtu,
                        config.declared.name, headers + packet));
    check_field(config.declared, "total", context.total, bytes);
    check_field(config.declared, "offset", context.offset, bytes);
    if (context.payload_bytes != 0) check_field(config.declared, "index", context.index, bytes / context.payload_bytes);
    check_field(config.declared, "source", context.source, std::uint64_t{config.source_id} + config.sources - 1);
}

}  // namespace

SimulationEntry simulated_declared() {
    return {.name = wire::Declared::name,
            .context =
                [](const SimulatorConfig& config) {
                    return wire::Declared::make_context({.message_bytes_max = ~0U, .declared = config.declared});
                },
            .make = make_simulated<DeclaredFrames>,
            .fills_datagram = [](const SimulatorConfig& config) { return is_one_packet(config.declared); },
            .check = check_declared};
}

}  // namespace weir::simulate
