#include "search/trial_table.hpp"

namespace weir::search {

Bounds TrialTable::bounds(const Goal& goal) const {
    Bounds found;
    for (const auto& [step, stats] : loads_) {
        const LoadClass is = stats.classify(goal);
        if (is == LoadClass::lower_bound) found.lower = step;
        if (is == LoadClass::upper_bound) {
            found.upper = step;
            break;
        }
    }
    return found;
}

const LoadStats* TrialTable::at(int step) const {
    const auto found = loads_.find(step);
    return found == loads_.end() ? nullptr : &found->second;
}

}  // namespace weir::search
