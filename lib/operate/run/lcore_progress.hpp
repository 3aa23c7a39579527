// Whether all lcores poll, from the counts of their turns. Works on plain numbers, so it can be tested without a run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/bottleneck.hpp"

namespace weir::run {

class LcoreProgress {
public:
    /// What each lcore has done since the start, as of `seconds`. Sleeping between polls is progress, one poll that
    /// does not come back is none.
    void look(std::span<const pipeline::Usage::Lcore> lcores, double seconds);
    /// An lcore that has not ended a turn in the last `limit_s`; nothing: all have.
    [[nodiscard]] std::optional<std::uint32_t> stuck(double seconds, double limit_s) const noexcept;

private:
    struct Seen {
        std::uint32_t id = 0;
        std::uint64_t turns = 0;
        double since_s = 0;
    };
    std::vector<Seen> lcores_;
};

}  // namespace weir::run
