// The pipeline of a run as it is placed, and what it does: the part `pipeline` of what a run shows of itself.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "observe/run_sampler.hpp"

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::observe {

/// "ports", "queues", "stages", "lcores", "rings", "levels", "longest_poll_s", "sinks", "recorder":
/// docs/reference/WATCH_API.md. Shares of time are those of the sample's interval.
[[nodiscard]] nlohmann::json pipeline_json(const pipeline::Pipeline& pipeline, const RunSample& sample);

}  // namespace weir::observe
