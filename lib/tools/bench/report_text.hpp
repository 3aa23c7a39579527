// What a benchmark found, for a terminal.
#pragma once

#include <string>

#include "bench/results.hpp"
#include "bench/table.hpp"

namespace weir::bench {

/// Lines of `width` characters at most, as long as no name is longer than that.
[[nodiscard]] std::string report_text(const Results& results, std::size_t width = terminal_width);

/// "1180 of 1200 trials were valid."
[[nodiscard]] std::string validity_text(const Results& results);
/// Said before any number where most trials are invalid, with the most frequent reason; otherwise empty.
[[nodiscard]] std::string unusable_text(const Results& results);

/// The goals that occur in the results, each with what it demands: "ndr: no loss in ...".
[[nodiscard]] std::vector<std::string> goal_texts(const Results& results);

}  // namespace weir::bench
