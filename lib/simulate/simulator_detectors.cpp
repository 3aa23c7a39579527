// PSI's detectors and declared formats in the simulator: which packets a message has, and what is in them.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "simulate/simulator.hpp"
#include "wire/declared/declared.hpp"
#include "wire/eiger/eiger.hpp"
#include "wire/jungfrau/jungfrau.hpp"
#include "wire/moench/moench.hpp"
#include "wire/network.hpp"

namespace weir::port {

namespace {

constexpr std::uint32_t row_bytes = DetectorImages::columns * 2;

std::uint8_t detector_type(SimulatedFormat format) noexcept {
    switch (format) {
        case SimulatedFormat::moench:
            return wire::Moench::detector_type;
        case SimulatedFormat::eiger:
            return wire::Eiger::detector_type;
        default:
            return wire::Jungfrau::detector_type;
    }
}

/// Whether the field, if there is one, can hold every number up to `largest`.
void check_field(const wire::DeclaredSpec& spec, const char* key, const wire::FieldReader& field,
                 std::uint64_t largest) {
    if (field.mask == 0 || largest <= field.mask) return;
    throw core::UsageError(
        fmt::format("format \"{}\": its {} holds numbers up to {}, and {} is needed; --bytes sets the "
                    "size of messages",
                    spec.name, key, field.mask, largest));
}

}  // namespace

bool is_module(SimulatedFormat format) noexcept {
    return format == SimulatedFormat::jungfrau || format == SimulatedFormat::moench;
}

bool is_sls_detector(SimulatedFormat format) noexcept {
    return is_module(format) || format == SimulatedFormat::eiger;
}

wire::FormatContext simulated_context(const SimulatorConfig& config) {
    if (config.format == SimulatedFormat::declared)
        return wire::Declared::make_context({.message_bytes_max = ~0U, .declared = config.declared});
    wire::FormatOptions options;
    options.interfaces = static_cast<int>(config.interfaces);
    options.sls = {.rows = config.rows, .bit_depth = config.bit_depth, .tengiga = config.tengiga};
    switch (config.format) {
        case SimulatedFormat::jungfrau:
            return wire::Jungfrau::make_context(options);
        case SimulatedFormat::moench:
            return wire::Moench::make_context(options);
        case SimulatedFormat::eiger:
            return wire::Eiger::make_context(options);
        default:
            break;
    }
    if (config.rows || config.bit_depth || config.tengiga)
        throw core::UsageError("rows, bit_depth and tengiga belong to the formats jungfrau, moench and eiger");
    return readout_context(config.format);
}

bool is_one_packet(const wire::DeclaredSpec& spec) noexcept {
    return !spec.index && !spec.offset;
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

std::uint32_t Simulator::lane_of(std::uint32_t source) const noexcept {
    return source % config_.interfaces;
}

std::uint32_t Simulator::image_row(std::uint32_t source, std::uint32_t offset) const noexcept {
    // The packet number says where in the half of this interface a packet lies, whatever part of it is read out.
    const std::uint32_t first = source * (DetectorImages::rows_per_module / config_.interfaces);
    const std::uint32_t skipped = context_.sls.lanes[lane_of(source)].first_packet * wire::Jungfrau::payload_bytes;
    return first + (skipped + offset) / row_bytes;
}

std::size_t Simulator::write_detector(const Planned& packet, std::span<std::byte> out) noexcept {
    const std::uint32_t bytes = context_.payload_bytes;
    wire::write_frame_headers(frame_spec(packet.source), wire::Sls::header_bytes + bytes, out);
    // A source is a UDP port. The two tiles of an EIGER half module stand side by side and have ids of their own; those
    // of the other detectors stand on top of each other.
    const bool eiger = config_.format == SimulatedFormat::eiger;
    const wire::SlsHeader header{
        .frame_number = packet.event,
        .exposure_100ns = 100,
        .packet_number = context_.sls.lanes[lane_of(packet.source)].first_packet + packet.packet,
        .bunch_id = config_.format == SimulatedFormat::jungfrau ? packet.event : 0,
        .timestamp_100ns = packet.event * 10000,  // as if at 1 kHz
        .module_id = static_cast<std::uint16_t>(packet.source / config_.interfaces),
        .row = static_cast<std::uint16_t>(eiger ? packet.source / 2 : packet.source),
        .column = static_cast<std::uint16_t>(eiger ? packet.source % 2 : 0),
        .detector_type = detector_type(config_.format)};
    wire::write_sls(header, {}, out.subspan(header_bytes_));
    message_content(packet.event, packet.source, packet.packet * bytes,
                    out.subspan(header_bytes_ + wire::Sls::header_bytes, bytes));
    return header_bytes_ + wire::Sls::header_bytes + bytes;
}

std::size_t Simulator::write_declared(const Planned& packet, std::span<std::byte> out) noexcept {
    const std::uint32_t total = message_bytes(packet.event, packet.source);
    const std::uint32_t offset = packet.packet * packet_bytes_;
    const std::uint32_t bytes = std::min(packet_bytes_, total - offset);
    const std::uint32_t header_bytes = context_.header_bytes;
    wire::write_frame_headers(frame_spec(packet.source), header_bytes + bytes, out);
    const unsigned bits = context_.number_bits;
    const std::uint64_t counter = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    const wire::DeclaredValues values{.event = packet.event & counter,
                                      .index = packet.packet,
                                      .offset = offset,
                                      .total = total,
                                      .source = config_.source_id + packet.source};
    wire::write_declared(config_.declared, values, {}, out.subspan(header_bytes_));
    message_content(packet.event, packet.source, offset, out.subspan(header_bytes_ + header_bytes, bytes));
    return header_bytes_ + header_bytes + bytes;
}

}  // namespace weir::port
