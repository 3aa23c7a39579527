// Where on an Ethernet a packet has to go to.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "bench/receiver.hpp"

namespace weir::bench {

struct Neighbour {
    std::string interface;  ///< of the kernel, that packets to it go out of
    std::array<std::uint8_t, 6> own_mac{};
    std::array<std::uint8_t, 6> mac{};
    Endpoint own;  ///< that packets to it come from: `socket` has this port
};

/// What the kernel knows of the host that `socket`, a connected UDP socket, sends to. Lets the kernel ask for it, and
/// waits for the answer for 1 s. Throws core::RunError that says what is missing: a host behind a router is none.
[[nodiscard]] Neighbour neighbour_of(int socket);

/// An IPv4 address in host byte order, as wire::FrameSpec has it.
[[nodiscard]] std::uint32_t address_number(const std::string& address);

}  // namespace weir::bench
