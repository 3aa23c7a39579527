// Receives through a UDP socket of the kernel.
#pragma once

#include <memory>

#include "bench/receiver.hpp"

namespace weir::bench {

/// `udp-socket`: recvmmsg and the system's own buffer sizes, as a program does that knows nothing of networks.
/// `udp-tuned`: what can be asked of the kernel: a buffer of 64 MiB and busy polling.
enum class UdpTuning : std::uint8_t { none, all };

/// Throws core::RunError with what the kernel said.
[[nodiscard]] std::unique_ptr<Receiver> open_udp_receiver(const ReceiverSpec& spec, UdpTuning tuning);

}  // namespace weir::bench
