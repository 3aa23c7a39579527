// A hash table of pointers to objects that know their own keys, of fixed capacity: linear probing, backward-shift
// deletion, no allocation after construction. A slot is eight bytes, so what is looked for is mostly in the cache, and
// the object is looked at anyway when it is found. Like FlatTable, for keys that come off the wire.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/flat_table.hpp"

namespace weir::core {

/// `KeyOf()(object)` is its NumberKey, which stays the same while the object is in the table.
template <class Object, class KeyOf>
class PointerTable {
public:
    /// Room for `entries_max` objects; twice as many slots at least, so that probing stays short.
    explicit PointerTable(std::size_t entries_max) : mask_(slots_for(entries_max) - 1), slots_(mask_ + 1) {}
    [[nodiscard]] static std::uint64_t memory_bytes(std::size_t entries_max) noexcept {
        return std::uint64_t{slots_for(entries_max)} * sizeof(Object*);
    }

    /// The object with this key, if there is one and nothing is in its way; or another, or nullptr. Looks at no object.
    [[nodiscard]] Object* guess(const NumberKey& key) const noexcept { return slots_[home(key)]; }
    /// nullptr: there is none.
    [[nodiscard]] Object* find(const NumberKey& key) const noexcept {
        for (std::size_t i = home(key);; i = next(i))
            if (slots_[i] == nullptr || key_of(*slots_[i]) == key) return slots_[i];
    }
    /// The key must be new, and there must be room.
    void insert(Object& object) noexcept {
        std::size_t i = home(key_of(object));
        while (slots_[i] != nullptr) i = next(i);
        slots_[i] = &object;
        ++size_;
    }
    /// It must be there.
    void erase(const Object& object) noexcept {
        std::size_t i = home(key_of(object));
        while (slots_[i] != &object) i = next(i);
        // Pull back every later entry of the run that may legally live here, so that no tombstone is needed.
        for (std::size_t j = next(i); slots_[j] != nullptr; j = next(j)) {
            const std::size_t wanted = home(key_of(*slots_[j]));
            if (((j - wanted) & mask_) >= ((j - i) & mask_)) {
                slots_[i] = slots_[j];
                i = j;
            }
        }
        slots_[i] = nullptr;
        --size_;
    }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    [[nodiscard]] static NumberKey key_of(const Object& object) noexcept { return KeyOf()(object); }
    [[nodiscard]] static std::size_t slots_for(std::size_t entries_max) noexcept {
        return std::bit_ceil(entries_max < 4 ? std::size_t{8} : 2 * entries_max);
    }
    [[nodiscard]] std::size_t home(const NumberKey& key) const noexcept { return hash_of(key) & mask_; }
    [[nodiscard]] std::size_t next(std::size_t i) const noexcept { return (i + 1) & mask_; }

    std::size_t mask_;
    std::size_t size_ = 0;
    std::vector<Object*> slots_;
};

}  // namespace weir::core
