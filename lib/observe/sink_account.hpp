// What became of events in the sinks of a run, all together.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/run_config.hpp"

namespace weir::pipeline {

class SinkThread;

/// Those of the configuration that store events, in order: one for each thread.
[[nodiscard]] std::vector<const SinkConfig*> event_sinks(const RunConfig& config);

/// Of the sinks that took part until the end, or of all if none did: the events that are in every one of them, and
/// those that one of them lost. `on_error = "continue"` is what lets a run do without a sink.
struct SinkAccount {
    std::uint64_t written = 0;
    std::uint64_t lost = 0;
    std::uint64_t synced = 0;
};
[[nodiscard]] SinkAccount account_sinks(const RunConfig& config,
                                        const std::vector<std::unique_ptr<SinkThread>>& threads);

}  // namespace weir::pipeline
