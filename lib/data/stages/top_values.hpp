// The most frequent of the values that an lcore meets on a path that is slow anyway, such as packets that nobody wants:
// in a few places, so that the summary of a run can name them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/one_writer.hpp"

namespace weir::stages {

/// Written by one lcore, read by any thread. With more different values than places the counts are upper bounds, and
/// what is truly frequent stays (the space-saving algorithm of Metwally, Agrawal and El Abbadi, 2005).
template <std::size_t Places>
class TopValuesIn {
public:
    static constexpr std::size_t places = Places;
    struct Entry {
        std::uint64_t value = 0;
        std::uint64_t count = 0;
    };
    /// Where a value is counted, and whether it has just taken this place.
    struct Place {
        std::size_t index = 0;
        bool taken = false;
    };

    Place add(std::uint64_t value) noexcept {
        std::size_t least = 0;
        for (std::size_t i = 0; i < places; ++i) {
            const std::uint64_t count = counts_[i].load(std::memory_order_relaxed);
            if (count > 0 && values_[i].load(std::memory_order_relaxed) == value) {
                counts_[i].store(count + 1, std::memory_order_relaxed);
                return {i, false};
            }
            if (count < counts_[least].load(std::memory_order_relaxed)) least = i;
        }
        values_[least].store(value, std::memory_order_relaxed);
        core::add(counts_[least]);
        return {least, true};
    }

    /// A place that was just given to another value may still show the old one with the new count.
    [[nodiscard]] std::array<Entry, places> entries() const noexcept {
        std::array<Entry, places> out;
        for (std::size_t i = 0; i < places; ++i)
            out[i] = {values_[i].load(std::memory_order_relaxed), counts_[i].load(std::memory_order_relaxed)};
        return out;
    }

private:
    std::array<std::atomic<std::uint64_t>, places> values_{};
    std::array<std::atomic<std::uint64_t>, places> counts_{};
};

using TopValues = TopValuesIn<8>;

}  // namespace weir::stages
