// A part in pieces, where its block is given out so.
#pragma once

#include <cstddef>
#include <utility>

#include "cluster/message.hpp"
#include "fabric/part_memory.hpp"

namespace weir::fabric {

/// What it has of numbers before `at`, and of the others, as parts; null where it has nothing. `part` is given back.
[[nodiscard]] std::pair<std::byte*, std::byte*> split_part(PartMemory& memory, std::byte* part, cluster::Block at);

/// What both have, the second one of higher numbers, as one part. Both are given back.
[[nodiscard]] std::byte* join_parts(PartMemory& memory, std::byte* first, std::byte* second);

}  // namespace weir::fabric
