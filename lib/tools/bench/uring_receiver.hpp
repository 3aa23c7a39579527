// Receives through a UDP socket of the kernel, by io_uring.
#pragma once

#include <memory>

#include "bench/receiver.hpp"

namespace weir::bench {

/// One request that stays (multishot), and buffers that the kernel takes from a ring: a call is only made to wait. With
/// a receive buffer of 64 MiB. Needs Linux 6.1.
/// Throws core::RunError with what the kernel said.
[[nodiscard]] std::unique_ptr<Receiver> open_uring_receiver(const ReceiverSpec& spec);

}  // namespace weir::bench
