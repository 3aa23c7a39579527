// RDMA adapters, and Linux soft-RoCE, through libibverbs. A build without libibverbs has these, too, and says so. The
// device is the one that has the IPv4 address which packets go to or come from.
#pragma once

#include <memory>

#include "bench/receiver.hpp"
#include "bench/sender.hpp"
#include "bench/verbs_end.hpp"

namespace weir::bench {

// All throw core::RunError with what this host lacks.

/// Takes messages: SENDs into buffers, or WRITEs to places in memory of which each is said to have come.
[[nodiscard]] std::unique_ptr<Receiver> open_verbs_receiver(const ReceiverSpec& spec, VerbsKind kind);

/// Takes UDP packets past the kernel: a raw packet queue pair, to which a rule of the adapter's leads our port.
[[nodiscard]] std::unique_ptr<Receiver> open_verbs_raw_receiver(const ReceiverSpec& spec);

/// Sends messages as the receiver wants them.
[[nodiscard]] std::unique_ptr<Sender> open_verbs_sender(const Endpoint& to);

}  // namespace weir::bench
