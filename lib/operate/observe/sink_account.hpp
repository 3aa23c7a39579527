// What became of events in the sinks of a run, all together.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/run_config.hpp"

namespace weir::stages {
class SinkThread;
}  // namespace weir::stages

namespace weir::observe {

/// Those of the configuration that store events, in order: one for each thread.
[[nodiscard]] std::vector<const config::SinkConfig*> event_sinks(const config::RunConfig& config);

/// Of the sinks that count, or of all if none does: the events that are in every one of them, and those that one of
/// them lost or left out. A sink counts if it took part until the end, or the run may not do without it (`on_error`),
/// and if it was not told to leave out what it cannot take in time (`on_full`).
struct SinkAccount {
    std::uint64_t written = 0;
    std::uint64_t lost = 0;
    std::uint64_t dropped = 0;
    std::uint64_t interrupted = 0;
    std::uint64_t synced = 0;
};
[[nodiscard]] SinkAccount account_sinks(const config::RunConfig& config,
                                        const std::vector<std::unique_ptr<stages::SinkThread>>& threads);

}  // namespace weir::observe
