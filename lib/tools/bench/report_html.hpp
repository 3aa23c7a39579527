// What a benchmark found, as one page that needs nothing else: no scripts, no other files.
#pragma once

#include <string>

#include "bench/results.hpp"

namespace weir::bench {

[[nodiscard]] std::string report_html(const Results& results);

}  // namespace weir::bench
