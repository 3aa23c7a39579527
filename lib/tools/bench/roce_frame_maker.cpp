#include "bench/roce_frame_maker.hpp"

#include <array>
#include <cassert>
#include <cstring>

#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::bench {
namespace {

constexpr std::uint32_t psn_mask = 0xffffff;
constexpr std::size_t roce_headers_max = 128;

}  // namespace

RoceFrameMaker::RoceFrameMaker(const wire::FrameSpec& spec, const FrameKind& frames, const PacketPlan& plan)
    : spec_(spec), frames_(frames), maker_(plan) {
    assert(spec.dport == wire::roce_port && plan.bytes <= wire::roce_mtu_max && frames.is != FrameKind::Is::udp);
    packet_.opcode = wire::roce_opcode(wire::RoceTransport::uc, frames.is == FrameKind::Is::roce_write, 0, 1, true);
    packet_.bytes = plan.bytes;
    packet_.qp = frames.qp;
    packet_.rkey = frames.rkey;
    packet_.dma_length = plan.bytes;
    frame_bytes_ = static_cast<std::uint32_t>(wire::roce_frame_bytes(spec_, packet_));
    std::array<std::byte, roce_headers_max> headers;
    header_bytes_ = static_cast<std::uint32_t>(wire::write_roce_headers(spec_, packet_, headers));
}

void RoceFrameMaker::write_body(std::uint64_t sequence, std::byte* frame) const noexcept {
    const std::span<const std::byte> piece = maker_.body(sequence);
    std::byte* at = frame + header_bytes_ + PacketMaker::head_bytes;
    std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
    std::memset(at, 0, static_cast<std::size_t>(frame + frame_bytes_ - at));  // padding
}

void RoceFrameMaker::write_head(std::uint64_t sequence, core::TimeNs now, std::byte* frame) const noexcept {
    wire::RocePacket packet = packet_;
    packet.psn = static_cast<std::uint32_t>(sequence) & psn_mask;
    packet.immediate = static_cast<std::uint32_t>(sequence);
    packet.va = frames_.va + sequence % frames_.places * frames_.place_bytes;
    wire::write_roce_headers(spec_, packet, {frame, header_bytes_});
    maker_.write_head(sequence, now, frame + header_bytes_);
    const std::byte* ip = frame + wire::ethernet_header_bytes;
    std::byte* icrc = frame + frame_bytes_ - wire::roce_icrc_bytes;
    wire::store_le(icrc, wire::roce_icrc(ip, static_cast<std::uint32_t>(icrc - ip)));
}

}  // namespace weir::bench
