// Which rx lcore polls which queue: one rule, for the ports, the flow rules and the owners of streams.
#pragma once

#include <cstdint>

namespace weir::pipeline {

/// Index of the rx lcore that polls this queue of the port at `port` in the configuration.
[[nodiscard]] constexpr std::uint32_t rx_of_queue(std::uint32_t port, std::uint32_t queue, std::uint32_t rx_count) {
    return (port + queue) % rx_count;
}

}  // namespace weir::pipeline
