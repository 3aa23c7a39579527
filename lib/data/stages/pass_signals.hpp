// What the capture reader and the rx lcores tell each other when captures are read several times: where a pass ends,
// and how far the numbers of the next one are moved.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/units.hpp"

namespace weir::stages {

/// Between the first pass and the second everything stops once: only then is it known how far the numbers of a pass
/// reach. From then on an rx lcore begins a pass when it sees the first packet of it.
struct PassSignals {
    explicit PassSignals(std::size_t rx_count) : rx(rx_count) {}

    struct alignas(core::cache_line_bytes) Rx {
        std::atomic<std::uint64_t> processed{0};  ///< packets taken from the capture and from other rx lcores
        std::atomic<std::uint64_t> steered{0};    ///< of them, those that another rx lcore takes once more
        std::atomic<bool> closed{false};          ///< nothing of the first pass waits for its number
    };
    std::vector<Rx> rx;
    alignas(core::cache_line_bytes) std::atomic<bool> close{false};  ///< capture reader: the first pass is over
    std::atomic<std::uint64_t> span{0};                              ///< event numbers of a pass
    std::atomic<std::uint32_t> epochs{0};                            ///< epochs that a pass begins
    /// Works out `span` and `epochs`. The capture reader calls it when all rx lcores have closed the first pass.
    std::function<void()> measure;
};

}  // namespace weir::stages
