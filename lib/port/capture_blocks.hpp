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

#include "port/buffers.hpp"
#include "store/capture/input.hpp"

namespace weir::port {

class CaptureBlocks final : public store::BlockLender {
public:
    /// Smaller packets are not worth a reference: copying them is as cheap, and one that is held would keep a block
    /// that is a thousand times its size.
    static constexpr std::uint32_t referred_bytes_min = 2048;
    /// Packets of that size that a block has room for.
    static constexpr std::uint32_t packets_per_block = store::CaptureInput::memory_bytes / referred_bytes_min;

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

    /// EAL memory for the mbufs of so many blocks.
    [[nodiscard]] static std::uint64_t eal_memory_bytes(std::uint32_t blocks) noexcept;

private:
    struct Block : store::CaptureBlock {
        rte_mbuf_ext_shared_info shared;
        std::uint32_t handed = 0;  ///< references made since it was taken
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
