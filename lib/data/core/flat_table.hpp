// A hash table of fixed capacity: linear probing, backward-shift deletion, no allocation after construction. For keys
// that come off the wire, so lookups are bounded by a load of one half; it never rehashes and never fails silently.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "core/zeroed_array.hpp"

namespace weir::core {

/// An event number together with what makes it unique: source and epoch, or epoch alone.
struct NumberKey {
    std::uint64_t number = 0;
    std::uint64_t scope = 0;
    friend bool operator==(const NumberKey&, const NumberKey&) = default;
};

[[nodiscard]] inline std::uint64_t hash_of(const NumberKey& key) noexcept {
    // Three multiplications by odd constants (golden ratio, its square's mantissa, and a prime of good spectrum), with
    // folds between. Each half is spread before they meet: neighbouring numbers of neighbouring sources would otherwise
    // cancel out, and as many keys as there are sources would share every slot.
    std::uint64_t x = key.number * 0x9E3779B97F4A7C15U;
    x ^= (x >> 32U) + key.scope * 0xD6E8FEB86659FD93U;
    x *= 0xD1B54A32D192ED03U;
    return x ^ (x >> 29U);
}

template <class Value>
class FlatTable {
public:
    /// Room for `entries_max` entries; twice as many slots, so that probing stays short. `touch`: as in ZeroedArray.
    explicit FlatTable(std::size_t entries_max, bool touch = true)
        : entries_max_(entries_max), slots_(slots_for(entries_max), touch) {}

    [[nodiscard]] static std::uint64_t memory_bytes(std::size_t entries_max) noexcept {
        return std::uint64_t{slots_for(entries_max)} * sizeof(Slot);
    }

    [[nodiscard]] const Value* find(const NumberKey& key) const noexcept {
        return const_cast<FlatTable*>(this)->find(key);
    }
    [[nodiscard]] Value* find(const NumberKey& key) noexcept {
        for (std::size_t i = home(key);; i = next(i)) {
            if (!slots_[i].used) return nullptr;
            if (slots_[i].key == key) return &slots_[i].value;
        }
    }
    /// The key must be new. False when the table holds entries_max entries.
    bool insert(const NumberKey& key, const Value& value) noexcept {
        if (size_ == entries_max_) return false;
        std::size_t i = home(key);
        while (slots_[i].used) i = next(i);
        slots_[i] = {key, value, true};
        ++size_;
        return true;
    }
    bool erase(const NumberKey& key) noexcept {
        std::size_t i = home(key);
        while (slots_[i].used && !(slots_[i].key == key)) i = next(i);
        if (!slots_[i].used) return false;
        // Pull back every later entry of the run that may legally live here, so that no tombstone is needed.
        for (std::size_t j = next(i); slots_[j].used; j = next(j)) {
            const std::size_t wanted = home(slots_[j].key);
            if (((j - wanted) & mask()) >= ((j - i) & mask())) {
                slots_[i] = slots_[j];
                i = j;
            }
        }
        slots_[i].used = false;
        --size_;
        return true;
    }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    struct Slot {
        NumberKey key;
        Value value{};
        bool used = false;
    };
    [[nodiscard]] static std::size_t slots_for(std::size_t entries_max) noexcept {
        return std::bit_ceil(entries_max < 4 ? std::size_t{8} : 2 * entries_max);
    }
    [[nodiscard]] std::size_t mask() const noexcept { return slots_.size() - 1; }
    [[nodiscard]] std::size_t home(const NumberKey& key) const noexcept { return hash_of(key) & mask(); }
    [[nodiscard]] std::size_t next(std::size_t i) const noexcept { return (i + 1) & mask(); }

    std::size_t entries_max_;
    std::size_t size_ = 0;
    ZeroedArray<Slot> slots_;
};

}  // namespace weir::core
