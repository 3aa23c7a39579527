// Blocks on their way between the cluster's thread and the rx lcore that puts them into the pipeline.
#pragma once

#include <atomic>
#include <cstdint>

#include "fabric/built_block.hpp"
#include "port/ring.hpp"

namespace weir::fabric {

class BlockQueue {
public:
    /// EAL runs. `blocks`: that there may be at once. Throws core::RunError.
    explicit BlockQueue(std::uint32_t blocks) : built("blocks", blocks), taken("blocks_back", blocks) {}

    port::Ring<BuiltBlock*> built;
    port::Ring<BuiltBlock*> taken;   ///< the pipeline holds nothing of them any more
    std::atomic<bool> ended{false};  ///< nothing more will be built
};

}  // namespace weir::fabric
