// [[sink]] of kind "stream": its own keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::config {

/// What becomes of an event that a consumer has no room for.
enum class OnFull : std::uint8_t {
    drop,  ///< it is counted
    wait,  ///< the run waits
};

/// kind = "stream": stream::Sink.
struct StreamSinkConfig {
    std::vector<std::string> listen;  ///< one for each consumer
    OnFull on_full = OnFull::drop;
    std::uint32_t queue = 256;                             ///< messages on their way to a consumer at most,
    std::uint64_t queue_bytes = std::uint64_t{256} << 20;  ///< and bytes of them
    std::string previews;                                  ///< where they are published; empty: nowhere
    std::uint32_t preview_every = 100;                     ///< images
    std::uint32_t preview_bin = 4;                         ///< pixels
    std::uint32_t linger_ms = 1000;
    std::uint32_t start_timeout_ms = 1000;

    bool operator==(const StreamSinkConfig&) const = default;
};

}  // namespace weir::config
