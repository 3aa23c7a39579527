// Packet buffers: pools of mbufs, sized before EAL starts, on a NUMA node, and giving buffers back in bulk.
#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/units.hpp"
#include "port/pool_memory.hpp"

namespace weir::port {

/// A received frame on its way to assembly, by value through rings: time and length travel with it.
struct Packet {
    rte_mbuf* mbuf = nullptr;
    core::TimeNs time_ns = 0;
    std::uint32_t wire_bytes = 0;
    std::uint16_t captured_bytes = 0;  ///< that can be read in the mbuf
    std::uint8_t port = 0;             ///< index of the port in the configuration
    std::uint8_t pass = 0;             ///< a looped capture: which pass, modulo 256

    /// In several buffers: scattered(), or of several pieces().
    [[nodiscard]] bool chained() const noexcept { return captured_bytes < wire_bytes && mbuf->nb_segs > 1; }
    /// One frame that a device put into several buffers; captured_bytes are those of the first.
    [[nodiscard]] bool scattered() const noexcept { return captured_bytes != 0 && chained(); }
    /// Not 0: a datagram of so many packets, a chain of as many mbufs, wire_bytes long. Marked by captured_bytes = 0.
    [[nodiscard]] std::uint32_t pieces() const noexcept {
        return captured_bytes == 0 && mbuf->nb_segs > 1 ? mbuf->nb_segs : 0;
    }
};
static_assert(sizeof(Packet) == 24);

/// Its Ethernet header; captured_bytes can be read from there on.
[[nodiscard]] inline const std::byte* frame_of(const Packet& packet) noexcept {
    return rte_pktmbuf_mtod(packet.mbuf, const std::byte*);
}

/// One buffer that somebody holds; for paths where buffers are handled one by one (PacketBatch is for bursts).
struct FreeMbuf {
    void operator()(rte_mbuf* mbuf) const noexcept { ::rte_pktmbuf_free(mbuf); }
};
using OwnedMbuf = std::unique_ptr<rte_mbuf, FreeMbuf>;

struct BufferPoolConfig {
    std::uint32_t buffers = 0;
    std::uint32_t room_bytes = 0;  ///< largest frame that fits, without headroom
    int node = any_node;           ///< where its memory lies, as far as there is room
    /// The lcore that takes buffers out and gives most of them back, through a cache of its own. Others give buffers
    /// back past their caches: what lies there would be out of reach of those who need it.
    std::uint32_t home = any_lcore;
    /// Ordinary memory, which buffers get when they are first needed, instead of EAL's at the start. Not for devices,
    /// nor for who cannot wait for the kernel.
    bool on_demand = false;

    static constexpr int any_node = -1;
    static constexpr std::uint32_t any_lcore = UINT32_MAX;  ///< every lcore uses its cache
};

/// A pool of mbufs. LIFO (`lf_stack`), because a buffer that was just given back is still in cache: with a few hundred
/// live buffers and an 8 KiB packet that was measured at two thirds of the cost of DPDK's default ring pool.
class BufferPool {
public:
    /// Throws core::RunError when EAL memory does not suffice. Where it does on other nodes than the one asked for,
    /// those are taken.
    BufferPool(const std::string& name, const BufferPoolConfig& config);
    ~BufferPool();
    BufferPool(const BufferPool&) = delete;
    BufferPool& operator=(const BufferPool&) = delete;

    [[nodiscard]] rte_mempool* get() const noexcept { return pool_; }
    /// A buffer for one frame, or nullptr when there is none. Of a pool on demand one thread may call this and
    /// take().
    [[nodiscard]] rte_mbuf* allocate() noexcept;
    /// All of `buffers`, as they were given back; false, and none, when there are not so many.
    [[nodiscard]] bool take(std::span<void*> buffers) noexcept;
    /// What the calling thread has given back and its cache keeps is there for everybody again. For a thread that
    /// takes none for a while.
    void flush_own_cache() noexcept { ::rte_mempool_cache_flush(nullptr, pool_); }
    [[nodiscard]] std::uint32_t room_bytes() const noexcept { return room_bytes_; }
    /// Buffers that are not in the pool: held, in rings, or given to a device. For any thread; approximate.
    [[nodiscard]] std::uint32_t in_use() const noexcept {
        const std::uint32_t used = ::rte_mempool_in_use_count(pool_);
        return used - std::min(used, missing());
    }
    [[nodiscard]] std::uint32_t size() const noexcept { return pool_->size; }
    /// Its memory lies where it was asked for.
    [[nodiscard]] bool on_node() const noexcept { return on_node_; }
    /// Buffers that any lcore can take now: without those in caches. One load; for a look per poll.
    [[nodiscard]] std::uint32_t available() const noexcept {
        return ::rte_mempool_get_ops(pool_->ops_index)->get_count(pool_) + missing();
    }
    /// Memory for a pool of this configuration, and what of it is EAL's.
    [[nodiscard]] static std::uint64_t memory_bytes(const BufferPoolConfig& config) noexcept;
    [[nodiscard]] static std::uint64_t eal_memory_bytes(const BufferPoolConfig& config) noexcept;
    /// Buffers that an lcore may keep in its own cache, out of others' reach.
    static constexpr std::uint32_t cache_buffers = 256;

private:
    [[nodiscard]] std::uint32_t missing() const noexcept { return memory_ != nullptr ? memory_->missing() : 0; }

    rte_mempool* pool_;
    std::unique_ptr<PoolMemory> memory_;  ///< of a pool on demand
    std::uint32_t room_bytes_;
    bool on_node_ = true;
};

/// For assemble::MessageTable: `buffers` are mbufs, of any pools: each goes back to its own, in bulk.
void release_buffers(void** buffers, std::uint32_t count);

}  // namespace weir::port
