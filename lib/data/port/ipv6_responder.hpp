// Answers neighbour solicitations and pings for a port's own IPv6 address: what ARP and ICMP are to IPv4. Pure
// functions on bytes, called by arp_responder.cpp once it has found the IPv6 header.
#pragma once

#include <cstddef>
#include <span>

#include "port/arp_responder.hpp"

namespace weir::port {

/// As `answer`, for a frame whose IPv6 header begins at `head`. Answered are neighbour solicitations for the address
/// (RFC 4861; those of duplicate address detection too) and ICMPv6 echo requests to it (RFC 4443): without extension
/// headers, checksum right. A frame to a multicast address is answered only if it is the one that belongs to the own
/// address.
std::size_t answer_ipv6(std::span<const std::byte> frame, std::size_t head, const PortAddress& own,
                        std::span<std::byte> reply) noexcept;

}  // namespace weir::port
