// Sends through a UDP socket of the kernel.
#pragma once

#include <memory>
#include <string>

#include "bench/sender.hpp"

namespace weir::bench {

/// Several datagrams in one call (sendmmsg).
/// Throws core::RunError with what the kernel said.
[[nodiscard]] std::unique_ptr<Sender> open_udp_sender(const Endpoint& to);

}  // namespace weir::bench
