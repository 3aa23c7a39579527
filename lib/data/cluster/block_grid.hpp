// Where blocks end: every so many event numbers.
#pragma once

#include <cstdint>

#include "cluster/message.hpp"

namespace weir::cluster {

class BlockGrid {
public:
    /// No event has a number from here on.
    static constexpr Block last = ~Block{0} - 1;

    /// `size`: event numbers of a block.
    explicit BlockGrid(std::uint64_t size) : size_(size) {}

    /// By their order.
    [[nodiscard]] std::uint64_t index_of(Block number) const noexcept { return number / size_; }
    [[nodiscard]] Block begin_of(Block number) const noexcept { return number - number % size_; }
    /// The number after the last one of the block that `number` is in.
    [[nodiscard]] Block end_of(Block number) const noexcept {
        const Block begin = begin_of(number);
        return last - begin > size_ ? begin + size_ : last;
    }
    /// Not all numbers of a block.
    [[nodiscard]] bool is_piece(BlockSpan span) const noexcept {
        return span.block != begin_of(span.block) || span.end != end_of(span.block);
    }

private:
    std::uint64_t size_;
};

}  // namespace weir::cluster
