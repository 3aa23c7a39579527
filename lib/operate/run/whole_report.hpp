// The run report, put together from what all parts of a run say of themselves.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "observe/ledger.hpp"
#include "observe/run_recorder.hpp"
#include "pipeline/pipeline.hpp"
#include "run/exchanges.hpp"
#include "run/run.hpp"
#include "run/run_sinks.hpp"

namespace weir::run {

/// The parts that say something.
struct RunParts {
    const RunOptions& options;
    const plan::Plan& plan;
    const stages::ReduceSetup& reduce;
    const pipeline::Pipeline& pipeline;
    const RunSinks& sinks;
    observe::RunRecorder* recorder = nullptr;  ///< null: packets are not recorded
    Exchanges* exchanges = nullptr;            ///< null: a replay
};

/// What can be said as soon as the ledger is there; the rest is added by whoever judges the run.
[[nodiscard]] nlohmann::json whole_report(const RunParts& run, const observe::Ledger& ledger, double seconds,
                                          const std::string& stopped_by);

}  // namespace weir::run
