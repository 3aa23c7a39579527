// Packet buffers: the mbuf pool of a port, sized before EAL starts, and giving buffers back in bulk.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <string>

#include "core/units.hpp"

namespace weir::port {

/// A received frame on its way to assembly, by value through rings: time and length travel with it.
struct Packet {
    rte_mbuf* mbuf = nullptr;
    core::TimeNs time_ns = 0;
    std::uint32_t wire_bytes = 0;
    std::uint16_t captured_bytes = 0;  ///< that can be read in the mbuf
    std::uint8_t port = 0;             ///< index of the port in the configuration
    std::uint8_t pass = 0;             ///< a looped capture: which pass, modulo 256

    /// Not 0: a datagram of so many packets, a chain of as many mbufs, wire_bytes long. Marked by captured_bytes = 0.
    [[nodiscard]] std::uint32_t pieces() const noexcept {
        return captured_bytes == 0 && mbuf->nb_segs > 1 ? mbuf->nb_segs : 0;
    }
};
static_assert(sizeof(Packet) == 24);

struct BufferPoolConfig {
    std::uint32_t buffers = 0;
    std::uint32_t room_bytes = 0;  ///< largest frame that fits, without headroom
};

/// A pool of mbufs. LIFO (`lf_stack`), because a buffer that was just given back is still in cache: with a few hundred
/// live buffers and an 8 KiB packet that was measured at two thirds of the cost of DPDK's default ring pool.
class BufferPool {
public:
    /// Throws core::RunError when EAL memory does not suffice.
    BufferPool(const std::string& name, const BufferPoolConfig& config);
    ~BufferPool();
    BufferPool(const BufferPool&) = delete;
    BufferPool& operator=(const BufferPool&) = delete;

    [[nodiscard]] rte_mempool* get() const noexcept { return pool_; }
    /// A buffer for one frame, or nullptr when there is none.
    [[nodiscard]] rte_mbuf* allocate() noexcept;
    [[nodiscard]] std::uint32_t room_bytes() const noexcept { return room_bytes_; }
    /// Buffers that are not in the pool: held, in rings, or given to a device. For any thread; approximate.
    [[nodiscard]] std::uint32_t in_use() const noexcept { return ::rte_mempool_in_use_count(pool_); }
    [[nodiscard]] std::uint32_t size() const noexcept { return pool_->size; }
    /// EAL memory for a pool of this configuration.
    [[nodiscard]] static std::uint64_t memory_bytes(const BufferPoolConfig& config) noexcept;
    /// Buffers that an lcore may keep in its own cache, out of others' reach.
    static constexpr std::uint32_t cache_buffers = 256;

private:
    rte_mempool* pool_;
    std::uint32_t room_bytes_;
};

/// For assemble::MessageTable: `buffers` are mbufs.
void release_buffers(void** buffers, std::uint32_t count);

}  // namespace weir::port
