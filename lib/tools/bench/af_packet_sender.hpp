// Sends Ethernet frames through a packet socket: past the kernel's UDP and IP, and past its queues.
#pragma once

#include <memory>

#include "bench/sender.hpp"

namespace weir::bench {

/// Several frames in one call (sendmmsg), each straight to the device (packet(7), PACKET_QDISC_BYPASS). To a host on
/// the same Ethernet only. Needs CAP_NET_RAW.
/// Throws core::RunError with what is missing, or what the kernel said.
[[nodiscard]] std::unique_ptr<Sender> open_af_packet_sender(const Endpoint& to);

}  // namespace weir::bench
