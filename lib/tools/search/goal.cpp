#include "search/goal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"

namespace weir::search {

const std::vector<Goal>& named_goals() {
    // ndr and pdr are those of FD.io's CSIT; quick is for machines that pause now and then: many short trials.
    static const std::vector<Goal> goals{
        {.name = "quick",
         .loss_ratio = 0,
         .exceed_ratio = 0.5,
         .width = 0.02,
         .initial_trial_s = 0.5,
         .final_trial_s = 0.5,
         .duration_sum_s = 2.5},
        {.name = "ndr",
         .loss_ratio = 0,
         .exceed_ratio = 0.5,
         .width = 0.005,
         .initial_trial_s = 1,
         .final_trial_s = 1,
         .duration_sum_s = 21},
        {.name = "pdr",
         .loss_ratio = 0.005,
         .exceed_ratio = 0.5,
         .width = 0.005,
         .initial_trial_s = 1,
         .final_trial_s = 1,
         .duration_sum_s = 21},
        {.name = "rfc2544",
         .loss_ratio = 0,
         .exceed_ratio = 0,
         .width = 0.005,
         .initial_trial_s = 1,
         .final_trial_s = 60,
         .duration_sum_s = 60},
    };
    return goals;
}

std::string_view goal_text(std::string_view name) {
    if (name == "quick") return "no loss in at least half of five trials of half a second; bounds within 2 %";
    if (name == "ndr") return "no loss in at least half of 21 trials of a second; bounds within 0.5 % (FD.io CSIT)";
    if (name == "pdr") return "at most 0.5 % lost in at least half of 21 trials of a second; within 0.5 % (FD.io CSIT)";
    if (name == "rfc2544") return "no loss in a trial of a minute; bounds within 0.5 % (RFC 2544, 26.1)";
    return "";
}

const Goal& goal_named(std::string_view name) {
    const auto found = std::ranges::find(named_goals(), name, &Goal::name);
    if (found != named_goals().end()) return *found;
    std::vector<std::string> names;
    for (const Goal& goal : named_goals()) names.push_back(goal.name);
    throw core::UsageError(fmt::format("there is no goal \"{}\": {}", name, fmt::join(names, ", ")));
}

void check(const Goal& goal) {
    const auto must = [&goal](bool holds, std::string_view what) {
        core::require(holds, fmt::format("goal {}: {}", goal.name, what));
    };
    must(goal.loss_ratio >= 0 && goal.loss_ratio < 1, "the loss ratio must be at least 0 and below 1");
    must(goal.exceed_ratio >= 0 && goal.exceed_ratio < 1, "the exceed ratio must be at least 0 and below 1");
    must(goal.width > 0 && goal.width < 1, "the width must be above 0 and below 1");
    // Otherwise an upper bound that forwards more than the lower one would be a result.
    must(goal.width >= goal.loss_ratio, "the width must not be below the loss ratio");
    must(goal.initial_trial_s > 0 && goal.final_trial_s > 0, "trials must take longer than 0 s");
    must(goal.initial_trial_s <= goal.final_trial_s, "the first trials must not be longer than the final ones");
    must(goal.duration_sum_s >= goal.final_trial_s, "the sum of durations must not be below one final trial");
}

}  // namespace weir::search
