// Memory for parts of one size. What was given back first is taken first, so every piece is used again and again: in
// all modes the same memory is touched, and none profits from caches more than another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <stdexcept>

namespace weir::fabric::bench {

class Pieces {
public:
    Pieces(std::uint64_t bytes, std::uint32_t count) {
        const std::uint64_t stride = (bytes + align - 1) / align * align;
        memory_.reset(static_cast<std::byte*>(std::aligned_alloc(align, stride * count)));
        if (!memory_) throw std::bad_alloc();
        std::memset(memory_.get(), 1, stride * count);
        for (std::uint32_t i = 0; i < count; ++i) free_.push_back(memory_.get() + i * stride);
    }

    [[nodiscard]] bool empty() const noexcept { return free_.empty(); }
    [[nodiscard]] std::byte* take() {
        if (free_.empty()) throw std::logic_error("more parts come than may be on their way");
        std::byte* const piece = free_.front();
        free_.pop_front();
        return piece;
    }
    void give_back(std::byte* piece) { free_.push_back(piece); }

private:
    static constexpr std::uint64_t align = 4096;
    struct Free {
        void operator()(std::byte* memory) const noexcept { std::free(memory); }
    };
    std::unique_ptr<std::byte, Free> memory_;
    std::deque<std::byte*> free_;
};

}  // namespace weir::fabric::bench
