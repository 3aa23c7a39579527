#include "run/lcore_progress.hpp"

#include <algorithm>

namespace weir::run {

void LcoreProgress::look(std::span<const pipeline::Usage::Lcore> lcores, double seconds) {
    // Between two runs none polls.
    std::erase_if(lcores_, [&](const Seen& seen) {
        return std::ranges::find(lcores, seen.id, &pipeline::Usage::Lcore::id) == lcores.end();
    });
    for (const pipeline::Usage::Lcore& lcore : lcores) {
        const std::uint64_t turns = lcore.turns.polls();
        const auto seen = std::ranges::find(lcores_, lcore.id, &Seen::id);
        if (seen == lcores_.end())
            lcores_.push_back({lcore.id, turns, seconds});
        else if (seen->turns != turns)
            *seen = {lcore.id, turns, seconds};
    }
}

std::optional<std::uint32_t> LcoreProgress::stuck(double seconds, double limit_s) const noexcept {
    const auto found =
        std::ranges::find_if(lcores_, [&](const Seen& seen) { return seconds - seen.since_s > limit_s; });
    return found == lcores_.end() ? std::nullopt : std::optional(found->id);
}

}  // namespace weir::run
