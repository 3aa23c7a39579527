// What a run takes of the machine's memory, as a sum with names, and the refusal of a run that the machine cannot hold:
// the kernel would not say no, but end a process in the middle of the beam.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "port/free_memory.hpp"
#include "stages/work_stage.hpp"

namespace weir::plan {

struct Plan;

/// Everything that the plan knows, at its largest.
struct MemoryNeed {
    std::uint64_t dpdk_bytes = 0;         ///< pools of packet buffers, rings: hugepages where cards are used
    std::uint64_t copies_bytes = 0;       ///< cells for copied payload
    std::uint64_t bookkeeping_bytes = 0;  ///< of messages, events and sources, whatever they carry
    std::uint64_t captures_bytes = 0;     ///< blocks that captures are read into
    std::uint64_t regions_bytes = 0;      ///< that RDMA peers write into
    std::uint64_t output_bytes = 0;
    std::uint64_t reduce_bytes = 0;
    std::uint64_t record_bytes = 0;        ///< of the flight recorder
    std::uint64_t kernel_rings_bytes = 0;  ///< that the kernel fills, of weir's own device
    /// Of a node of a cluster. A readout node: what it may hold; a builder: blocks for all its credits, as far as
    /// messages have sizes that are known.
    std::uint64_t parts_bytes = 0;

    [[nodiscard]] std::uint64_t sum() const noexcept {
        return dpdk_bytes + copies_bytes + bookkeeping_bytes + captures_bytes + regions_bytes + output_bytes +
               reduce_bytes + record_bytes + kernel_rings_bytes + parts_bytes;
    }
    /// "1234 MiB: packet buffers and rings 642 MiB, copies 512 MiB, ..."
    [[nodiscard]] std::string text() const;
};

[[nodiscard]] MemoryNeed memory_need(const config::RunConfig& config,
                                     const std::vector<stages::SourceGeometry>& geometry, const Plan& plan);

/// Throws core::RunError if less is free than the plan needs: with both sums, and the largest events.memory that would
/// fit. `plan_for` plans the same run with another events.memory.
void check_memory(const config::RunConfig& config, const Plan& plan, const port::FreeMemory& free,
                  const std::function<Plan(std::uint64_t memory_bytes)>& plan_for);

}  // namespace weir::plan
