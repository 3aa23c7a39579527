// How a run is written, as a configuration says it and RunWriter does it.
#pragma once

#include <cstdint>

namespace weir::store {

/// Whether to use what not every system has.
enum class Toggle : std::uint8_t {
    automatic,  ///< where the system has it
    on,         ///< or the run does not start
    off,
};

/// When data is synced.
enum class SyncPolicy : std::uint8_t {
    interval,  ///< by sync_bytes and sync_interval_ns, and as `segment`
    segment,   ///< when a segment is full, and as `end`
    end,       ///< when the run ends; of many segments the oldest before that
    never,     ///< not the events: what is called written is with the kernel, and nothing is called synced
};

}  // namespace weir::store
