// Receive-side scaling in software: the queue that a NIC would choose.
#pragma once

#include <cstdint>

#include "steer/flow_rule.hpp"
#include "steer/packet_fields.hpp"

namespace weir::steer {

/// Queue of a packet by an rss action: a Toeplitz hash over addresses and, where the types ask for them, ports, with
/// the key of Microsoft's test vectors. A NIC with another key or indirection table spreads otherwise.
[[nodiscard]] std::uint16_t rss_queue(const RssAction& action, const PacketFields& packet) noexcept;

}  // namespace weir::steer
