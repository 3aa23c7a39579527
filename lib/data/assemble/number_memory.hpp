// What is remembered of event numbers that have left: the horizon. A ring of the last `horizon` closed numbers with an
// index over it; nothing here depends on how far apart numbers are, so sparse and strided numbers cost the same, and a
// wild number takes one place in the ring and moves nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "core/flat_table.hpp"
#include "core/zeroed_array.hpp"
#include "wire/packet_counter.hpp"

namespace weir::assemble {

/// A builder knows the numbers of so many of the newest epochs; whatever older ones still send is late.
inline constexpr std::uint32_t epochs_remembered = 4;

/// Whether `number` comes after `other`, counted modulo 2^64.
[[nodiscard]] inline bool is_after(std::uint64_t number, std::uint64_t other) noexcept {
    return static_cast<std::int64_t>(number - other) > 0;
}

/// Extends a counter that is `bits` wide to 64 bits: the value nearest to `reference` with those low bits.
[[nodiscard]] inline std::uint64_t extend_number(std::uint64_t carried, std::uint64_t reference,
                                                 unsigned bits) noexcept {
    if (bits >= 64) return carried;
    const std::uint64_t half = std::uint64_t{1} << (bits - 1);
    const std::uint64_t mask = (half << 1U) - 1;
    const std::uint64_t ahead = (carried - reference) & mask;
    return ahead < half ? reference + ahead : reference - (mask + 1 - ahead);
}

/// Follows one source's counter through its wraps, at any width, as long as neighbours in time are less than a quarter
/// of the range apart. What is further away moves the reference only when the next one comes from there too: one wild
/// number would otherwise take the counter to the wrong turn for good.
class NumberExtension {
public:
    explicit NumberExtension(unsigned bits) noexcept
        : bits_(bits), near_(bits < 4 ? std::uint64_t{1} << (bits - 1) : std::uint64_t{1} << (bits - 2)) {}

    /// The first number of all is the reference for those that follow.
    [[nodiscard]] std::uint64_t extend(std::uint64_t carried) noexcept {
        if (!seen_) {
            seen_ = true;
            reference_ = candidate_ = carried;
        }
        return guess(carried);
    }
    /// What `extend` would say. The packet may not be one that counts.
    [[nodiscard]] std::uint64_t guess(std::uint64_t carried) const noexcept {
        if (bits_ >= 64 || !seen_) return carried;
        const std::uint64_t number = extend_number(carried, reference_, bits_);
        if (is_near(number, reference_)) return number;
        const std::uint64_t other = extend_number(carried, candidate_, bits_);
        return is_near(other, candidate_) ? other : number;
    }
    /// A message opened under this (extended) number.
    void opened(std::uint64_t number) noexcept {
        if (is_near(number, reference_) || is_near(number, candidate_)) reference_ = number;
        candidate_ = number;
    }
    /// The source has begun again here.
    void restart(std::uint64_t number) noexcept { reference_ = candidate_ = number; }

private:
    [[nodiscard]] bool is_near(std::uint64_t a, std::uint64_t b) const noexcept {
        return (is_after(a, b) ? a - b : b - a) < near_;
    }

    unsigned bits_;
    std::uint64_t near_;  ///< a quarter of the range
    std::uint64_t reference_ = 0;
    std::uint64_t candidate_ = 0;  ///< the last one that opened, near or not
    bool seen_ = false;
};

class NumberMemory {
public:
    /// `touch`: as in MessageConfig.
    explicit NumberMemory(std::uint32_t horizon, std::uint64_t scope = 0, bool touch = true)
        : scope_(scope), ring_(std::max<std::uint32_t>(horizon, 4), touch), fates_(ring_.size(), touch) {}

    NumberMemory(NumberMemory&&) = default;
    NumberMemory& operator=(NumberMemory&&) = default;

    [[nodiscard]] static std::uint64_t memory_bytes(std::uint32_t horizon) noexcept {
        const std::uint64_t numbers = std::max<std::uint32_t>(horizon, 4);
        return numbers * sizeof(std::uint64_t) + core::FlatTable<Neighbours>::memory_bytes(numbers);
    }

    /// Remembers that `number` has left and where packets that still come for it are counted.
    void remember(std::uint64_t number, wire::PacketCounter fate) noexcept {
        Neighbours* block = find(number, newest_block_);
        if (block != nullptr && block->fates[place_of(number)] != none) {
            block->fates[place_of(number)] = fate;
            return;
        }
        if (count_ == ring_.size()) {
            forget(ring_[oldest_]);
            oldest_ = place_in_ring(1);
            --count_;
            block = find(number, newest_block_);  // which may have gone with it, or lie elsewhere
        }
        ring_[place_in_ring(count_++)] = number;
        if (block == nullptr) {
            fates_.insert(block_of(number), {});
            forget_found();
            block = find(number, newest_block_);
        }
        block->fates[place_of(number)] = fate;
        ++block->count;
    }
    /// Where a packet for `number` is counted if the number has left; nothing if it may still open.
    [[nodiscard]] std::optional<wire::PacketCounter> fate(std::uint64_t number) noexcept {
        if (const Neighbours* block = find(number, asked_block_);
            block != nullptr && block->fates[place_of(number)] != none)
            return block->fates[place_of(number)];
        if (too_old(number)) return wire::PacketCounter::late;
        return std::nullopt;
    }
    void clear() noexcept {
        for (std::size_t i = 0; i < count_; ++i) forget(ring_[place_in_ring(i)]);
        oldest_ = count_ = 0;
    }

private:
    /// Numbers mostly follow each other, so that some neighbours together, in one slot of the table, are a look at
    /// memory less for each. Numbers that are far apart have a slot each; there is one for every number of the ring.
    static constexpr std::uint64_t neighbours = 8;
    static constexpr wire::PacketCounter none = wire::PacketCounter::in_flight;  ///< which is no fate
    struct Neighbours {
        std::array<wire::PacketCounter, neighbours> fates{none, none, none, none, none, none, none, none};
        std::uint8_t count = 0;
    };

    [[nodiscard]] core::NumberKey block_of(std::uint64_t number) const noexcept {
        return {number / neighbours, scope_};
    }
    [[nodiscard]] static std::size_t place_of(std::uint64_t number) noexcept { return number % neighbours; }

    /// Where `number` and its neighbours were found, or were not. Each kind of question mostly asks for the neighbours
    /// that it asked for last, and the table is large.
    struct Found {
        std::uint64_t block = 0;
        bool known = false;
        Neighbours* at = nullptr;
    };
    [[nodiscard]] Neighbours* find(std::uint64_t number, Found& found) noexcept {
        if (!found.known || found.block != number / neighbours)
            found = {number / neighbours, true, fates_.find(block_of(number))};
        return found.at;
    }
    /// Slots of the table have moved, or there is one more.
    void forget_found() noexcept { newest_block_.known = oldest_block_.known = asked_block_.known = false; }

    /// It is remembered.
    void forget(std::uint64_t number) noexcept {
        Neighbours& block = *find(number, oldest_block_);
        block.fates[place_of(number)] = none;
        if (--block.count > 0) return;
        fates_.erase(block_of(number));
        forget_found();
    }
    /// Of the number that has been remembered for the `age`-th longest, from 0.
    [[nodiscard]] std::size_t place_in_ring(std::size_t age) const noexcept {
        const std::size_t place = oldest_ + age;
        return place < ring_.size() ? place : place - ring_.size();
    }
    /// Below what is remembered: two of the three oldest are ahead of it, so that one wild number among them decides
    /// nothing. Ahead is meant modulo 2^64, so that a counter may wrap there too.
    [[nodiscard]] bool too_old(std::uint64_t number) const noexcept {
        if (count_ < ring_.size()) return false;  // nothing has been forgotten yet
        unsigned ahead = 0;
        for (std::size_t i = 0; i < 3; ++i) ahead += is_after(ring_[place_in_ring(i)], number) ? 1U : 0U;
        return ahead >= 2;
    }

    std::uint64_t scope_;
    core::ZeroedArray<std::uint64_t> ring_;
    std::size_t oldest_ = 0;
    std::size_t count_ = 0;
    core::FlatTable<Neighbours> fates_;
    Found newest_block_;
    Found oldest_block_;
    Found asked_block_;
};

}  // namespace weir::assemble
