#include "search/load_grid.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "search/goal.hpp"

namespace weir::search {

LoadGrid::LoadGrid(double smallest, double largest, std::span<const Goal> goals)
    : smallest_(smallest), largest_(largest) {
    core::require(smallest > 0 && smallest < largest, "a search needs a smallest load above 0 and below the largest");
    double narrowest = 0.5;
    for (const Goal& goal : goals) narrowest = std::min(narrowest, goal.width);
    const double all = std::log(largest / smallest);
    // A hair less than an eighth, so that eight steps are within the width in spite of rounding.
    last_ = static_cast<int>(std::ceil(all / (-std::log1p(-narrowest) / 8.0001)));
    log_step_ = all / last_;
}

double LoadGrid::load(int step) const noexcept {
    return step == last_ ? largest_ : smallest_ * std::exp(step * log_step_);
}

int LoadGrid::step_below(double load) const noexcept {
    if (!(load > smallest_)) return 0;
    if (load >= largest_) return last_;
    auto step = static_cast<int>(std::log(load / smallest_) / log_step_);
    if (step < last_ && this->load(step + 1) <= load) ++step;
    if (step > 0 && this->load(step) > load) --step;
    return std::clamp(step, 0, last_);
}

int LoadGrid::steps_within(double width) const noexcept {
    return std::max(1, static_cast<int>(-std::log1p(-width) / log_step_));
}

}  // namespace weir::search
