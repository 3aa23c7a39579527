// Receives through a ring of blocks that a packet socket shares with the kernel: AF_PACKET, TPACKET_V3.
#pragma once

#include <memory>

#include "bench/receiver.hpp"

namespace weir::bench {

/// Every UDP datagram to the address and a port of its own, before the kernel's UDP has seen it. Needs CAP_NET_RAW.
/// Throws core::RunError with what the kernel said.
[[nodiscard]] std::unique_ptr<Receiver> open_packet_mmap_receiver(const ReceiverSpec& spec);

}  // namespace weir::bench
