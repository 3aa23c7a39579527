// The loads that a search may measure: so many steps between the smallest and the largest, equal in the logarithm.
#pragma once

#include <span>

namespace weir::search {

struct Goal;

/// Whole steps add and halve without error, and trials of different goals meet at the same loads.
class LoadGrid {
public:
    /// Throws core::UsageError unless 0 < smallest < largest. A step is an eighth of the narrowest width.
    LoadGrid(double smallest, double largest, std::span<const Goal> goals);

    [[nodiscard]] int last() const noexcept { return last_; }  ///< the step of the largest load; the smallest is 0
    [[nodiscard]] double load(int step) const noexcept;
    /// The largest step whose load is not above this; within 0 to last().
    [[nodiscard]] int step_below(double load) const noexcept;
    /// So many steps are not wider than this fraction of the upper load; at least 1.
    [[nodiscard]] int steps_within(double width) const noexcept;

private:
    double smallest_;
    double largest_;
    double log_step_ = 0;
    int last_ = 0;
};

}  // namespace weir::search
