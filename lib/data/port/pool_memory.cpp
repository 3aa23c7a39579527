#include "port/pool_memory.hpp"

#include <rte_mbuf.h>
#include <sys/mman.h>

#include <algorithm>

#include "core/one_writer.hpp"
#include "core/refused_memory.hpp"
#include "core/tsan.hpp"

namespace weir::port {

PoolMemory::PoolMemory(rte_mempool* pool)
    : pool_(pool),
      element_bytes_(std::size_t{pool->header_size} + pool->elt_size + pool->trailer_size),
      bytes_(element_bytes_ * pool->size),
      missing_(pool->size) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) core::refuse_memory(bytes_);
    static_cast<void>(::madvise(memory, bytes_, MADV_HUGEPAGE));  // advice
    memory_ = static_cast<std::byte*>(memory);
}

PoolMemory::~PoolMemory() {
    ::munmap(memory_, bytes_);
}

bool PoolMemory::grow() noexcept {
    const std::uint32_t missing = this->missing();
    const std::uint32_t some = std::min(missing, step);
    if (some == 0) return false;
    std::byte* begin = memory_ + element_bytes_ * (pool_->size - missing);
    // First, because the next step puts them where anybody may take them.
    for (std::uint32_t i = 0; i < some; ++i)
        ::rte_pktmbuf_init(pool_, nullptr, begin + i * element_bytes_ + pool_->header_size, i);
    core::tsan_release(pool_);
    const int made = ::rte_mempool_populate_iova(pool_, reinterpret_cast<char*>(begin), RTE_BAD_IOVA,
                                                 element_bytes_ * some, nullptr, nullptr);
    if (made <= 0) return false;
    core::subtract(missing_, static_cast<std::uint32_t>(made));
    return true;
}

std::uint64_t PoolMemory::eal_memory_bytes(std::uint32_t buffers) noexcept {
    constexpr std::uint64_t chunk_bytes = 256;       // DPDK's note of a step
    constexpr std::uint64_t element_bytes = 32;      // a buffer's place in the stack
    constexpr std::uint64_t pool_bytes = 4U << 20U;  // the pool itself with its caches, the heap's rounding
    return (buffers / step + 1) * chunk_bytes + buffers * element_bytes + pool_bytes;
}

}  // namespace weir::port
