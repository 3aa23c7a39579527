// DUNE, ESS and SPEAD in the simulator: what is in their packets.
#include <algorithm>
#include <array>

#include "simulate/simulator.hpp"
#include "wire/dune/dune.hpp"
#include "wire/ess/ess.hpp"
#include "wire/spead/spead.hpp"

namespace weir::port {

namespace {

constexpr std::uint32_t wibeth_bytes = 7184;  ///< of a WIBEth frame, after the DAQEthHeader
constexpr std::uint32_t wibeth_ticks = 2048;  ///< from frame to frame of a stream
constexpr std::uint32_t ess_pulses_per_s = 14;
constexpr std::uint32_t ess_pulse_ticks = 88'052'500 / ess_pulses_per_s;
constexpr std::uint32_t spead_items = 6;  ///< those of the heap, time stamp and engine

}  // namespace

wire::FormatContext readout_context(SimulatedFormat format) noexcept {
    wire::FormatContext context;
    if (format == SimulatedFormat::dune) {
        context.header_bytes = wire::Dune::header_bytes;
        context.payload_bytes = context.message_bytes = wibeth_bytes;
    }
    if (format == SimulatedFormat::ess) context.header_bytes = wire::Ess::header_bytes_v0;
    if (format == SimulatedFormat::spead)
        context.header_bytes = wire::Spead::header_bytes + spead_items * wire::Spead::item_bytes;
    return context;
}

std::size_t Simulator::write_dune(const Planned& packet, std::span<std::byte> out) noexcept {
    const std::uint32_t bytes = message_bytes(packet.event, packet.source);
    // Boards of 256 streams, crates of 16 boards.
    const wire::DuneHeader header{.crate = packet.source >> 12U,
                                  .slot = packet.source >> 8U & 0xfU,
                                  .stream = packet.source & 0xffU,
                                  .sequence = packet.psn,
                                  .timestamp = packet.event * wibeth_ticks,
                                  .block_length = bytes / wire::Dune::word_bytes};
    wire::write_frame_headers(frame_spec(packet.source), wire::Dune::header_bytes + bytes, out);
    wire::write_dune(header, {}, out.subspan(header_bytes_));
    message_content(packet.event, packet.source, 0, out.subspan(header_bytes_ + wire::Dune::header_bytes, bytes));
    return header_bytes_ + wire::Dune::header_bytes + bytes;
}

std::size_t Simulator::write_ess(const Planned& packet, std::span<std::byte> out) noexcept {
    const std::uint32_t bytes = message_bytes(packet.event, packet.source);
    const auto seconds = [](std::uint64_t pulse) { return static_cast<std::uint32_t>(pulse / ess_pulses_per_s); };
    const auto ticks = [](std::uint64_t pulse) {
        return static_cast<std::uint32_t>(pulse % ess_pulses_per_s) * ess_pulse_ticks;
    };
    const std::uint64_t previous = packet.event != 0 ? packet.event - 1 : 0;
    const wire::EssHeader header{
        .output_queue = static_cast<std::uint8_t>(packet.source % (wire::Ess::output_queue_max + 1)),
        .pulse_seconds = seconds(packet.event),
        .pulse_ticks = ticks(packet.event),
        .previous_seconds = seconds(previous),
        .previous_ticks = ticks(previous),
        .sequence = packet.psn};
    // The length is in the header, so the content has to be there first.
    const std::span<std::byte> content = out.subspan(header_bytes_ + wire::Ess::header_bytes_v0, bytes);
    message_content(packet.event, packet.source, 0, content);
    wire::write_frame_headers(frame_spec(packet.source), wire::Ess::header_bytes_v0 + bytes, out);
    return header_bytes_ + wire::write_ess(header, content, out.subspan(header_bytes_));
}

std::size_t Simulator::write_spead(const Planned& packet, std::span<std::byte> out) noexcept {
    const std::uint32_t total = message_bytes(packet.event, packet.source);
    const std::uint32_t offset = packet.packet * packet_bytes_;
    const std::uint32_t bytes = std::min(packet_bytes_, total - offset);
    const std::array<wire::SpeadItem, 2> items{{{0x1600, packet.event}, {0x4101, packet.source}}};
    const wire::SpeadHeader header{
        .heap = packet.event, .heap_bytes = total, .offset = offset, .payload_bytes = bytes, .items = items};
    const std::uint32_t front_bytes = format_header_bytes();
    wire::write_frame_headers(frame_spec(packet.source), front_bytes + bytes, out);
    wire::write_spead(header, {}, out.subspan(header_bytes_));
    message_content(packet.event, packet.source, offset, out.subspan(header_bytes_ + front_bytes, bytes));
    return header_bytes_ + front_bytes + bytes;
}

}  // namespace weir::port
