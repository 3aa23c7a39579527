// Where what is remembered of a sender lies in a table by addresses and a key: UDP port or queue pair.
#pragma once

#include <cstdint>

namespace weir::stages {

inline constexpr std::uint32_t flow_place_bits = 11;
inline constexpr std::uint32_t flow_places = 1U << flow_place_bits;

/// Senders, destinations or keys that count up, alone or together, have places of their own. `addresses`: the IPv4
/// source address in the upper half, the destination in the lower one.
[[nodiscard]] inline std::uint32_t flow_place(std::uint64_t addresses, std::uint32_t key) noexcept {
    const std::uint64_t mixed = addresses * 0x85EB'CA6B'9E37'79B1U;
    return (key + static_cast<std::uint32_t>(mixed >> (64 - flow_place_bits))) % flow_places;
}

}  // namespace weir::stages
