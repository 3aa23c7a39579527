#include "fabric/part_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "core/refused_memory.hpp"
#include "fabric/part_format.hpp"

namespace weir::fabric {

namespace {

constexpr std::uint64_t piece_bytes_min = 4096;

/// Few sizes, so that what comes back fits what is wanted next: a quarter of each power of two apart.
std::uint64_t capacity_for(std::uint64_t bytes) {
    if (bytes <= piece_bytes_min) return piece_bytes_min;
    const std::uint64_t step = std::bit_floor(bytes - 1) / 4;
    return (bytes + step - 1) / step * step;
}

}  // namespace

PartMemory::~PartMemory() {
    for (const auto& [data, capacity] : taken_) std::free(data);
    for (const auto& [capacity, pieces] : free_)
        for (std::byte* const piece : pieces) std::free(piece);
}

PartMemory::Piece PartMemory::take(std::uint64_t bytes) {
    const std::uint64_t capacity = capacity_for(bytes);
    const std::scoped_lock lock(mutex_);
    std::byte* data = nullptr;
    if (const auto found = free_.find(capacity); found != free_.end() && !found->second.empty()) {
        data = found->second.back();
        found->second.pop_back();
        free_bytes_ -= capacity;
    } else {
        data = static_cast<std::byte*>(std::aligned_alloc(part_align, capacity));
        if (data == nullptr) core::refuse_memory(capacity);
    }
    taken_.emplace(data, capacity);
    const std::uint64_t used = used_.load(std::memory_order_relaxed) + capacity;
    used_.store(used, std::memory_order_relaxed);
    highest_.store(std::max(used, highest_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
    return {data, capacity};
}

void PartMemory::give_back(Piece piece) noexcept {
    give_back(piece.data);
}

void PartMemory::give_back(std::byte* data) noexcept {
    const std::scoped_lock lock(mutex_);
    const auto found = taken_.find(data);
    const std::uint64_t capacity = found->second;
    taken_.erase(found);
    used_.store(used_.load(std::memory_order_relaxed) - capacity, std::memory_order_relaxed);
    // What is kept and what is used stay below the bound together.
    if (free_bytes_ + capacity + used_.load(std::memory_order_relaxed) > bytes_max_) {
        std::free(data);
        return;
    }
    free_[capacity].push_back(data);
    free_bytes_ += capacity;
}

}  // namespace weir::fabric
