// Which PSNs of a connection have been taken before its peer turned out to begin earlier: they come again. A few
// stretches are enough: each is a beginning that was lost and followed by one that was lost, too.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "roce/psn.hpp"

namespace weir::roce {

class TakenPsns {
public:
    [[nodiscard]] bool has(Psn psn) const noexcept {
        return std::any_of(ranges_.begin(), ranges_.begin() + count_,
                           [&](const Range& range) { return psn >= range.from && psn < range.to; });
    }
    /// Adds [from, to). False, and nothing is added, if that is one stretch too many.
    [[nodiscard]] bool add(Psn from, Psn to) noexcept {
        if (from >= to) return true;
        Range all{from, to};
        const auto touches = [&](const Range& range) { return range.from <= all.to && all.from <= range.to; };
        const auto end = ranges_.begin() + count_;
        const auto touched = std::partition(ranges_.begin(), end, [&](const Range& range) { return !touches(range); });
        if (touched == ranges_.end()) return false;
        std::for_each(touched, end, [&](const Range& range) {
            all.from = std::min(all.from, range.from);
            all.to = std::max(all.to, range.to);
        });
        *touched = all;
        count_ = static_cast<std::uint32_t>(touched - ranges_.begin()) + 1;
        return true;
    }

private:
    struct Range {
        Psn from = 0;
        Psn to = 0;
    };
    std::array<Range, 4> ranges_{};  ///< apart from each other, in any order
    std::uint32_t count_ = 0;
};

}  // namespace weir::roce
