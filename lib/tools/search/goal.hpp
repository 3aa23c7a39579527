// What a search for the highest load is to find: how much loss is allowed, how often, how long to look, how exactly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::search {

/// A goal of MLRsearch (RFC 9971, section 4.6). Ratios and widths are fractions, durations are seconds.
struct Goal {
    std::string name;
    double loss_ratio = 0;       ///< a trial that lost more is a high-loss trial
    double exceed_ratio = 0.5;   ///< this part of the time at a load may be spent in high-loss trials
    double width = 0.02;         ///< upper and lower bound are at most this far apart, as a fraction of the upper
    double initial_trial_s = 1;  ///< of the first, coarse steps
    double final_trial_s = 1;    ///< of the trials that decide
    double duration_sum_s = 21;  ///< so much time of trials decides about a load

    friend bool operator==(const Goal&, const Goal&) = default;
};

/// quick, ndr, pdr, rfc2544, in the order in which they are shown.
[[nodiscard]] const std::vector<Goal>& named_goals();

/// A sentence for help and reports.
[[nodiscard]] std::string_view goal_text(std::string_view name);

/// Throws core::UsageError, with the names there are, for a name that is none.
[[nodiscard]] const Goal& goal_named(std::string_view name);

/// Throws core::UsageError for ratios outside [0, 1), a width that is not in (0, 1) or below the loss ratio, durations
/// that are not above 0 or a sum below the final trial.
void check(const Goal& goal);

}  // namespace weir::search
