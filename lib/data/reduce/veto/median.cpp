// Compiled once for each instruction set that Highway knows, by including itself (foreach_target.h).
#include "reduce/veto/median.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/veto/median.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <bit>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace weir::reduce::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Keys = hn::ScalableTag<std::uint32_t>;

/// Integers in the order of the floats, in whole vectors: after the last there are the highest ones.
struct Sortable {
    explicit Sortable(std::span<const float> values) : count(values.size()) {
        const Keys d;
        const std::size_t lanes = hn::Lanes(d);
        std::size_t i = 0;
        for (; i < count; ++i) {
            const auto bits = std::bit_cast<std::uint32_t>(values[i]);
            keys[i] = bits ^ ((bits >> 31U) != 0 ? 0xffffffffU : 0x80000000U);
        }
        for (; i % lanes != 0; ++i) keys[i] = 0xffffffff;
        end = i;
    }
    [[nodiscard]] HWY_INLINE std::size_t below(std::uint32_t key) const {
        const Keys d;
        const auto limit = hn::Set(d, key);
        std::size_t found = 0;
        for (std::size_t i = 0; i < end; i += hn::Lanes(d))
            found += hn::CountTrue(d, hn::Lt(hn::Load(d, keys + i), limit));
        return found;
    }
    alignas(64) std::uint32_t keys[median_values_max + 16];
    std::size_t count;
    std::size_t end;
};

float value_of(std::uint32_t key) {
    return std::bit_cast<float>(key ^ ((key >> 31U) != 0 ? 0x80000000U : 0xffffffffU));
}

/// Bit by bit: counting is a vector at a time and without branches, where moving values about is neither.
float Median(std::span<const float> values) {
    const Sortable sorted(values);
    const std::size_t middle = sorted.count / 2;
    std::uint32_t lowest = 0xffffffff;
    std::uint32_t highest = 0;
    for (std::size_t i = 0; i < sorted.count; ++i) {
        lowest = sorted.keys[i] < lowest ? sorted.keys[i] : lowest;
        highest = sorted.keys[i] > highest ? sorted.keys[i] : highest;
    }
    // What all have in common needs no counting.
    const int open_bits = 32 - std::countl_zero(lowest ^ highest);
    std::uint32_t upper = open_bits == 32 ? 0 : lowest >> open_bits << open_bits;
    std::size_t below_upper = 0;
    for (int bit = open_bits - 1; bit >= 0; --bit) {
        const std::uint32_t tried = upper | std::uint32_t{1} << bit;
        const std::size_t below = sorted.below(tried);
        const bool fits = below <= middle;
        upper = fits ? tried : upper;
        below_upper = fits ? below : below_upper;
    }
    if (sorted.count % 2 == 1 || below_upper < middle) return value_of(upper);
    std::uint32_t lower = 0;
    for (std::size_t i = 0; i < sorted.count; ++i)
        if (sorted.keys[i] < upper && sorted.keys[i] > lower) lower = sorted.keys[i];
    return (value_of(lower) + value_of(upper)) * 0.5F;
}

}  // namespace weir::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::reduce {

HWY_EXPORT(Median);

float median(std::span<const float> values) noexcept {
    return HWY_DYNAMIC_DISPATCH(Median)(values);
}

}  // namespace weir::reduce
#endif
