// The ledger as the summary of a run says it.
#pragma once

#include <string>

#include "observe/ledger.hpp"

namespace weir::observe {

/// The account in plain words, several lines. `active_seconds`: in which packets came; 0: the whole run.
[[nodiscard]] std::string ledger_text(const Ledger& ledger, double seconds, double active_seconds = 0);

}  // namespace weir::observe
