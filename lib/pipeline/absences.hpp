// Which sources sent nothing for an event that others sent something for: counted on a build lcore, with the numbers of
// the first such events.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "assemble/number_account.hpp"

namespace weir::pipeline {

class Absences {
public:
    using Range = assemble::NumberAccount::Range;
    static constexpr std::size_t ranges_max = 8;  ///< of each source

    explicit Absences(std::size_t sources) : sources_(sources) {}

    void add(std::uint32_t source, std::uint64_t number) noexcept {
        Source& absent = sources_[source];
        const std::uint64_t count = absent.count.load(std::memory_order_relaxed);
        absent.count.store(count + 1, std::memory_order_relaxed);
        if (absent.used > 0) {
            Range& last = absent.ranges[absent.used - 1];
            if (number == last.last + 1) {
                last.last = number;
                return;
            }
        }
        if (absent.used < ranges_max) absent.ranges[absent.used++] = {number, number};
    }
    /// From any thread.
    [[nodiscard]] std::uint64_t count(std::uint32_t source) const noexcept {
        return sources_[source].count.load(std::memory_order_relaxed);
    }
    /// Once the lcore has ended.
    template <class Take>
    void ranges(std::uint32_t source, Take take) const {
        for (std::uint32_t i = 0; i < sources_[source].used; ++i) take(sources_[source].ranges[i]);
    }

private:
    struct Source {
        std::atomic<std::uint64_t> count{0};
        std::uint32_t used = 0;
        std::array<Range, ranges_max> ranges;
    };
    std::vector<Source> sources_;
};

}  // namespace weir::pipeline
