// With event = "count" a queue pair's messages are numbered from the first one. Where several sources make an event,
// their numbers meet only if it is known which one that is.
#pragma once

#include "config/run_config.hpp"

namespace weir::config {

/// Whether messages of `stream` have the same numbers as those of the other sources even if its first ones are lost.
[[nodiscard]] inline bool counts_are_known(const RunConfig& run, const StreamConfig& stream) {
    // A node that has one source has only a part of them.
    const bool alone = run.sources.size() == 1 && run.node.empty();
    return stream.event != EventBy::count || alone || !stream.roce.psn.empty() || stream.exchange != Exchange::none;
}

}  // namespace weir::config
