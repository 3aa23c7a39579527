// [[sink]] of kind "events": its own keys.
#pragma once

#include <cstdint>

#include "store/write_policy.hpp"

namespace weir::config {

using store::SyncPolicy;
using store::Toggle;

/// kind = "events": store::RunWriter.
struct EventsSinkConfig {
    std::uint64_t segment_bytes = std::uint64_t{1} << 30;  ///< a new segment file begins after this many
    std::uint32_t segment_seconds = 0;                     ///< a segment has no events further apart; 0: any
    std::uint64_t sync_bytes = std::uint64_t{64} << 20;    ///< data is synced to disk after this many,
    std::uint32_t sync_ms = 1000;                          ///< and at least this often
    SyncPolicy sync = SyncPolicy::interval;
    Toggle direct = Toggle::off;                          ///< past the page cache
    Toggle uring = Toggle::automatic;                     ///< automatic: where `direct` is
    std::uint32_t queue_depth = 8;                        ///< writes under way at once, with io_uring
    std::uint32_t files = 1;                              ///< segments written at the same time
    std::uint64_t preallocate = std::uint64_t{64} << 20;  ///< direct: space is set aside in steps of this; 0: not

    bool operator==(const EventsSinkConfig&) const = default;
};

}  // namespace weir::config
