// Memory that large transfers are made from and to: in hugepages where there are any, so that a device's driver finds
// a buffer in few pieces.
#pragma once

#include <cstddef>
#include <span>

namespace weir::core {

class HugeBytes {
public:
    HugeBytes() = default;
    /// Zeroed and backed, page by page as the thread's memory policy says; page-aligned. From reserved hugepages where
    /// there are enough, else transparent ones where the system gives any. Throws std::bad_alloc.
    explicit HugeBytes(std::size_t bytes);
    ~HugeBytes();
    HugeBytes(HugeBytes&& other) noexcept;
    HugeBytes& operator=(HugeBytes&& other) noexcept;

    [[nodiscard]] std::span<std::byte> span() const noexcept { return {memory_, bytes_}; }

private:
    std::byte* memory_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t mapped_ = 0;
};

}  // namespace weir::core
