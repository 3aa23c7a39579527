// Memory for writes past the page cache.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "core/refused_memory.hpp"

namespace weir::store {

/// Bytes at an address that O_DIRECT takes.
class AlignedBytes {
public:
    static constexpr std::size_t alignment = 4096;

    AlignedBytes() = default;
    explicit AlignedBytes(std::size_t bytes)
        : memory_(
              static_cast<std::byte*>(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment))),
          bytes_(bytes) {
        if (memory_ == nullptr) core::refuse_memory(bytes);
    }
    [[nodiscard]] std::span<std::byte> span() const noexcept { return {memory_.get(), bytes_}; }

private:
    struct Free {
        void operator()(std::byte* memory) const noexcept { std::free(memory); }
    };
    std::unique_ptr<std::byte, Free> memory_;
    std::size_t bytes_ = 0;
};

}  // namespace weir::store
