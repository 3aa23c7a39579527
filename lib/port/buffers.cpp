#include "port/buffers.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mempool.h>

#include "core/error.hpp"
#include "core/tsan.hpp"
#include "port/capture_blocks.hpp"

namespace weir::port {

namespace {
// What a pool element has besides the data room: mempool header, rte_mbuf, headroom; rounded up for alignment and for
// the spread over memory channels.
constexpr std::uint64_t element_overhead_bytes = 64 + sizeof(rte_mbuf) + RTE_PKTMBUF_HEADROOM + 256;

/// As rte_pktmbuf_pool_create_by_ops, but without hugepages the elements may lie across pages: no device reads physical
/// addresses then, and rounding 9 KiB buffers up to whole 4 KiB pages would waste a quarter of the memory.
rte_mempool* make_pool(const std::string& name, const BufferPoolConfig& config) {
    const unsigned flags = ::rte_eal_has_hugepages() != 0 ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG;
    const std::uint32_t room = config.room_bytes + RTE_PKTMBUF_HEADROOM;
    rte_mempool* pool =
        ::rte_mempool_create_empty(name.c_str(), config.buffers, sizeof(rte_mbuf) + room, BufferPool::cache_buffers,
                                   sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, flags);
    if (pool == nullptr) return nullptr;
    rte_pktmbuf_pool_private kind{};
    kind.mbuf_data_room_size = static_cast<std::uint16_t>(room);
    if (::rte_mempool_set_ops_byname(pool, "lf_stack", nullptr) != 0) {
        ::rte_mempool_free(pool);
        return nullptr;
    }
    ::rte_pktmbuf_pool_init(pool, &kind);
    if (::rte_mempool_populate_default(pool) < 0) {
        ::rte_mempool_free(pool);
        return nullptr;
    }
    ::rte_mempool_obj_iter(pool, ::rte_pktmbuf_init, nullptr);
    return pool;
}

}  // namespace

BufferPool::BufferPool(const std::string& name, const BufferPoolConfig& config)
    : pool_(make_pool(name, config)), room_bytes_(config.room_bytes) {
    if (pool_ == nullptr)
        throw core::RunError(fmt::format("no memory for {} packet buffers of {} bytes: {}", config.buffers,
                                         config.room_bytes, rte_strerror(rte_errno)));
}

BufferPool::~BufferPool() {
    ::rte_mempool_free(pool_);
}

std::uint64_t BufferPool::memory_bytes(const BufferPoolConfig& config) noexcept {
    return config.buffers * (config.room_bytes + element_overhead_bytes + 32) + (std::uint64_t{8} << 20U);
}

rte_mbuf* BufferPool::allocate() noexcept {
    rte_mbuf* mbuf = ::rte_pktmbuf_alloc(pool_);
    core::ordered_after(pool_);
    return mbuf;
}

void release_buffers(void** buffers, std::uint32_t count) {
    // Received buffers are nearly always whole: one segment, nobody else's reference, memory of their own. Then there
    // is nothing to reset, and their second cache line need not be looked at.
    constexpr std::uint32_t together = 64;
    auto** mbufs = reinterpret_cast<rte_mbuf**>(buffers);
    for (std::uint32_t at = 0; at < count; at += together) {
        const std::uint32_t some = count - at < together ? count - at : together;
        rte_mempool* pool = mbufs[at]->pool;
        bool plain = true;
        for (std::uint32_t i = at; i < at + some; ++i)
            plain = plain && mbufs[i]->pool == pool && mbufs[i]->nb_segs == 1 && RTE_MBUF_DIRECT(mbufs[i]) &&
                    rte_mbuf_refcnt_read(mbufs[i]) == 1;
        // As late as can be: whoever takes one of these next is ordered behind the looks at them above.
        core::ordered_before(pool);
        if (plain)
            ::rte_mempool_put_bulk(pool, buffers + at, some);
        else if (!release_references(buffers + at, some))
            ::rte_pktmbuf_free_bulk(mbufs + at, some);
    }
}

}  // namespace weir::port
