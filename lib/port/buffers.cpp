#include "port/buffers.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_mempool.h>

#include "core/error.hpp"

namespace weir::port {

namespace {
// What a pool element has besides the data room: mempool header, rte_mbuf, headroom; rounded up for alignment and for
// the spread over memory channels.
constexpr std::uint64_t element_overhead_bytes = 64 + sizeof(rte_mbuf) + RTE_PKTMBUF_HEADROOM + 128;
}  // namespace

BufferPool::BufferPool(const std::string& name, const BufferPoolConfig& config)
    : pool_(::rte_pktmbuf_pool_create_by_ops(name.c_str(), config.buffers, cache_buffers, 0,
                                             static_cast<std::uint16_t>(config.room_bytes + RTE_PKTMBUF_HEADROOM),
                                             SOCKET_ID_ANY, "lf_stack")),
      room_bytes_(config.room_bytes) {
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

void release_buffers(void** buffers, std::uint32_t count) {
    ::rte_pktmbuf_free_bulk(reinterpret_cast<rte_mbuf**>(buffers), count);
}

}  // namespace weir::port
