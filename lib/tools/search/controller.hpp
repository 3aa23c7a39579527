// Finds the highest load that meets each goal, with the fewest seconds of trials: MLRsearch (RFC 9971).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/goal.hpp"
#include "search/load_grid.hpp"
#include "search/trial_table.hpp"

namespace weir::search {

/// The trial that is to be done next.
struct Ask {
    int step = 0;
    double load = 0;
    double seconds = 0;
};

/// What was found for a goal. Loads in the unit of Limits.
struct Result {
    Goal goal;
    std::optional<double> lower;        ///< the relevant lower bound
    std::optional<double> upper;        ///< the relevant upper bound
    std::optional<double> conditional;  ///< conditional throughput at the lower bound
    bool regular = false;               ///< both bounds, within the width
    std::string why;                    ///< why it is not regular; a sentence without its full stop
};

struct Limits {
    double smallest = 0;       ///< load
    double largest = 0;        ///< load
    double search_s = 1200;    ///< of trials, repeated ones included; then the search ends with what it has
    int invalid_in_a_row = 3;  ///< so often invalid: the load is one that cannot be offered
};

/// Asks for trials and is told how they went; does nothing else, so that any clock, sender and receiver will do. All
/// goals share one table of trials. A goal is reached by way of two coarser ones: of twice and four times its width,
/// with fewer and shorter trials. The bounds of one are where the next begins.
class Controller {
public:
    /// Throws core::UsageError for goals or limits that cannot be.
    Controller(std::vector<Goal> goals, const Limits& limits);

    /// The next trial; none when every goal is reached, or cannot be. Repeats itself until add() or add_invalid().
    [[nodiscard]] std::optional<Ask> next();
    /// A valid trial of what next() asked for.
    void add(double loss_ratio, double effective_s);
    /// The trial said nothing about the receiver: the sender fell back, or counters did not settle. It is done again,
    /// `invalid_in_a_row` times at most. After that the load is above what can be offered, and the search stays below.
    void add_invalid(double effective_s);

    [[nodiscard]] std::vector<Result> results() const;
    [[nodiscard]] const TrialTable& table() const noexcept { return table_; }
    [[nodiscard]] double seconds() const noexcept { return seconds_; }  ///< of trials up to now
    /// The most that could be offered, if a sender could not offer what was asked for.
    [[nodiscard]] std::optional<double> ceiling() const;
    /// How much of the search is done: 0 to 1, from the widths that are left; never goes back.
    [[nodiscard]] double progress() const noexcept { return progress_; }

private:
    /// A goal or a coarser one before it.
    struct Target {
        Goal goal;
        int width = 1;  ///< steps
        int reach = 1;  ///< steps to go beyond a bound in search of the other; doubled each time
        std::optional<int> reached_from;
    };
    struct Chain {
        std::vector<Target> targets;  ///< the goal is last
    };
    enum class First { at_the_largest, at_what_was_forwarded, done };

    [[nodiscard]] std::optional<Ask> first_trials();
    [[nodiscard]] bool reached(const Target& target, const Bounds& bounds) const noexcept;
    [[nodiscard]] int nominate(Target& target, const Bounds& bounds, const Bounds* before) const;
    [[nodiscard]] std::optional<Ask> nominated();
    void note_progress();

    std::vector<Goal> goals_;
    Limits limits_;
    LoadGrid grid_;
    TrialTable table_;
    std::vector<Chain> chains_;
    std::optional<Ask> asked_;
    First first_ = First::at_the_largest;
    int hint_ = 0;  // where to begin
    int last_ = 0;  // the largest step that can be offered
    int invalid_ = 0;
    double seconds_ = 0;
    double progress_ = 0;
};

}  // namespace weir::search
