// The rows of a report: one for each measurement, its repeats merged. The terminal and the page show the same cells.
#pragma once

#include "bench/point_group.hpp"
#include "bench/table.hpp"

namespace weir::bench {

/// Whether it is one load and not a search.
[[nodiscard]] bool is_at_a_load(const PointKey& key);

/// The columns that say what was measured, and what stands in them.
[[nodiscard]] std::vector<Column> key_columns();
[[nodiscard]] std::vector<std::string> key_cells(const PointKey& key);

/// Searches. Columns have perftest's names where they mean the same. A rate that was not found is a word.
[[nodiscard]] Table result_table(const std::vector<PointGroup>& groups);

/// "≥ " before a rate that is a lower limit only; else empty.
[[nodiscard]] std::string at_least_mark(const PointGroup& group);
/// What that means, if any of the searches has it; else empty.
[[nodiscard]] std::string at_least_text(const std::vector<PointGroup>& groups);

/// What was lost at given loads: of each that no search chose.
[[nodiscard]] Table load_table(const std::vector<PointGroup>& groups);

/// The longest bursts without loss, where they were asked for.
[[nodiscard]] Table burst_table(const std::vector<PointGroup>& groups);

/// Every trial of every repeat, invalid ones with the reason in place of what they would say.
[[nodiscard]] Table trial_table(const std::vector<PointGroup>& groups);

}  // namespace weir::bench
