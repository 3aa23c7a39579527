// Asking who has an address: ARP (RFC 826) for IPv4, neighbour solicitations (RFC 4861) for IPv6. What answers others
// who ask is arp_responder.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>

#include "port/arp_responder.hpp"
#include "simulate/frame_link.hpp"
#include "wire/encode.hpp"

namespace weir::simulate {

/// Writes the question for the MAC address of spec.dst (or spec.ipv6->dst), from spec.src and spec.source_mac, tagged
/// as spec says. Returns its bytes, 0 if it does not fit (94 always do).
std::size_t ask_neighbour(const wire::FrameSpec& spec, std::span<std::byte> out) noexcept;

/// The MAC address that a received frame says spec.dst (or spec.ipv6->dst) has; nothing if it says nothing of it.
[[nodiscard]] std::optional<port::MacAddress> neighbour_of(const wire::FrameSpec& spec,
                                                           std::span<const std::byte> frame) noexcept;

/// Asks every 100 ms until an answer comes or `seconds` are over, or `stop` is set: then nothing.
[[nodiscard]] std::optional<port::MacAddress> resolve_neighbour(const wire::FrameSpec& spec, FrameLink& link,
                                                                double seconds, const std::atomic<bool>& stop);

}  // namespace weir::simulate
