#include "search/controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace weir::search {
namespace {

constexpr int coarser_targets = 2;

/// The goal (`before` = 0) or one that is reached before it: wider, with shorter trials and fewer of them.
Goal coarser(const Goal& goal, int before) {
    const double part = 1 - static_cast<double>(before) / coarser_targets;  // 0: as at the beginning; 1: the goal
    const auto between = [part](double begin, double end) { return begin * std::pow(end / begin, part); };
    Goal wider = goal;
    wider.width = std::min(0.5, goal.width * (1 << before));
    wider.final_trial_s = between(goal.initial_trial_s, goal.final_trial_s);
    wider.duration_sum_s = std::max(wider.final_trial_s, between(goal.initial_trial_s, goal.duration_sum_s));
    return wider;
}

/// Throws before anything is made of goals that cannot be.
const std::vector<Goal>& checked(const std::vector<Goal>& goals) {
    core::require(!goals.empty(), "a search needs a goal");
    for (const Goal& goal : goals) check(goal);
    return goals;
}

bool between(const std::optional<int>& step, const Bounds& bounds) {
    return step && (!bounds.lower || *step > *bounds.lower) && (!bounds.upper || *step < *bounds.upper);
}

}  // namespace

Controller::Controller(std::vector<Goal> goals, const Limits& limits)
    : goals_(std::move(goals)),
      limits_(limits),
      grid_(limits.smallest, limits.largest, checked(goals_)),
      last_(grid_.last()) {
    for (const Goal& goal : goals_) {
        Chain chain;
        for (int before = coarser_targets; before >= 0; --before) {
            const Goal target = coarser(goal, before);
            const int width = grid_.steps_within(target.width);
            chain.targets.push_back({.goal = target, .width = width, .reach = width, .reached_from = {}});
        }
        chains_.push_back(std::move(chain));
    }
}

std::optional<Ask> Controller::next() {
    if (!asked_ && seconds_ < limits_.search_s && last_ >= 0) {
        asked_ = first_ != First::done ? first_trials() : nominated();
    }
    return asked_;
}

std::optional<Ask> Controller::first_trials() {
    double seconds = 0;
    for (const Goal& goal : goals_) seconds = std::max(seconds, goal.initial_trial_s);
    const int step = first_ == First::at_the_largest ? last_ : hint_;
    return Ask{step, grid_.load(step), seconds};
}

void Controller::add(double loss_ratio, double effective_s) {
    if (!asked_) return;
    const Ask asked = *asked_;
    asked_.reset();
    invalid_ = 0;
    seconds_ += effective_s;
    table_.add(asked.step, {asked.load, asked.seconds, effective_s, loss_ratio});
    if (first_ == First::at_the_largest) {
        // What came through at most is a good guess of what comes through without loss.
        const double allowed = std::ranges::min(goals_, {}, &Goal::loss_ratio).loss_ratio;
        hint_ = std::min(last_, grid_.step_below(asked.load * (1 - loss_ratio) / (1 - allowed)));
        first_ = loss_ratio > allowed ? First::at_what_was_forwarded : First::done;
    } else if (first_ == First::at_what_was_forwarded) {
        first_ = First::done;
    }
    note_progress();
}

void Controller::add_invalid(double effective_s) {
    if (!asked_) return;
    seconds_ += effective_s;
    if (++invalid_ < limits_.invalid_in_a_row) return;
    invalid_ = 0;
    // Well below, and further each time, rather than to feel the way down in the smallest steps.
    int width = 1;
    for (const Chain& chain : chains_) width = std::max(width, chain.targets.front().width);
    last_ = asked_->step == 0 ? -1 : std::max(0, asked_->step - width);
    hint_ = std::min(hint_, std::max(0, last_));
    asked_.reset();
}

bool Controller::reached(const Target& target, const Bounds& bounds) const noexcept {
    if (bounds.lower && *bounds.lower >= last_) return true;
    if (bounds.upper && *bounds.upper == 0) return true;
    return bounds.lower && bounds.upper && *bounds.upper - *bounds.lower <= target.width;
}

int Controller::nominate(Target& target, const Bounds& bounds, const Bounds* before) const {
    // Where the coarser target's bounds are comes first: most often they hold.
    if (before != nullptr && between(before->lower, bounds)) return *before->lower;
    if (before != nullptr && between(before->upper, bounds)) return *before->upper;
    if (bounds.lower && bounds.upper) return (*bounds.lower + *bounds.upper) / 2;
    if (!bounds.lower && !bounds.upper) return hint_;
    const int from = bounds.lower ? *bounds.lower : *bounds.upper;
    if (target.reached_from != from) {
        if (target.reached_from) target.reach *= 2;
        target.reached_from = from;
    }
    return bounds.lower ? from + target.reach : from - target.reach;
}

std::optional<Ask> Controller::nominated() {
    std::optional<Ask> best;
    std::size_t best_level = 0;
    for (Chain& chain : chains_) {
        const Bounds final_bounds = table_.bounds(chain.targets.back().goal);
        if (reached(chain.targets.back(), final_bounds)) continue;
        Bounds before;
        for (std::size_t level = 0; level < chain.targets.size(); ++level) {
            Target& target = chain.targets[level];
            const Bounds bounds = table_.bounds(target.goal);
            if (reached(target, bounds)) {
                before = bounds;
                continue;
            }
            const int step = std::clamp(nominate(target, bounds, level > 0 ? &before : nullptr), 0, last_);
            // All goals' coarse targets first, because their trials narrow the others' intervals as well.
            if (!best || level < best_level || (level == best_level && target.goal.final_trial_s < best->seconds)) {
                best = Ask{step, grid_.load(step), target.goal.final_trial_s};
                best_level = level;
            }
            break;
        }
    }
    return best;
}

void Controller::note_progress() {
    std::size_t done = 0;
    std::size_t all = 0;
    for (const Chain& chain : chains_) {
        all += chain.targets.size();
        const bool whole = reached(chain.targets.back(), table_.bounds(chain.targets.back().goal));
        for (const Target& target : chain.targets) done += whole || reached(target, table_.bounds(target.goal)) ? 1 : 0;
    }
    progress_ = std::max(progress_, static_cast<double>(done) / static_cast<double>(all));
}

std::optional<double> Controller::ceiling() const {
    if (last_ == grid_.last()) return std::nullopt;
    return last_ < 0 ? 0.0 : grid_.load(last_);
}

std::vector<Result> Controller::results() const {
    std::vector<Result> results;
    for (std::size_t i = 0; i < goals_.size(); ++i) {
        const Goal& goal = goals_[i];
        const Bounds bounds = table_.bounds(goal);
        Result result{.goal = goal, .lower = {}, .upper = {}, .conditional = {}, .regular = false, .why = ""};
        if (bounds.upper) result.upper = grid_.load(*bounds.upper);
        if (bounds.lower) {
            result.lower = grid_.load(*bounds.lower);
            result.conditional = table_.at(*bounds.lower)->conditional_throughput(goal);
        }
        const int width = chains_[i].targets.back().width;
        result.regular = bounds.lower && bounds.upper && *bounds.upper - *bounds.lower <= width;
        if (!result.regular) {
            if (last_ < 0)
                result.why = "even the smallest load could not be offered";
            else if (bounds.upper && *bounds.upper == 0)
                result.why = "there is loss at the smallest load";
            else if (bounds.lower && *bounds.lower >= last_)
                result.why = ceiling() ? "no more could be offered" : "there is no loss at the largest load";
            else if (seconds_ >= limits_.search_s)
                result.why = fmt::format("the search ended after {:g} s", limits_.search_s);
            else
                result.why = "the search was not finished";
        }
        results.push_back(std::move(result));
    }
    return results;
}

}  // namespace weir::search
