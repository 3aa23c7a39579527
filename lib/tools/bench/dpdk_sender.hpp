// Sends Ethernet frames with DPDK: whole bursts to a poll mode driver, from buffers that have their body already.
#pragma once

#include <memory>

#include "bench/sender.hpp"

namespace weir::bench {

/// Through SenderSpec::device, or with net_af_packet on the interface on the way. UDP and RoCE frames. To a host on the
/// same Ethernet only. Waits for the link of a device for 5 s, and asks who has the address on it with the first trial.
/// Throws core::RunError with what is missing, or what DPDK said.
[[nodiscard]] std::unique_ptr<Sender> open_dpdk_sender(const SenderSpec& spec);

}  // namespace weir::bench
