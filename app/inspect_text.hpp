// `weir inspect` for people: a table of events, what is missing of them and why, and the verdict.
#pragma once

#include "store/run_reader.hpp"

namespace weir::app {

struct TableOptions {
    bool all = false;         ///< every event, not only the first ones
    bool incomplete = false;  ///< only events that are not complete
    bool quick = false;       ///< the payload is not read
};

/// Prints to standard output. Returns the exit status: 0 if nothing is wrong, else 1.
int print_text(const store::RunReader& run, const TableOptions& options);

}  // namespace weir::app
