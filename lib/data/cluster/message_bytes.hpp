// Messages of a cluster as bytes, for engines whose network carries nothing else. In the byte order of the host.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cluster/message.hpp"

namespace weir::cluster {

[[nodiscard]] std::vector<std::byte> to_bytes(const Message& message);
/// Throws std::runtime_error if they are not those of a message in a cluster of so many nodes.
[[nodiscard]] Message from_bytes(std::span<const std::byte> bytes, NodeId nodes);

}  // namespace weir::cluster
