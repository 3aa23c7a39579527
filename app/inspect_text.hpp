// `weir inspect` for people: a table of events, what is missing of them and why, and the verdict.
#pragma once

#include "event_table.hpp"
#include "store/run_reader.hpp"

namespace weir::app {

/// Prints to standard output. Returns the exit status: 0 if nothing is wrong, else 1.
int print_text(const store::RunReader& run, const TableOptions& options);

}  // namespace weir::app
