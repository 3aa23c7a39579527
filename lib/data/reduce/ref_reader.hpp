// Any range of a message's bytes, from its references: for what has to be looked at before it is copied, or is copied
// in another order than it came. Ranges are best asked for in rising order: the reader goes on where it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reduce/gather.hpp"

namespace weir::reduce {

class RefReader {
public:
    RefReader() = default;
    /// `message` must outlive it, and stay as it is.
    explicit RefReader(const SortedRefs& message) : message_(&message) {}

    /// Copies the bytes from `offset` on to `out`. False if one of them is missing; what is in `out` then is undefined.
    [[nodiscard]] bool copy(std::uint32_t offset, std::span<std::byte> out) noexcept;
    /// Every byte from `begin` to `end` is there.
    [[nodiscard]] bool has(std::uint32_t begin, std::uint32_t end) noexcept;

private:
    /// Goes to the reference that has `offset`, or to the first one after it.
    void seek(std::uint32_t offset) noexcept;

    const SortedRefs* message_ = nullptr;
    std::size_t at_ = 0;
};

}  // namespace weir::reduce
