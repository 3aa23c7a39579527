// Answers ARP requests, IPv6 neighbour solicitations and pings for a port's own addresses. Pure functions on bytes:
// they know no device and keep no table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::port {

using MacAddress = std::array<std::uint8_t, 6>;

/// What a port answers for.
struct PortAddress {
    MacAddress mac{};
    std::uint32_t ip = 0;  ///< IPv4, host byte order; 0: none
    std::array<std::uint8_t, 16> ipv6{};
    bool has_ipv6 = false;
};

/// Builds the answer to `frame` in `reply` and returns its length, or 0 where none is due. Answered are ARP requests
/// for the address (RFC 826; probes with sender 0.0.0.0, RFC 5227, too) and ICMP echo requests to it (RFC 792): IPv4
/// without options or fragments, both checksums right; and what ipv6_responder.hpp says. Up to two VLAN tags are kept.
/// A reply is never longer than max(94, frame.size()); one that does not fit into `reply` is not built. `frame` and
/// `reply` must not overlap.
std::size_t answer(std::span<const std::byte> frame, const PortAddress& own, std::span<std::byte> reply) noexcept;

/// Builds an ARP announcement (RFC 5227 section 3: a broadcast request for the own address), so that switches and
/// senders learn the address without asking. Returns 60, or 0 if it does not fit.
std::size_t announce(const PortAddress& own, std::span<std::byte> frame) noexcept;

}  // namespace weir::port
