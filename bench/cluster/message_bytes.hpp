// Messages of a cluster as bytes, for engines whose network carries nothing else.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cluster/message.hpp"

namespace weir::cluster::bench {

[[nodiscard]] std::vector<std::byte> to_bytes(const Message& message);
/// Throws std::runtime_error if they are not those of a message.
[[nodiscard]] Message from_bytes(std::span<const std::byte> bytes);

}  // namespace weir::cluster::bench
