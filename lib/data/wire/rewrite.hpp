// Other addresses in a captured frame, so that it can go to another receiver than the one that it was recorded for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::wire {

/// What is written in place of a frame's own. What is not set stays. Addresses in network order.
struct Rewrite {
    struct Port {
        std::uint16_t from = 0;  ///< 0: any
        std::uint16_t to = 0;
    };
    std::optional<std::array<std::uint8_t, 6>> dst_mac{};
    std::optional<std::array<std::uint8_t, 6>> src_mac{};
    std::optional<std::array<std::uint8_t, 4>> dst_ipv4{};
    std::optional<std::array<std::uint8_t, 4>> src_ipv4{};
    std::optional<std::array<std::uint8_t, 16>> dst_ipv6{};
    std::optional<std::array<std::uint8_t, 16>> src_ipv6{};
    std::vector<Port> dst_ports{};  ///< of UDP; the first one that fits counts

    /// Anything but the MAC addresses.
    [[nodiscard]] bool beyond_ethernet() const noexcept {
        return dst_ipv4 || src_ipv4 || dst_ipv6 || src_ipv6 || !dst_ports.empty();
    }
    [[nodiscard]] bool empty() const noexcept { return !dst_mac && !src_mac && !beyond_ethernet(); }
    [[nodiscard]] std::uint16_t port_for(std::uint16_t port) const noexcept;
};

/// What became of one frame.
struct Rewritten {
    bool changed = false;     ///< a byte of it is another one now
    bool icrc = false;        ///< RoCEv2: the iCRC was right, and has been made again
    bool icrc_wrong = false;  ///< RoCEv2: it was wrong before, and is left so
    bool unreadable = false;  ///< IP that contradicts itself: only MAC addresses were written
};

/// Rewrites a whole Ethernet frame in place: up to two VLAN tags, which stay; IPv4 and IPv6 addresses; the UDP
/// destination port, where a datagram or its first IP fragment has it. The IPv4 header checksum and the checksums of
/// UDP, TCP and ICMPv6 are corrected by what changed (RFC 1624): what was right stays right, what was wrong stays
/// wrong, and no checksum (0) stays none. The iCRC of RoCEv2 (UDP port 4791 before rewriting) covers addresses and
/// ports, so it is made again where it was right. Addresses inside of ARP and of ICMP messages stay as they are.
Rewritten rewrite_frame(const Rewrite& rewrite, std::span<std::byte> frame) noexcept;

}  // namespace weir::wire
