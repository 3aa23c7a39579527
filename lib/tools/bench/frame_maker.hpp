// Whole Ethernet frames around the packets of a plan, for senders that the kernel writes no headers for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/packet_plan.hpp"
#include "wire/encode.hpp"
#include "wire/network.hpp"

namespace weir::bench {

/// The body is that of PacketMaker's packet.
class FrameMaker {
public:
    /// Ethernet, IPv4 and UDP, without VLAN tags.
    static constexpr std::uint32_t header_bytes =
        wire::ethernet_header_bytes + wire::ipv4_header_bytes + wire::udp_header_bytes;
    static constexpr std::uint32_t head_bytes = header_bytes + PacketPlan::head_bytes;

    /// `spec` is of IPv4 without VLAN tags.
    FrameMaker(const wire::FrameSpec& spec, const PacketPlan& plan);
    /// `out` has head_bytes; the rest as for PacketMaker::write_head(). The UDP checksum is 0, "none" (RFC 768).
    void write_head(std::uint64_t sequence, core::TimeNs now, std::byte* out) const noexcept;
    [[nodiscard]] std::span<const std::byte> body(std::uint64_t sequence) const noexcept {
        return maker_.body(sequence);
    }
    /// For senders whose frames lie in one piece: what write_head() leaves out. Without content it is the same in all.
    void write_body(std::uint64_t sequence, std::byte* frame) const noexcept;
    [[nodiscard]] std::uint32_t frame_bytes() const noexcept { return header_bytes + maker_.plan().bytes; }

private:
    PacketMaker maker_;
    std::array<std::byte, header_bytes> headers_{};
};

}  // namespace weir::bench
