// What a live run asks of its host before it starts: one that would surely lose data does not start unasked.
#pragma once

#include <vector>

#include "config/run_config.hpp"
#include "plan/plan.hpp"
#include "stages/rx/stream_runtime.hpp"
#include "stages/work_stage.hpp"

namespace weir::run {

/// Throws core::RunError with every reason and what mends it; with `force` it says them as warnings.
void check_host(const config::RunConfig& config, const std::vector<stages::StreamRuntime>& streams,
                const std::vector<stages::SourceGeometry>& geometry, const plan::Plan& plan, bool force);

}  // namespace weir::run
