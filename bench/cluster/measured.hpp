// What a node measured, for all modes alike.
#pragma once

#include <cstdint>
#include <vector>

namespace weir::cluster::bench {

struct Measured {
    double seconds = 0;
    std::uint64_t bytes = 0;   ///< of parts that came over the network meanwhile
    std::uint64_t blocks = 0;  ///< built in the whole run
    std::uint64_t incomplete = 0;
    std::uint64_t messages = 0;  ///< without payload, that the node sent in the whole run
    std::uint64_t held_highest = 0;
};

/// Of all nodes: one line of JSON on the standard output.
void print(const std::vector<Measured>& all);

}  // namespace weir::cluster::bench
