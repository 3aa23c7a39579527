// Blocks that captures are read into, and mbufs that refer to packets in them: a replayed packet is not copied again. A
// fixed set; a block is free again when its last packet has been given back (release_buffers).
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "port/buffers.hpp"
#include "store/capture/input.hpp"

namespace weir::port {

class CaptureBlocks final : public store::BlockLender {
public:
    /// Mbufs for each block: when all blocks are held at once, and packets are smaller than 512 bytes, the rest is
    /// copied.
    static constexpr std::uint32_t packets_per_block = store::CaptureInput::memory_bytes / 512;

    /// `blocks` may be 0: then nothing is lent. EAL runs; throws core::RunError or std::bad_alloc when memory does not
    /// suffice. Must outlive every packet that refers to it.
    explicit CaptureBlocks(std::uint32_t blocks);
    ~CaptureBlocks() override;
    CaptureBlocks(const CaptureBlocks&) = delete;
    CaptureBlocks& operator=(const CaptureBlocks&) = delete;

    store::CaptureBlock* take() noexcept override;
    void leave(store::CaptureBlock& block) noexcept override;
    /// An mbuf whose data are `bytes` (at most 65535), which lie in `block`; nullptr when there is none.
    [[nodiscard]] rte_mbuf* refer(store::CaptureBlock& block, std::span<const std::byte> bytes) noexcept;

    /// Memory for the mbufs of so many blocks, and what of it is EAL's.
    [[nodiscard]] static std::uint64_t memory_bytes(std::uint32_t blocks) noexcept;
    [[nodiscard]] static std::uint64_t eal_memory_bytes(std::uint32_t blocks) noexcept;

private:
    struct Block : store::CaptureBlock {
        std::uint32_t handed = 0;                                         ///< references made since it was taken
        alignas(core::cache_line_bytes) rte_mbuf_ext_shared_info shared;  ///< whoever gives back writes to it
        std::atomic<bool> free{true};
    };
    static void freed(void* memory, void* block) noexcept;
    friend bool release_references(void** buffers, std::uint32_t count) noexcept;

    std::unique_ptr<BufferPool> pool_;
    std::vector<Block> blocks_;
    std::byte* memory_ = nullptr;
    std::array<void*, 64> ready_;  ///< mbufs taken in bulk
    std::uint32_t ready_count_ = 0;
};

/// Gives mbufs back that all refer to capture blocks; false, and nothing done, if one of them does not.
bool release_references(void** buffers, std::uint32_t count) noexcept;

}  // namespace weir::port
