// The packet buffers of a run: a pool for each rx lcore with queues.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/levels.hpp"
#include "plan/plan.hpp"
#include "port/buffers.hpp"

namespace weir::pipeline {

class RunPools {
public:
    /// Throws core::RunError when there is not enough memory.
    explicit RunPools(const plan::Plan& plan);

    /// That the queue of a port takes from.
    [[nodiscard]] port::BufferPool& of_queue(std::uint32_t port, std::uint32_t queue);
    /// Of the rx lcore's queues; null: it has none.
    [[nodiscard]] port::BufferPool* of_rx(std::size_t rx) noexcept;
    [[nodiscard]] port::BufferPool& front() noexcept { return *pools_.front(); }

    /// The highest use is of the run that begins now.
    void begin() noexcept { highest_ = 0; }
    /// How much is in use; for the control thread, many times a second, because the highest is what it has seen.
    void look() noexcept;
    [[nodiscard]] Level level() const noexcept;

private:
    const plan::Plan& plan_;
    std::vector<std::unique_ptr<port::BufferPool>> pools_;  ///< as in the plan
    std::uint32_t highest_ = 0;
};

}  // namespace weir::pipeline
