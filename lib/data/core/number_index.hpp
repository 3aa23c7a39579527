// Where a number stands in a list: a look-up that costs the same for 65,536 entries as for twenty.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/flat_table.hpp"

namespace weir::core {

class NumberIndex {
public:
    static constexpr std::size_t absent = SIZE_MAX;

    NumberIndex() : NumberIndex(std::vector<NumberKey>()) {}
    explicit NumberIndex(std::vector<NumberKey> keys)
        : keys_(std::move(keys)), places_(keys_.size() > scanned_max ? keys_.size() : 0) {
        if (keys_.size() <= scanned_max) return;
        for (std::uint32_t i = 0; i < keys_.size(); ++i)
            if (places_.find(keys_[i]) == nullptr) places_.insert(keys_[i], i);
    }
    /// Of 32-bit numbers.
    explicit NumberIndex(const std::vector<std::uint32_t>& numbers) : NumberIndex(keys_of(numbers)) {}

    [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
    /// The first place where the key stands, or `absent`.
    [[nodiscard]] std::size_t find(const NumberKey& key) const noexcept {
        if (keys_.size() > scanned_max) {
            const std::uint32_t* const place = places_.find(key);
            return place != nullptr ? *place : absent;
        }
        for (std::size_t i = 0; i < keys_.size(); ++i)
            if (keys_[i] == key) return i;
        return absent;
    }
    [[nodiscard]] std::size_t find(std::uint64_t number) const noexcept { return find(NumberKey{number, 0}); }

private:
    static constexpr std::size_t scanned_max = 8;  ///< a short list is faster read than hashed

    static std::vector<NumberKey> keys_of(const std::vector<std::uint32_t>& numbers) {
        std::vector<NumberKey> keys(numbers.size());
        std::ranges::transform(numbers, keys.begin(), [](std::uint32_t number) { return NumberKey{number, 0}; });
        return keys;
    }

    std::vector<NumberKey> keys_;
    FlatTable<std::uint32_t> places_;
};

}  // namespace weir::core
