// Memory of a pool whose buffers are made when they are first needed. DPDK writes to every buffer of a pool when it
// makes it, and clears the memory of each when it is freed: in a short replay both took longer than the packets.
#pragma once

#include <rte_mempool.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weir::port {

/// Address space for all buffers of a pool, from the system and not from EAL: no device may use them. It is backed with
/// memory as the pool grows, on huge pages where the kernel gives them, and given back in one step.
class PoolMemory {
public:
    /// For a pool of mbufs that is empty (rte_mempool_create_empty) and has its operations and private data. Throws
    /// std::bad_alloc when the system has no room for that many. Must be destroyed after the pool has been freed.
    explicit PoolMemory(rte_mempool* pool);
    ~PoolMemory();
    PoolMemory(const PoolMemory&) = delete;
    PoolMemory& operator=(const PoolMemory&) = delete;

    /// Puts the next buffers into the pool. False when it has all of them, or EAL has no room for a note of more. By
    /// one thread; others may take buffers out and give them back meanwhile.
    bool grow() noexcept;
    /// Buffers that are yet to be made; for any thread.
    [[nodiscard]] std::uint32_t missing() const noexcept { return missing_.load(std::memory_order_relaxed); }

    /// EAL memory that the pool's own notes of so many buffers take.
    [[nodiscard]] static std::uint64_t eal_memory_bytes(std::uint32_t buffers) noexcept;

private:
    static constexpr std::uint32_t step = 256;  ///< buffers made at a time

    rte_mempool* pool_;
    std::size_t element_bytes_;
    std::size_t bytes_;
    std::byte* memory_ = nullptr;
    std::atomic<std::uint32_t> missing_;
};

}  // namespace weir::port
