// Whole RoCEv2 frames around the packets of a plan: each packet is an RDMA message of its own, of an unreliable
// connection.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/frame_kind.hpp"
#include "bench/packet_plan.hpp"
#include "wire/encode.hpp"
#include "wire/roce.hpp"

namespace weir::bench {

/// As FrameMaker, but that a head ends with the frame's iCRC: the body has to be there before.
class RoceFrameMaker {
public:
    /// `spec` is of IPv4 without VLAN tags, to roce_port; `frames` of RoCE. Packets have at most roce_mtu_max bytes.
    RoceFrameMaker(const wire::FrameSpec& spec, const FrameKind& frames, const PacketPlan& plan);
    void write_body(std::uint64_t sequence, std::byte* frame) const noexcept;
    void write_head(std::uint64_t sequence, core::TimeNs now, std::byte* frame) const noexcept;
    [[nodiscard]] std::uint32_t frame_bytes() const noexcept { return frame_bytes_; }

private:
    wire::FrameSpec spec_;
    FrameKind frames_;
    PacketMaker maker_;
    wire::RocePacket packet_;
    std::uint32_t frame_bytes_;
    std::uint32_t header_bytes_;  // in front of the payload
};

}  // namespace weir::bench
