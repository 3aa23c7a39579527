#include "simulate/simulated_frames.hpp"

#include <algorithm>
#include <cstring>

#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::simulate {

namespace {

constexpr std::uint32_t entropy_port_first = 49152;  // RoCE source ports carry flow entropy; 14 bits of them

}  // namespace

SimulatedFrames::SimulatedFrames(const SimulatorConfig& config, const wire::FormatContext& context,
                                 const SimulationEntry& entry)
    : config_(config), context_(context), entry_(entry) {
    const std::uint32_t udp_room = config_.mtu - wire::ipv4_header_bytes - wire::udp_header_bytes;
    header_bytes_ = wire::frame_header_bytes(frame_spec(0));
    if (config_.transport != SimulatedTransport::udp) {
        packet_bytes_ = config_.mtu;
        constexpr std::uint32_t roce_extra_bytes = wire::roce_bth_bytes + 16 + 4 + 3 + wire::roce_icrc_bytes;  // RETH
        frame_bytes_max_ = header_bytes_ + roce_extra_bytes + packet_bytes_;
        scratch_.resize(packet_bytes_);
    } else {
        packet_bytes_ = context_.payload_bytes != 0 ? context_.payload_bytes : udp_room - context_.header_bytes;
        frame_bytes_max_ = header_bytes_ + context_.header_bytes + packet_bytes_;
    }
    format_ = entry.make(config_, context_);
    if (config_.transport == SimulatedTransport::roce_write && entry.row_bytes != nullptr)
        writes_.emplace(FrameWrites::Config{.header_bytes = context_.header_bytes,
                                            .frame_bytes = context_.message_bytes,
                                            .write_bytes = config_.write_bytes,
                                            .readout_chips = config_.readout_chips,
                                            .path_mtu = config_.mtu});
}

std::uint32_t SimulatedFrames::endpoint(std::uint32_t source) const noexcept {
    if (config_.transport != SimulatedTransport::udp) {
        return config_.queue_pair + source;
    }
    return config_.port + (config_.one_port ? 0 : source);
}

std::uint32_t SimulatedFrames::message_bytes(std::uint64_t event, std::uint32_t source) const noexcept {
    if (context_.message_bytes != 0) {
        return context_.message_bytes;
    }
    const std::uint64_t sizes = std::uint64_t{config_.bytes_max} - config_.bytes_min + 1;
    return config_.bytes_min + static_cast<std::uint32_t>(mix(mix(config_.seed + size_salt, event), source) % sizes);
}

std::uint32_t SimulatedFrames::packet_count(std::uint32_t message_bytes) const noexcept {
    if (writes_) return static_cast<std::uint32_t>(writes_->packets().size());
    const bool roce = config_.transport != SimulatedTransport::udp;
    const std::uint32_t bytes = message_bytes + (roce ? context_.header_bytes : 0);
    return std::max(1U, (bytes + packet_bytes_ - 1) / packet_bytes_);
}

wire::FrameSpec SimulatedFrames::frame_spec(std::uint32_t source) const noexcept {
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
        spec.sport = config_.src_port.value_or(entry_.source_port);
        spec.dport = static_cast<std::uint16_t>(endpoint(source));
    }
    return spec;
}

bool SimulatedFrames::has_payload(std::uint64_t event, std::uint32_t source) const noexcept {
    return config_.transport != SimulatedTransport::udp || context_.header_bytes != 0 ||
           message_bytes(event, source) != 0;
}

std::size_t SimulatedFrames::write(SimulatedPacket packet, std::span<std::byte> out) noexcept {
    if (config_.transport != SimulatedTransport::udp) return write_roce(packet, out);
    packet.total = message_bytes(packet.event, packet.source);
    packet.offset = packet.index * packet_bytes_;
    const std::uint32_t bytes = std::min(packet_bytes_, packet.total - packet.offset);
    const std::span<std::byte> datagram = out.subspan(header_bytes_, context_.header_bytes + bytes);
    wire::write_frame_headers(frame_spec(packet.source), context_.header_bytes + bytes, out);
    format_->content(packet.event, packet.source, packet.offset, datagram.subspan(context_.header_bytes));
    format_->put_header(packet, datagram);
    return header_bytes_ + datagram.size();
}

std::uint32_t SimulatedFrames::rdma_bytes(std::uint64_t event, std::uint32_t source) const noexcept {
    return context_.header_bytes + message_bytes(event, source);
}

void SimulatedFrames::rdma_content(std::uint64_t event, std::uint32_t source, std::uint32_t offset,
                                   std::span<std::byte> out) noexcept {
    const std::uint32_t header_bytes = context_.header_bytes;
    // The smallest path MTU, 256, is longer than any format's header.
    if (offset == 0 && header_bytes != 0) {
        format_->content(event, source, 0, out.subspan(header_bytes));
        format_->put_header({.event = event, .source = source, .total = message_bytes(event, source)}, out);
    } else {
        format_->content(event, source, offset - header_bytes, out);
    }
}

SimulatedFrames::Part SimulatedFrames::part_of(const SimulatedPacket& packet) const noexcept {
    if (writes_) {
        const FrameWrites::Packet& place = writes_->packets()[packet.index];
        return {writes_->writes()[place.write], place};
    }
    const std::uint32_t total = rdma_bytes(packet.event, packet.source);
    return {{0, total, true}, {0, packet.index, packet_count(total - context_.header_bytes)}};
}

std::size_t SimulatedFrames::write_roce(const SimulatedPacket& packet, std::span<std::byte> out) noexcept {
    const Part part = part_of(packet);
    const std::uint32_t offset = part.packet.index * packet_bytes_;
    const std::uint32_t bytes = std::min(packet_bytes_, part.write.bytes - offset);
    rdma_content(packet.event, packet.source, part.write.offset + offset, {scratch_.data(), bytes});

    const bool is_write = config_.transport == SimulatedTransport::roce_write;
    wire::RocePacket roce;
    roce.opcode = wire::roce_opcode(config_.service, is_write, part.packet.index, part.packet.count,
                                    config_.immediate && part.write.last);
    roce.payload = scratch_.data();
    roce.bytes = bytes;
    roce.qp = endpoint(packet.source);
    roce.psn = packet.counter & 0xffffff;
    roce.immediate = static_cast<std::uint32_t>(packet.event);
    roce.va = rdma_va(packet.source) + rdma_offset(packet.event) + part.write.offset;
    roce.rkey = config_.rkey;
    roce.dma_length = part.write.bytes;
    roce.ack_request = config_.service == wire::RoceTransport::rc && part.packet.index + 1 == part.packet.count;
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

}  // namespace weir::simulate
