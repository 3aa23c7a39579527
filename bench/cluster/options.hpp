// What a run of the event building benchmark is to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cluster/settings.hpp"

namespace weir::cluster::bench {

enum class Mode : std::uint8_t {
    build,     ///< the event-building core
    n_to_n,    ///< every node sends to the one after it, and on, without events
    lockstep,  ///< the same, and all wait for each other after every part
};

struct Options {
    Mode mode = Mode::build;
    Settings settings;  ///< mode build
    std::uint64_t part_bytes = 1U << 20U;
    /// Payloads that a node is ready to take at a time. 0: credits * parallel where builders pull, 32 where readouts
    /// push.
    std::uint32_t receives = 0;
    std::uint64_t warm_blocks = 0;      ///< built before the measurement
    std::uint64_t measured_blocks = 0;  ///< and during it
    /// Blocks that a readout node holds. 0: what all credits need, and a quarter more.
    std::uint64_t held_blocks = 0;
    std::optional<NodeId> slow;  ///< a node that is slow to write what it built
    std::uint64_t slow_us = 0;   ///< for a block, or in lockstep for a part
    /// What a builder waits, on average, between the first blocks that it writes, as many as it has credits. All begin
    /// at the same moment, and it takes many rounds until that is forgotten by itself.
    std::uint64_t apart_us = 0;
    std::uint64_t clocks_apart_us = 0;  ///< Settings::slot_ns: between the clocks of two nodes, at most
    bool drain = false;                 ///< build everything that has begun, and check it, instead of stopping at once
};

/// Throws std::invalid_argument.
[[nodiscard]] Options parse(int count, char** words, std::uint16_t nodes);
[[nodiscard]] std::string usage();

}  // namespace weir::cluster::bench
