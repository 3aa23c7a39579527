// Builds RoCEv2 frames, iCRC included.
#include <algorithm>
#include <cstring>

#include "wire/bytes.hpp"
#include "wire/encode.hpp"
#include "wire/network.hpp"

namespace weir::wire {
namespace {

constexpr std::uint8_t operation_of(std::uint8_t opcode) {
    return opcode & 0x1f;
}

bool has_deth(std::uint8_t opcode) noexcept {
    return opcode >> 5 == static_cast<int>(RoceTransport::ud);
}

bool has_reth(std::uint8_t opcode) noexcept {
    switch (static_cast<RoceOperation>(operation_of(opcode))) {
        case RoceOperation::write_first:
        case RoceOperation::write_only:
        case RoceOperation::write_only_immediate:
        case RoceOperation::read_request:
            return true;
        default:
            return false;
    }
}

bool has_immediate(std::uint8_t opcode) noexcept {
    switch (static_cast<RoceOperation>(operation_of(opcode))) {
        case RoceOperation::send_last_immediate:
        case RoceOperation::send_only_immediate:
        case RoceOperation::write_last_immediate:
        case RoceOperation::write_only_immediate:
            return true;
        default:
            return false;
    }
}

bool has_aeth(std::uint8_t opcode) noexcept {
    return static_cast<RoceOperation>(operation_of(opcode)) == RoceOperation::acknowledge;
}

std::uint32_t extension_bytes(std::uint8_t opcode) noexcept {
    return (has_deth(opcode) ? 8 : 0) + (has_reth(opcode) ? 16 : 0) + (has_immediate(opcode) ? 4 : 0) +
           (has_aeth(opcode) ? 4 : 0);
}

std::uint32_t pad_bytes(const RocePacket& packet) noexcept {
    return (0 - packet.bytes) & 3;
}

std::byte* write_extensions(const RocePacket& packet, std::byte* at) noexcept {
    if (has_deth(packet.opcode)) {
        store_be(at, packet.qkey);
        store_be(at + 4, packet.source_qp & 0xffffff);
        at += 8;
    }
    if (has_reth(packet.opcode)) {
        store_be(at, packet.va);
        store_be(at + 8, packet.rkey);
        store_be(at + 12, packet.dma_length);
        at += 16;
    }
    if (has_immediate(packet.opcode)) {
        store_be(at, packet.immediate);
        at += 4;
    }
    if (has_aeth(packet.opcode)) {
        store_be(at, std::uint32_t{packet.syndrome} << 24 | (packet.msn & 0xffffff));
        at += 4;
    }
    return at;
}

}  // namespace

std::uint8_t roce_opcode(RoceTransport transport, bool is_write, std::uint32_t index, std::uint32_t count,
                         bool immediate) noexcept {
    using enum RoceOperation;
    const bool last = index + 1 >= count;
    RoceOperation operation = is_write ? write_middle : send_middle;
    if (index == 0 && last)
        operation =
            is_write ? (immediate ? write_only_immediate : write_only) : (immediate ? send_only_immediate : send_only);
    else if (last)
        operation =
            is_write ? (immediate ? write_last_immediate : write_last) : (immediate ? send_last_immediate : send_last);
    else if (index == 0)
        operation = is_write ? write_first : send_first;
    return static_cast<std::uint8_t>(static_cast<unsigned>(transport) << 5 | static_cast<unsigned>(operation));
}

std::size_t roce_frame_bytes(const FrameSpec& spec, const RocePacket& packet) noexcept {
    return std::size_t{frame_header_bytes(spec)} + roce_bth_bytes + extension_bytes(packet.opcode) + packet.bytes +
           pad_bytes(packet) + roce_icrc_bytes;
}

std::size_t write_roce_headers(const FrameSpec& spec, const RocePacket& packet, std::span<std::byte> out) noexcept {
    const auto bytes = static_cast<std::uint32_t>(roce_frame_bytes(spec, packet));
    const std::uint32_t header_bytes = frame_header_bytes(spec);
    if (out.size() < header_bytes + roce_bth_bytes + extension_bytes(packet.opcode)) return 0;
    if (write_frame_headers(spec, bytes - header_bytes, out) == 0) return 0;
    std::byte* at = out.data() + header_bytes;
    constexpr std::uint32_t migrated = 0x40;  // as real adapters send it
    at[0] = static_cast<std::byte>(packet.opcode);
    at[1] = static_cast<std::byte>((packet.solicited ? 0x80U : 0U) | migrated | pad_bytes(packet) << 4);
    store_be(at + 2, packet.pkey);
    store_be(at + 4, packet.qp & 0xffffff);
    store_be(at + 8, (packet.ack_request ? 0x80000000U : 0U) | (packet.psn & 0xffffff));
    return static_cast<std::size_t>(write_extensions(packet, at + roce_bth_bytes) - out.data());
}

std::size_t write_roce_frame(const FrameSpec& spec, const RocePacket& packet, std::span<std::byte> out) noexcept {
    const std::size_t bytes = roce_frame_bytes(spec, packet);
    if (out.size() < bytes || write_roce_headers(spec, packet, out) == 0) return 0;
    std::byte* at = out.data() + (bytes - packet.bytes - pad_bytes(packet) - roce_icrc_bytes);
    if (packet.bytes != 0) std::memcpy(at, packet.payload, packet.bytes);
    std::memset(at + packet.bytes, 0, pad_bytes(packet));
    at += packet.bytes + pad_bytes(packet);
    const std::byte* ip = out.data() + frame_header_bytes(spec) - ip_header_bytes(spec) - udp_header_bytes;
    store_le(at, roce_icrc(ip, static_cast<std::uint32_t>(at - ip)));
    return bytes;
}

std::vector<std::byte> make_roce_frame(const FrameSpec& spec, const RocePacket& packet) {
    std::vector<std::byte> frame(roce_frame_bytes(spec, packet));
    frame.resize(write_roce_frame(spec, packet, frame));
    return frame;
}

std::uint32_t roce_packet_count(const RoceMessage& message, std::uint32_t message_bytes) noexcept {
    return std::max<std::uint32_t>(1, (message_bytes + message.mtu - 1) / message.mtu);
}

RocePacket roce_packet_of(const RoceMessage& message, std::span<const std::byte> payload,
                          std::uint32_t index) noexcept {
    const auto message_bytes = static_cast<std::uint32_t>(payload.size());
    const std::uint32_t count = roce_packet_count(message, message_bytes);
    const std::uint32_t begin = std::min(message_bytes, index * message.mtu);
    RocePacket packet;
    packet.opcode = roce_opcode(message.transport, message.is_write, index, count, message.immediate.has_value());
    packet.payload = payload.data() + begin;
    packet.bytes = std::min(message.mtu, message_bytes - begin);
    packet.qp = message.qp;
    packet.psn = (message.psn + index) & 0xffffff;
    packet.transport = message.transport;
    packet.is_write = message.is_write;
    packet.ack_request = message.transport == RoceTransport::rc && index + 1 == count;
    packet.place = count == 1           ? RocePlace::only
                   : index == 0         ? RocePlace::first
                   : index + 1 == count ? RocePlace::last
                                        : RocePlace::middle;
    packet.has_immediate = has_immediate(packet.opcode);
    if (packet.has_immediate) packet.immediate = *message.immediate;
    if (has_reth(packet.opcode)) {
        packet.va = message.va;
        packet.rkey = message.rkey;
        packet.dma_length = message_bytes;
    }
    return packet;
}

}  // namespace weir::wire
