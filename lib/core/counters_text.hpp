// The counter table as text for people: docs/reference/COUNTERS.md and `weir explain`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/counters.hpp"

namespace weir::core {

/// A table with what it counts.
struct CounterSection {
    std::string_view name;   ///< "packets", "messages", "events", as in the run report; "device", "rings", "levels"
    std::string_view title;  ///< one sentence: what is counted, and the sum that must come out
    const CounterInfo* begin;
    std::size_t count;
};

/// All tables: those of the ledger in the order in which data passes them, then outside_sections().
[[nodiscard]] std::vector<CounterSection> counter_sections();

/// What reducers count, a section for each kind: "reduce.jungfrau".
[[nodiscard]] std::vector<CounterSection> reduce_sections();

/// What is counted or measured beside the ledger: devices, rings, levels.
[[nodiscard]] std::vector<CounterSection> outside_sections();

/// The page and section that say how to find the cause: "docs/guides/LOSSES.md#late". `full_name` has its section.
[[nodiscard]] std::string counter_page(std::string_view full_name);

/// All of docs/reference/COUNTERS.md.
[[nodiscard]] std::string counters_markdown();

/// Every counter called `name` with its section in front ("events.dropped.no_room"); `name` may lack the section, or
/// the leading "dropped.", or have the number of one of several rings ("events0"). `*` stands for anything, so
/// "dropped.*" finds many. Empty if there is none.
struct NamedCounter {
    std::string full_name;
    const CounterInfo* info;
};
[[nodiscard]] std::vector<NamedCounter> find_counters(std::string_view name);

/// Up to three names of `candidates` that are close to `word`, the closest first; for "did you mean". `distance_max` is
/// in edits.
[[nodiscard]] std::vector<std::string> closest(std::string_view word, const std::vector<std::string>& candidates,
                                               std::size_t distance_max);

/// The same for names of several words with dots and underscores between them: by the words that both have, misspelt or
/// not and in any order, then by edits. A beginning like "packets." may be missing from `name`. Empty if nothing is
/// similar.
[[nodiscard]] std::vector<std::string> similar_names(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace weir::core
