// Sends through a UDP socket of the kernel, several packets joined to one until the device cuts them.
#pragma once

#include <memory>

#include "bench/sender.hpp"

namespace weir::bench {

/// Generic segmentation offload (udp(7), UDP_SEGMENT; Linux 4.18): as many packets as 64 kB hold, 64 at most, pass the
/// kernel as one. Packets have to fit the MTU. Those of more than 32 kB go one by one.
/// Throws core::RunError with what the kernel said.
[[nodiscard]] std::unique_ptr<Sender> open_gso_sender(const Endpoint& to);

/// Packets of `bytes` of UDP payload that are joined to one at most.
[[nodiscard]] std::uint32_t packets_joined(std::uint32_t bytes) noexcept;

}  // namespace weir::bench
