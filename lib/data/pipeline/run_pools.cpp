#include "pipeline/run_pools.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/allocation_context.hpp"

namespace weir::pipeline {

RunPools::RunPools(const plan::Plan& plan) : plan_(plan) {
    const core::AllocationContext allocating("packet buffers");
    for (const plan::Plan::Pool& pool : plan.pools)
        pools_.push_back(std::make_unique<port::BufferPool>(
            fmt::format("packets{}", pool.rx),
            port::BufferPoolConfig{pool.buffers, plan.room_bytes, pool.node, plan.rx[pool.rx], pool.on_demand}));
}

port::BufferPool* RunPools::of_rx(std::size_t rx) noexcept {
    const auto found = std::ranges::find(plan_.pools, rx, &plan::Plan::Pool::rx);
    return found != plan_.pools.end() ? pools_[static_cast<std::size_t>(found - plan_.pools.begin())].get() : nullptr;
}

port::BufferPool& RunPools::of_queue(std::uint32_t port, std::uint32_t queue) {
    return *of_rx(plan_.placement.rx_of_queue(port, queue));
}

void RunPools::look() noexcept {
    std::uint32_t in_use = 0;
    for (const auto& pool : pools_) in_use += pool->in_use();
    highest_ = std::max(highest_, in_use);
}

Level RunPools::level() const noexcept {
    Level level;
    level.highest = highest_;
    for (const auto& pool : pools_) {
        level.used += pool->in_use();
        level.size += pool->size();
    }
    return level;
}

}  // namespace weir::pipeline
