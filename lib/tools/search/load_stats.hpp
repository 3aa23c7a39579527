// What the trials at one load say about it: RFC 9971, appendices A (load classification) and B (conditional
// throughput).
#pragma once

#include <vector>

namespace weir::search {

struct Goal;

/// A trial that was valid: the sender sent what it should, the counters settled.
struct Trial {
    double load = 0;         ///< intended, in any unit, the same for all trials of a search
    double seconds = 0;      ///< as it was asked for: decides whether the trial is full-length
    double effective_s = 0;  ///< as it took, with waiting and draining: what durations are summed up from
    double loss_ratio = 0;   ///< 0 to 1
};

enum class LoadClass { lower_bound, upper_bound, undecided };

/// The trials at one load.
class LoadStats {
public:
    void add(const Trial& trial);

    [[nodiscard]] LoadClass classify(const Goal& goal) const noexcept;
    /// The load times the forwarding ratio that the goal relies on; of a load without a full-length trial: 0.
    [[nodiscard]] double conditional_throughput(const Goal& goal) const noexcept;

    [[nodiscard]] const std::vector<Trial>& trials() const noexcept { return trials_; }

private:
    std::vector<Trial> trials_;  // by rising loss
};

}  // namespace weir::search
