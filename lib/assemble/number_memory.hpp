// What is remembered of event numbers that have left: the horizon. A ring of the last `horizon` closed numbers with an
// index over it; nothing here depends on how far apart numbers are, so sparse and strided numbers cost the same, and a
// wild number takes one place in the ring and moves nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/counters.hpp"
#include "core/flat_table.hpp"

namespace weir::assemble {

/// Extends a counter that is `bits` wide to 64 bits: the value nearest to `reference` with those low bits. It follows a
/// wrap at any width as long as neighbours in time are less than half the range apart.
[[nodiscard]] inline std::uint64_t extend_number(std::uint64_t carried, std::uint64_t reference,
                                                 unsigned bits) noexcept {
    if (bits >= 64) return carried;
    const std::uint64_t half = std::uint64_t{1} << (bits - 1);
    const std::uint64_t mask = (half << 1U) - 1;
    const std::uint64_t ahead = (carried - reference) & mask;
    return ahead < half ? reference + ahead : reference - (mask + 1 - ahead);
}

class NumberMemory {
public:
    NumberMemory(std::uint32_t horizon, std::uint64_t scope = 0)
        : scope_(scope), ring_(std::max<std::uint32_t>(horizon, 4)), fates_(ring_.size()) {}

    /// Remembers that `number` has left and where packets that still come for it are counted.
    void remember(std::uint64_t number, core::PacketCounter fate) noexcept {
        if (core::PacketCounter* known = fates_.find({number, scope_}); known != nullptr) {
            *known = fate;
            return;
        }
        if (count_ == ring_.size()) {
            fates_.erase({ring_[oldest_], scope_});
            oldest_ = (oldest_ + 1) % ring_.size();
            --count_;
        }
        ring_[(oldest_ + count_++) % ring_.size()] = number;
        fates_.insert({number, scope_}, fate);
    }
    /// Where a packet for `number` is counted if the number has left; nothing if it may still open.
    [[nodiscard]] std::optional<core::PacketCounter> fate(std::uint64_t number) noexcept {
        if (core::PacketCounter* known = fates_.find({number, scope_}); known != nullptr) return *known;
        if (too_old(number)) return core::PacketCounter::late;
        return std::nullopt;
    }
    void clear() noexcept {
        for (std::size_t i = 0; i < count_; ++i) fates_.erase({ring_[(oldest_ + i) % ring_.size()], scope_});
        oldest_ = count_ = 0;
    }

private:
    /// Below what is remembered. The median of the three oldest, so that one wild number among them decides nothing.
    [[nodiscard]] bool too_old(std::uint64_t number) const noexcept {
        if (count_ < ring_.size()) return false;  // nothing has been forgotten yet
        const std::uint64_t a = ring_[oldest_];
        const std::uint64_t b = ring_[(oldest_ + 1) % ring_.size()];
        const std::uint64_t c = ring_[(oldest_ + 2) % ring_.size()];
        return number < std::max(std::min(a, b), std::min(std::max(a, b), c));
    }

    std::uint64_t scope_;
    std::vector<std::uint64_t> ring_;
    std::size_t oldest_ = 0;
    std::size_t count_ = 0;
    core::FlatTable<core::PacketCounter> fates_;
};

}  // namespace weir::assemble
