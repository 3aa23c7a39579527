// How full a run's buffers, rings, event memory and disk are at this moment: what the progress line and telemetry show.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace weir::pipeline {

/// Something bounded, and how much of it is taken.
struct Level {
    std::uint64_t used = 0;
    std::uint64_t size = 0;
    std::uint64_t highest = 0;  ///< so far; of several lcores, the sum of what each had at most

    [[nodiscard]] double fraction() const noexcept {
        return size == 0 ? 0 : static_cast<double>(used) / static_cast<double>(size);
    }
};

struct Levels {
    struct Ring {
        std::string name;
        Level level;
        std::uint64_t times_full = 0;  ///< pushes that did not find room for all they brought
        std::uint64_t dropped = 0;     ///< elements that were given up for that
        // Its ends: "rx0", "build1", "work0", "sink0", "reader".
        std::string from{};
        std::string to{};
    };

    Level buffers;  ///< packet buffers out of the pool
    Level memory;   ///< bytes of packet buffers and copies that messages hold, of those that `memory` allows them
    Level open;     ///< events
    Level queued;   ///< events on their way to the sink
    Level writer;   ///< output buffers that wait for the disk
    std::vector<Ring> rings;

    /// The ring that is closest to being full, or nullptr if all are empty. Rings that are full when idle do not count.
    [[nodiscard]] const Ring* fullest() const noexcept;
};

/// "buffers", "memory", "open", "queued", "writer": {"used", "size", "highest"}; "rings" by name: the same, and
/// "times_full", "dropped".
[[nodiscard]] nlohmann::json levels_json(const Levels& levels);

}  // namespace weir::pipeline
