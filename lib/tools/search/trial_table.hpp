// All trials of a search, shared by its goals.
#pragma once

#include <map>
#include <optional>

#include "search/load_stats.hpp"

namespace weir::search {

/// Loads as steps of a grid (load_grid.hpp).
struct Bounds {
    std::optional<int> lower;  ///< the largest lower bound strictly below `upper`
    std::optional<int> upper;  ///< the smallest upper bound
};

class TrialTable {
public:
    void add(int step, const Trial& trial) { loads_[step].add(trial); }
    /// Relevant bounds (RFC 9971, sections 4.8.1 and 4.8.2). Without an upper bound the largest lower bound there is.
    [[nodiscard]] Bounds bounds(const Goal& goal) const;
    /// nullptr for a load without trials.
    [[nodiscard]] const LoadStats* at(int step) const;
    [[nodiscard]] const std::map<int, LoadStats>& loads() const noexcept { return loads_; }

private:
    std::map<int, LoadStats> loads_;
};

}  // namespace weir::search
