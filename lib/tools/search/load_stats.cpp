#include "search/load_stats.hpp"

#include <algorithm>

#include "search/goal.hpp"

namespace weir::search {
namespace {

/// Seconds of trials, by length and by loss.
struct Sums {
    double full_high = 0;
    double full_low = 0;
    double short_high = 0;
    double short_low = 0;

    Sums(const std::vector<Trial>& trials, const Goal& goal) noexcept {
        for (const Trial& trial : trials) {
            const bool full = trial.seconds >= goal.final_trial_s;
            const bool high = trial.loss_ratio > goal.loss_ratio;
            double& sum = full ? (high ? full_high : full_low) : (high ? short_high : short_low);
            sum += trial.effective_s;
        }
    }
};

}  // namespace

void LoadStats::add(const Trial& trial) {
    trials_.insert(std::ranges::upper_bound(trials_, trial.loss_ratio, {}, &Trial::loss_ratio), trial);
}

LoadClass LoadStats::classify(const Goal& goal) const noexcept {
    const Sums sums(trials_, goal);
    // Short trials cannot prove a load good; those with loss count against it as far as short ones without do not
    // balance them.
    const double balancing = sums.short_low * goal.exceed_ratio / (1 - goal.exceed_ratio);
    const double high = sums.full_high + std::max(0.0, sums.short_high - balancing);
    const double whole = std::max(sums.full_low + high, goal.duration_sum_s);
    const double allowed = whole * goal.exceed_ratio;
    const bool if_the_rest_is_good = high <= allowed;
    const bool if_the_rest_is_bad = whole - sums.full_low <= allowed;
    if (if_the_rest_is_good != if_the_rest_is_bad) return LoadClass::undecided;
    return if_the_rest_is_good ? LoadClass::lower_bound : LoadClass::upper_bound;
}

double LoadStats::conditional_throughput(const Goal& goal) const noexcept {
    const Sums sums(trials_, goal);
    double remaining = std::max(goal.duration_sum_s, sums.full_low + sums.full_high) * (1 - goal.exceed_ratio);
    double loss_ratio = 1;
    bool first = true;
    for (const Trial& trial : trials_) {
        if (trial.seconds < goal.final_trial_s) continue;
        if (!first && remaining <= 0) break;
        first = false;
        loss_ratio = trial.loss_ratio;
        remaining -= trial.effective_s;
    }
    if (remaining > 0) loss_ratio = 1;  // too little was measured to rely on
    return trials_.empty() ? 0 : trials_.front().load * (1 - loss_ratio);
}

}  // namespace weir::search
