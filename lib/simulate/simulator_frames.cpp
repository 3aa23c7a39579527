// The frames of the simulator: a planned packet becomes bytes through the encoders of wire/. Content is written in
// place.
#include <algorithm>
#include <cstring>

#include "simulate/simulator.hpp"
#include "wire/bytes.hpp"
#include "wire/ejfat/ejfat.hpp"

namespace weir::port {

namespace {

constexpr std::uint32_t row_bytes = DetectorImages::columns * 2;
constexpr std::uint16_t jungfrau_source_port = 32410;
constexpr std::uint16_t ejfat_source_port = 20000;
constexpr std::uint32_t entropy_port_first = 49152;  // RoCE source ports carry flow entropy; 14 bits of them

}  // namespace

std::uint32_t Simulator::format_header_bytes() const noexcept {
    if (config_.format != SimulatedFormat::ejfat) {
        return context_.header_bytes;
    }
    return wire::Ejfat::re_header_bytes + (config_.lb_version != 0 ? wire::Ejfat::lb_header_bytes : 0);
}

wire::FrameSpec Simulator::frame_spec(std::uint32_t source) const noexcept {
    wire::FrameSpec spec;
    spec.destination_mac = config_.dst_mac;
    spec.source_mac = config_.src_mac;
    spec.source_mac[5] = static_cast<std::uint8_t>(spec.source_mac[5] + source);
    spec.vlan = config_.vlan;
    spec.src = config_.src_ip + (config_.one_src_ip ? 0 : source);
    spec.dst = config_.dst_ip;
    if (config_.ipv6) {
        spec.ipv6 = config_.ipv6;
        std::byte low[4];
        std::memcpy(low, spec.ipv6->src.data() + 12, 4);
        wire::store_be(low, wire::load_be<std::uint32_t>(low) + (config_.one_src_ip ? 0 : source));
        std::memcpy(spec.ipv6->src.data() + 12, low, 4);
    }
    if (config_.transport != SimulatedTransport::udp) {
        spec.sport = config_.src_port.value_or(static_cast<std::uint16_t>(entropy_port_first + source % (1U << 14)));
        spec.dport = wire::roce_port;
    } else {
        const bool ejfat = config_.format == SimulatedFormat::ejfat;
        spec.sport = config_.src_port.value_or(ejfat ? ejfat_source_port : jungfrau_source_port);
        spec.dport = static_cast<std::uint16_t>(endpoint(source));
    }
    return spec;
}

std::size_t Simulator::write(const Planned& packet, std::span<std::byte> out) noexcept {
    if (config_.transport != SimulatedTransport::udp) {
        return write_roce(packet, out);
    }
    switch (config_.format) {
        case SimulatedFormat::jungfrau:
        case SimulatedFormat::moench:
        case SimulatedFormat::eiger:
            return write_detector(packet, out);
        case SimulatedFormat::declared:
            return write_declared(packet, out);
        case SimulatedFormat::ejfat:
            return write_ejfat(packet, out);
        case SimulatedFormat::dune:
            return write_dune(packet, out);
        case SimulatedFormat::ess:
            return write_ess(packet, out);
        case SimulatedFormat::spead:
            return write_spead(packet, out);
        default:
            return write_message(packet, out);
    }
}

void Simulator::message_content(std::uint64_t event, std::uint32_t source, std::uint32_t offset,
                                std::span<std::byte> out) noexcept {
    if (images_) {
        const auto row_count = static_cast<std::uint32_t>(out.size() / row_bytes);
        images_->render(event, image_row(source, offset), row_count, out.data());
    } else {
        content_->copy(event, source, offset, out.data(), out.size());
    }
}

wire::EjfatHeader Simulator::ejfat_header(std::uint64_t event, std::uint32_t source,
                                          std::uint32_t offset) const noexcept {
    return {.data_id = static_cast<std::uint16_t>(source),
            .offset = offset,
            .total = message_bytes(event, source),
            .event = event,
            .lb_version = config_.lb_version,
            .entropy = static_cast<std::uint16_t>(mix(config_.seed, event)),
            .tick = event};
}

std::size_t Simulator::write_ejfat(const Planned& packet, std::span<std::byte> out) noexcept {
    const std::uint32_t offset = packet.packet * packet_bytes_;
    const wire::EjfatHeader header = ejfat_header(packet.event, packet.source, offset);
    const std::uint32_t bytes = std::min(packet_bytes_, header.total - offset);
    const std::uint32_t payload_bytes = format_header_bytes() + bytes;
    wire::write_frame_headers(frame_spec(packet.source), payload_bytes, out);
    wire::write_ejfat(header, {}, out.subspan(header_bytes_));
    message_content(packet.event, packet.source, offset, out.subspan(header_bytes_ + format_header_bytes(), bytes));
    return header_bytes_ + payload_bytes;
}

std::size_t Simulator::write_message(const Planned& packet, std::span<std::byte> out) noexcept {
    const std::uint32_t bytes = message_bytes(packet.event, packet.source);
    wire::write_frame_headers(frame_spec(packet.source), bytes, out);
    message_content(packet.event, packet.source, 0, out.subspan(header_bytes_, bytes));
    return header_bytes_ + bytes;
}

std::uint32_t Simulator::rdma_bytes(std::uint64_t event, std::uint32_t source) const noexcept {
    return format_header_bytes() + message_bytes(event, source);
}

void Simulator::rdma_content(std::uint64_t event, std::uint32_t source, std::uint32_t offset,
                             std::span<std::byte> out) noexcept {
    const std::uint32_t header_bytes = format_header_bytes();
    if (offset == 0 && header_bytes != 0) {
        // The smallest path MTU, 256, is longer than any format's header.
        wire::write_ejfat(ejfat_header(event, source, 0), {}, out.first(header_bytes));
        message_content(event, source, 0, out.subspan(header_bytes));
    } else {
        message_content(event, source, offset - header_bytes, out);
    }
}

std::size_t Simulator::write_roce(const Planned& packet, std::span<std::byte> out) noexcept {
    const std::uint32_t total = rdma_bytes(packet.event, packet.source);
    const std::uint32_t count = packet_count(total - format_header_bytes());
    const std::uint32_t offset = packet.packet * packet_bytes_;
    const std::uint32_t bytes = std::min(packet_bytes_, total - offset);
    rdma_content(packet.event, packet.source, offset, {scratch_.data(), bytes});

    const bool is_write = config_.transport == SimulatedTransport::roce_write;
    wire::RocePacket roce;
    roce.opcode = wire::roce_opcode(config_.service, is_write, packet.packet, count, config_.immediate);
    roce.payload = scratch_.data();
    roce.bytes = bytes;
    roce.qp = endpoint(packet.source);
    roce.psn = packet.psn & 0xffffff;
    roce.immediate = static_cast<std::uint32_t>(packet.event);
    roce.va = rdma_va(packet.source);
    roce.rkey = config_.rkey;
    roce.dma_length = total;
    roce.ack_request = config_.service == wire::RoceTransport::rc && packet.packet + 1 == count;
    roce.source_qp = endpoint(packet.source);
    roce.qkey = qkey;
    return wire::write_roce_frame(frame_spec(packet.source), roce, out);
}

void flip_bit(std::span<std::byte> frame, std::uint32_t header_bytes, std::uint64_t draw) noexcept {
    // The fifth byte of the base transport header (congestion bits) is not covered.
    constexpr std::uint32_t uncovered = 4;
    std::size_t at = draw / 8 % (frame.size() - header_bytes - 1);
    at += at >= uncovered ? 1 : 0;
    frame[header_bytes + at] ^= std::byte{1} << static_cast<int>(draw % 8);
}

}  // namespace weir::port
