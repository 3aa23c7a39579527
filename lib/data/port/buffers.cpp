#include "port/buffers.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/tsan.hpp"
#include "port/capture_blocks.hpp"
#include "port/eal.hpp"

namespace weir::port {

namespace {
// What a pool element has besides the data room: mempool header, rte_mbuf, headroom; rounded up for alignment and for
// the spread over memory channels.
std::uint64_t element_bytes(const BufferPoolConfig& config) noexcept {
    const std::uint64_t bare = 64 + sizeof(rte_mbuf) + 64;
    return config.room_bytes == 0 ? bare : bare + config.room_bytes + RTE_PKTMBUF_HEADROOM + 192;
}

/// As rte_pktmbuf_pool_create_by_ops, but without hugepages the elements may lie across pages: no device reads physical
/// addresses then, and rounding 9 KiB buffers up to whole 4 KiB pages would waste a quarter of the memory.
/// What a pool of ours has in its private data: DPDK's part comes first.
struct PoolPrivate {
    rte_pktmbuf_pool_private mbuf;
    std::uint32_t home;
};

rte_mempool* make_pool(const std::string& name, const BufferPoolConfig& config, int socket) {
    const bool pages = ::rte_eal_has_hugepages() != 0 && !config.on_demand;
    const unsigned flags = pages ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG;
    // Without room of their own they refer to others' memory, and need no headroom either.
    const std::uint32_t room = config.room_bytes == 0 ? 0 : config.room_bytes + RTE_PKTMBUF_HEADROOM;
    rte_mempool* pool = ::rte_mempool_create_empty(name.c_str(), config.buffers, sizeof(rte_mbuf) + room,
                                                   BufferPool::cache_buffers, sizeof(PoolPrivate), socket, flags);
    if (pool == nullptr) return nullptr;
    rte_pktmbuf_pool_private kind{};
    kind.mbuf_data_room_size = static_cast<std::uint16_t>(room);
    if (::rte_mempool_set_ops_byname(pool, "lf_stack", nullptr) != 0) {
        ::rte_mempool_free(pool);
        return nullptr;
    }
    ::rte_pktmbuf_pool_init(pool, &kind);
    static_cast<PoolPrivate*>(::rte_mempool_get_priv(pool))->home = config.home;
    if (config.on_demand) return pool;
    if (::rte_mempool_populate_default(pool) < 0) {
        ::rte_mempool_free(pool);
        return nullptr;
    }
    ::rte_mempool_obj_iter(pool, ::rte_pktmbuf_init, nullptr);
    return pool;
}

/// The cache that the calling lcore gives buffers of this pool back through; null: straight to the pool. A pool that
/// was made elsewhere says nothing of a home.
rte_mempool_cache* cache_of(rte_mempool* pool) noexcept {
    const unsigned lcore = ::rte_lcore_id();
    if (pool->private_data_size >= sizeof(PoolPrivate)) {
        const std::uint32_t home = static_cast<const PoolPrivate*>(::rte_mempool_get_priv(pool))->home;
        if (home != lcore && home != BufferPoolConfig::any_lcore) return nullptr;
    }
    return ::rte_mempool_default_cache(pool, lcore);
}

void put(rte_mempool* pool, void** buffers, std::uint32_t count) noexcept {
    // As late as can be: whoever takes one of these next is ordered after the looks at them.
    core::tsan_release(pool);
    ::rte_mempool_generic_put(pool, buffers, count, cache_of(pool));
}

static_assert(BufferPoolConfig::any_node == SOCKET_ID_ANY && BufferPoolConfig::any_lcore == LCORE_ID_ANY);

constexpr std::uint32_t together = 64;

/// Buffers of several pools, chains of them, and references to others' memory. What belongs to one pool is collected,
/// because neighbours often come through different queues, and so from different pools, by turns.
void release_mixed(rte_mbuf** mbufs, std::uint32_t count) noexcept {
    struct Group {
        rte_mempool* pool = nullptr;
        std::uint32_t count = 0;
        std::array<void*, together> buffers;
    };
    std::array<Group, 4> groups;
    std::size_t next = 0;  // the group that makes room for another pool
    const auto flush = [](Group& group) {
        if (group.count > 0) put(group.pool, group.buffers.data(), group.count);
        group.count = 0;
    };
    const auto add = [&](rte_mbuf* segment) {
        auto found = std::ranges::find(groups, segment->pool, &Group::pool);
        if (found == groups.end()) {
            found = groups.begin() + static_cast<std::ptrdiff_t>(next++ % groups.size());
            flush(*found);
            found->pool = segment->pool;
        }
        if (found->count == together) flush(*found);
        found->buffers[found->count++] = segment;
    };
    for (std::uint32_t i = 0; i < count; ++i)
        for (rte_mbuf* segment = mbufs[i]; segment != nullptr;) {
            rte_mbuf* following = segment->next;
            if (rte_mbuf* free = ::rte_pktmbuf_prefree_seg(segment); free != nullptr) add(free);
            segment = following;
        }
    std::ranges::for_each(groups, flush);
}

}  // namespace

BufferPool::BufferPool(const std::string& name, const BufferPoolConfig& config)
    : pool_(make_pool(name, config, config.node)), room_bytes_(config.room_bytes) {
    if (pool_ == nullptr && config.node != BufferPoolConfig::any_node) {
        on_node_ = false;
        pool_ = make_pool(name, config, SOCKET_ID_ANY);
    }
    if (pool_ == nullptr)
        throw core::RunError(fmt::format("no memory for {} packet buffers of {} bytes: {}", config.buffers,
                                         config.room_bytes, rte_strerror(rte_errno)));
    if (!config.on_demand) return;
    try {
        memory_ = std::make_unique<PoolMemory>(pool_);
    } catch (...) {
        ::rte_mempool_free(pool_);
        throw;
    }
    if (memory_->grow()) return;
    ::rte_mempool_free(pool_);
    throw core::RunError(fmt::format("no DPDK memory for the notes of {} packet buffers", config.buffers));
}

BufferPool::~BufferPool() {
    if (!ends_with_process()) ::rte_mempool_free(pool_);
}

std::uint64_t BufferPool::memory_bytes(const BufferPoolConfig& config) noexcept {
    return config.buffers * (element_bytes(config) + 32) + (std::uint64_t{8} << 20U);
}

std::uint64_t BufferPool::eal_memory_bytes(const BufferPoolConfig& config) noexcept {
    return config.on_demand ? PoolMemory::eal_memory_bytes(config.buffers) : memory_bytes(config);
}

rte_mbuf* BufferPool::allocate() noexcept {
    void* buffer = nullptr;
    if (!take({&buffer, 1})) return nullptr;
    auto* mbuf = static_cast<rte_mbuf*>(buffer);
    ::rte_pktmbuf_reset(mbuf);  // after take(), which orders it after the looks of whoever gave the buffer back
    return mbuf;
}

bool BufferPool::take(std::span<void*> buffers) noexcept {
    const auto count = static_cast<unsigned>(buffers.size());
    while (::rte_mempool_get_bulk(pool_, buffers.data(), count) != 0)
        if (memory_ == nullptr || !memory_->grow()) return false;
    core::tsan_acquire(pool_);
    return true;
}

void release_buffers(void** buffers, std::uint32_t count) {
    // Received buffers are nearly always whole: one segment, nobody else's reference, memory of their own. Then there
    // is nothing to reset, and their second cache line need not be looked at.
    auto** mbufs = reinterpret_cast<rte_mbuf**>(buffers);
    for (std::uint32_t at = 0; at < count; at += together) {
        const std::uint32_t some = count - at < together ? count - at : together;
        rte_mempool* pool = mbufs[at]->pool;
        bool plain = true;
        for (std::uint32_t i = at; i < at + some; ++i)
            plain = plain && mbufs[i]->pool == pool && mbufs[i]->nb_segs == 1 && RTE_MBUF_DIRECT(mbufs[i]) &&
                    rte_mbuf_refcnt_read(mbufs[i]) == 1;
        if (plain) {
            put(pool, buffers + at, some);
            continue;
        }
        core::tsan_release(pool);
        if (!release_references(buffers + at, some)) release_mixed(mbufs + at, some);
    }
}

}  // namespace weir::port
