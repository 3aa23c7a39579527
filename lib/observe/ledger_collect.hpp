// Fills the ledger from a run, while it goes on or when it has ended.
#pragma once

#include "observe/ledger.hpp"

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::observe {

/// Adds up the counters of all lcores and threads. For the control thread. Everything but Ledger::numbers.
[[nodiscard]] Ledger collect(const pipeline::Pipeline& pipeline);

}  // namespace weir::observe
