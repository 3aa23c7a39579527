// The counter table as text for people: docs/COUNTERS.md and `weir explain`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/counters.hpp"

namespace weir::core {

/// One of the three tables with what it counts.
struct CounterSection {
    std::string_view name;   ///< "packets", "messages", "events", as in the run report
    std::string_view title;  ///< one sentence: what is counted, and the sum that must come out
    const CounterInfo* begin;
    std::size_t count;
};

/// The three tables, in the order in which data passes them.
[[nodiscard]] std::vector<CounterSection> counter_sections();

/// All of docs/COUNTERS.md.
[[nodiscard]] std::string counters_markdown();

/// Every counter called `name` with its section in front ("events.dropped.no_room"); `name` may lack the section, or
/// the leading "dropped.". Empty if there is none.
struct NamedCounter {
    std::string full_name;
    const CounterInfo* info;
};
[[nodiscard]] std::vector<NamedCounter> find_counters(std::string_view name);

/// Up to three names of `candidates` that are close to `word`, the closest first; for "did you mean". `distance_max` is
/// in edits.
[[nodiscard]] std::vector<std::string> closest(std::string_view word, const std::vector<std::string>& candidates,
                                               std::size_t distance_max);

}  // namespace weir::core
