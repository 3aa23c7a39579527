#include "port/capture_blocks.hpp"

#include <rte_mempool.h>
#include <sys/mman.h>

#include <algorithm>

#include "core/refused_memory.hpp"
#include "core/tsan.hpp"

namespace weir::port {

namespace {

/// References that a block is born with, so that handing one out is no atomic operation; what was not handed out is
/// taken off when the reader leaves the block. The count in an mbuf's shared info has 16 bits, the steps have 15. A
/// block of smaller packets than 24 bytes has more; those are copied.
constexpr std::uint16_t references_ahead = 0x7fff;
BufferPoolConfig pool_config(std::uint32_t blocks) noexcept {
    BufferPoolConfig config{blocks * CaptureBlocks::packets_per_block, 0};
    config.on_demand = true;
    return config;
}

}  // namespace

CaptureBlocks::CaptureBlocks(std::uint32_t blocks) : blocks_(blocks) {
    if (blocks == 0) return;
    pool_ = std::make_unique<BufferPool>("captures", pool_config(blocks));
    const std::size_t bytes = blocks_.size() * store::CaptureInput::memory_bytes;
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) core::refuse_memory(bytes);
    static_cast<void>(::madvise(memory, bytes, MADV_HUGEPAGE));  // advice
    memory_ = static_cast<std::byte*>(memory);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        blocks_[i].memory = memory_ + i * store::CaptureInput::memory_bytes;
        blocks_[i].shared.free_cb = freed;
        blocks_[i].shared.fcb_opaque = &blocks_[i];
    }
}

CaptureBlocks::~CaptureBlocks() {
    if (ready_count_ > 0) ::rte_mempool_put_bulk(pool_->get(), ready_.data(), ready_count_);
    if (memory_ != nullptr) ::munmap(memory_, blocks_.size() * store::CaptureInput::memory_bytes);
}

std::uint64_t CaptureBlocks::memory_bytes(std::uint32_t blocks) noexcept {
    return blocks == 0 ? 0 : BufferPool::memory_bytes(pool_config(blocks));
}

std::uint64_t CaptureBlocks::eal_memory_bytes(std::uint32_t blocks) noexcept {
    return blocks == 0 ? 0 : BufferPool::eal_memory_bytes(pool_config(blocks));
}

void CaptureBlocks::freed(void* /*memory*/, void* block) noexcept {
    // The count may have been read as 1 without an atomic step: what others did with the block comes before this.
    std::atomic_thread_fence(std::memory_order_acq_rel);
    core::tsan_release(block);
    static_cast<Block*>(block)->free.store(true, std::memory_order_release);
}

store::CaptureBlock* CaptureBlocks::take() noexcept {
    // The first free one, so that few blocks are in use, and in cache, while few are held.
    for (Block& block : blocks_) {
        if (!block.free.load(std::memory_order_acquire)) continue;
        core::tsan_acquire(&block);
        block.free.store(false, std::memory_order_relaxed);
        block.handed = 0;
        ::rte_mbuf_ext_refcnt_set(&block.shared, references_ahead);
        return &block;
    }
    return nullptr;
}

void CaptureBlocks::leave(store::CaptureBlock& lent) noexcept {
    auto& block = static_cast<Block&>(lent);
    const auto unused = static_cast<std::int16_t>(references_ahead - block.handed);
    if (::rte_mbuf_ext_refcnt_update(&block.shared, static_cast<std::int16_t>(-unused)) == 0) freed(nullptr, &block);
}

rte_mbuf* CaptureBlocks::refer(store::CaptureBlock& lent, std::span<const std::byte> bytes) noexcept {
    auto& block = static_cast<Block&>(lent);
    // One less than there are, so that the last of them is only given back when the reader has left.
    if (block.handed == references_ahead - 1U) return nullptr;
    if (ready_count_ == 0) {
        if (!pool_->take(ready_)) return nullptr;
        ready_count_ = ready_.size();
    }
    auto* mbuf = static_cast<rte_mbuf*>(ready_[--ready_count_]);
    ++block.handed;
    const auto size = static_cast<std::uint16_t>(bytes.size());
    // As rte_pktmbuf_attach_extbuf, for an mbuf that was not reset when it was given back.
    mbuf->buf_addr = const_cast<std::byte*>(bytes.data());
    mbuf->buf_len = size;
    mbuf->data_off = 0;
    mbuf->data_len = size;
    mbuf->pkt_len = size;
    mbuf->nb_segs = 1;
    mbuf->next = nullptr;
    mbuf->ol_flags = RTE_MBUF_F_EXTERNAL;
    mbuf->shinfo = &block.shared;
    return mbuf;
}

bool release_references(void** buffers, std::uint32_t count) noexcept {
    auto** mbufs = reinterpret_cast<rte_mbuf**>(buffers);
    rte_mempool* pool = mbufs[0]->pool;
    for (std::uint32_t i = 0; i < count; ++i)
        if (!RTE_MBUF_HAS_EXTBUF(mbufs[i]) || mbufs[i]->pool != pool || rte_mbuf_refcnt_read(mbufs[i]) != 1)
            return false;
    // A pool's mbufs are all of one kind; those of others may be attached for good.
    if (mbufs[0]->shinfo->free_cb != CaptureBlocks::freed) return false;
    for (std::uint32_t at = 0; at < count;) {
        // Packets that were neighbours lie in one block: one atomic operation for all of them.
        rte_mbuf_ext_shared_info* shared = mbufs[at]->shinfo;
        const std::uint32_t first = at;
        while (at < count && mbufs[at]->shinfo == shared) ++at;
        if (::rte_mbuf_ext_refcnt_update(shared, static_cast<std::int16_t>(-static_cast<int>(at - first))) == 0)
            shared->free_cb(nullptr, shared->fcb_opaque);
    }
    ::rte_mempool_put_bulk(pool, buffers, count);
    return true;
}

}  // namespace weir::port
