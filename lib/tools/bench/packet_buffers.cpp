#include "bench/packet_buffers.hpp"

#include <algorithm>
#include <new>

namespace weir::bench {
namespace {

// In front of each payload, on a cache line of its own: the buffers that it belongs to.
constexpr std::size_t head_bytes = core::cache_line_bytes;

}  // namespace

PacketBuffers::PacketBuffers(std::uint32_t bytes, std::uint32_t held, std::uint32_t addresses)
    : bytes_(bytes), in_turn_(addresses > 1) {
    const std::uint32_t count = std::max(held, addresses);
    const std::size_t stride = head_bytes + (bytes + head_bytes - 1) / head_bytes * head_bytes;
    memory_bytes_ = count * stride + head_bytes;
    memory_ = std::make_unique<std::byte[]>(memory_bytes_);  // touched here, not in the first trial
    std::byte* at = memory_.get() + (head_bytes - reinterpret_cast<std::uintptr_t>(memory_.get()) % head_bytes);
    for (std::uint32_t i = 0; i < count; ++i, at += stride) {
        new (at) PacketBuffers*(this);
        ring_.push_back(at + head_bytes);
    }
    free_ = count;
}

std::byte* PacketBuffers::take() noexcept {
    if (free_ == 0) return nullptr;
    --free_;
    if (!in_turn_) return ring_[free_];
    std::byte* buffer = ring_[next_];
    next_ = (next_ + 1) % static_cast<std::uint32_t>(ring_.size());
    return buffer;
}

void PacketBuffers::give_back(std::byte* buffer) noexcept {
    if (in_turn_)
        ring_[(next_ + free_) % ring_.size()] = buffer;
    else
        ring_[free_] = buffer;
    ++free_;
}

void PacketBuffers::release(void** buffers, std::uint32_t count) noexcept {
    for (std::uint32_t i = 0; i < count; ++i) {
        auto* const buffer = static_cast<std::byte*>(buffers[i]);
        (*reinterpret_cast<PacketBuffers**>(buffer - head_bytes))->give_back(buffer);
    }
}

}  // namespace weir::bench
