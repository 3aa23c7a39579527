// Fills the ledger from a run, while it goes on or when it has ended.
#pragma once

#include "observe/ledger.hpp"
#include "pipeline/bottleneck.hpp"

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::observe {

/// Adds up the counters of all lcores and threads. For the control thread. Everything but Ledger::numbers.
[[nodiscard]] Ledger collect(const pipeline::Pipeline& pipeline);

/// What everybody has done since the start of a run, `seconds` ago, with what devices say in its ledger.
[[nodiscard]] pipeline::Usage usage_of(const pipeline::Pipeline& pipeline, const Ledger& ledger, double seconds);

}  // namespace weir::observe
