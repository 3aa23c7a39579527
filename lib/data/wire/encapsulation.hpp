// Frames inside of others: what mirrors of switches and overlay networks make of a detector's packets. Only named here,
// so that whoever sees no event is told why; decapsulation.hpp takes some of it off. Off the hot path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weir::wire {

/// UDP port of VXLAN (RFC 7348), and the one that Linux used before there was a number.
inline constexpr std::uint16_t vxlan_port = 4789;
inline constexpr std::uint16_t vxlan_port_of_linux = 8472;

enum class Encapsulation : std::uint8_t {
    gre,
    ethernet_in_gre,
    erspan_1,
    erspan_2,
    erspan_3,
    ip_in_ip,
    mpls,
    old_service_vlan,
    vxlan,
    geneve,
};

struct Encapsulated {
    Encapsulation by = Encapsulation::gre;
    std::uint16_t front_bytes = 0;  ///< before the inner Ethernet header; 0: there is none, or it cannot be told
};

/// "ERSPAN II over GRE".
[[nodiscard]] const char* name_of(Encapsulation by) noexcept;

/// What the frame is carried by, if anything: one that is neither UDP over IP in plain Ethernet nor anything of the
/// kind that weir reads. Reads no more than `frame`.
[[nodiscard]] std::optional<Encapsulated> encapsulation_of(std::span<const std::byte> frame) noexcept;
/// The same for a UDP datagram whose destination is `port`; its payload begins after `payload_at` bytes of the frame.
[[nodiscard]] std::optional<Encapsulated> encapsulation_of_udp(std::uint16_t port, std::span<const std::byte> payload,
                                                               std::uint32_t payload_at) noexcept;

}  // namespace weir::wire
