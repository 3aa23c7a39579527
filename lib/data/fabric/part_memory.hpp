// Memory for parts, with a bound on all of it together. Pieces that come back are kept for the next ones, because
// memory that was never touched is dear. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace weir::fabric {

class PartMemory {
public:
    /// At a multiple of 64; `capacity` may be more than was asked for.
    struct Piece {
        std::byte* data = nullptr;
        std::uint64_t capacity = 0;
    };

    explicit PartMemory(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
    ~PartMemory();
    PartMemory(const PartMemory&) = delete;
    PartMemory& operator=(const PartMemory&) = delete;

    /// Whether so many more bytes stay below the bound. One piece may always be had, however large it is.
    [[nodiscard]] bool has_room(std::uint64_t bytes) const noexcept {
        const std::uint64_t used = used_.load(std::memory_order_relaxed);
        return used == 0 || used + bytes <= bytes_max_;
    }
    /// Whether or not there is room below the bound. Throws std::bad_alloc where the system has none.
    [[nodiscard]] Piece take(std::uint64_t bytes);
    void give_back(Piece piece) noexcept;
    /// The same by the address alone.
    void give_back(std::byte* data) noexcept;

    [[nodiscard]] std::uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t used_highest() const noexcept { return highest_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t bound() const noexcept { return bytes_max_; }

private:
    std::uint64_t bytes_max_;
    std::mutex mutex_;
    std::map<std::byte*, std::uint64_t> taken_;              ///< by address: their capacity
    std::map<std::uint64_t, std::vector<std::byte*>> free_;  ///< by capacity
    std::uint64_t free_bytes_ = 0;
    std::atomic<std::uint64_t> used_{0};
    std::atomic<std::uint64_t> highest_{0};
};

}  // namespace weir::fabric
