// When a run ends by itself: what the command line said of it, and what can go wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/pipeline.hpp"
#include "run/run.hpp"

namespace weir::run {

class StopCondition {
public:
    explicit StopCondition(const RunOptions& options) : options_(options) {}

    /// Why the run is to take no more input from now on; nothing: it goes on. For the control thread, again and again;
    /// `seconds` since the start.
    [[nodiscard]] std::optional<std::string> ask(const pipeline::Pipeline& pipeline, bool sink_failed, double seconds);

private:
    const RunOptions& options_;
    std::uint64_t idle_packets_ = 0;
    double idle_since_s_ = 0;
};

}  // namespace weir::run
