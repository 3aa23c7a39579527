// Which shard of the builder an event belongs to. All sources of an event must come to the same answer from their own
// numbers, before it is known by how many turns of a narrow counter these differ: so only the bits that all of them
// carry decide.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace weir::assemble {

class ShardOf {
public:
    /// Counters narrower than this have too few values to be shared fairly: one shard takes them all.
    static constexpr unsigned bits_min = 8;

    ShardOf() = default;
    /// `number_bits`: per source, the width of its event number on the wire.
    ShardOf(std::uint32_t shards, std::span<const std::uint8_t> number_bits) noexcept {
        unsigned bits = 64;
        for (const std::uint8_t width : number_bits) bits = std::min<unsigned>(bits, width);
        bits_ = bits;
        if (bits < bits_min) return;
        shards_ = shards;
        if (bits < 64) mask_ = (std::uint64_t{1} << bits) - 1;
    }

    /// Multiplied with the golden ratio (of 2^64), neighbours land as far apart as can be, so numbers in a row take
    /// turns evenly; those with a stride are spread too.
    [[nodiscard]] std::uint32_t operator()(std::uint64_t number) const noexcept {
        if (shards_ == 1) return 0;
        const std::uint64_t place = ((number & mask_) * 0x9e3779b97f4a7c15U) >> 32U;
        return static_cast<std::uint32_t>((place * shards_) >> 32U);
    }
    /// Shards that get anything.
    [[nodiscard]] std::uint32_t shards() const noexcept { return shards_; }
    /// The narrowest counter.
    [[nodiscard]] unsigned bits() const noexcept { return bits_; }

private:
    std::uint32_t shards_ = 1;
    unsigned bits_ = 64;
    std::uint64_t mask_ = ~std::uint64_t{0};
};

}  // namespace weir::assemble
