// Which sources sent nothing for an event that others sent something for: counted on a build lcore, with the lowest
// numbers of such events. The lowest, not the first to be noticed: these are the same however many build lcores there
// are.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::stages {

class Absences {
public:
    static constexpr std::size_t lowest_max = 16;  ///< of each source

    explicit Absences(std::size_t sources) : sources_(sources) {}

    void add(std::uint32_t source, std::uint64_t number) noexcept {
        Source& absent = sources_[source];
        const std::uint64_t count = absent.count.load(std::memory_order_relaxed);
        absent.count.store(count + 1, std::memory_order_relaxed);
        absent.highest = std::max(absent.highest, number);
        const auto end = absent.lowest.begin() + absent.used;
        if (absent.used == lowest_max && number > *(end - 1)) return;
        const auto at = std::lower_bound(absent.lowest.begin(), end, number);
        if (absent.used < lowest_max) ++absent.used;
        std::copy_backward(at, absent.lowest.begin() + absent.used - 1, absent.lowest.begin() + absent.used);
        *at = number;
    }
    /// From any thread.
    [[nodiscard]] std::uint64_t count(std::uint32_t source) const noexcept {
        return sources_[source].count.load(std::memory_order_relaxed);
    }
    /// Once the lcore has ended: in order, and all of them if no more than lowest_max were counted.
    [[nodiscard]] std::span<const std::uint64_t> lowest(std::uint32_t source) const noexcept {
        return {sources_[source].lowest.data(), sources_[source].used};
    }
    /// Once the lcore has ended; 0 if none was counted.
    [[nodiscard]] std::uint64_t highest(std::uint32_t source) const noexcept { return sources_[source].highest; }

private:
    struct Source {
        std::atomic<std::uint64_t> count{0};
        std::uint64_t highest = 0;
        std::uint32_t used = 0;
        std::array<std::uint64_t, lowest_max> lowest;
    };
    std::vector<Source> sources_;
};

}  // namespace weir::stages
