// Which part of the pipeline is at its limit, from what its stages did in an interval: a sentence for the summary, and
// the numbers behind it. Works on plain numbers, so it can be tested without a run.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "stages/poll_counts.hpp"

namespace weir::pipeline {

/// What everybody did in an interval; or since the start, which is what an interval is a difference of.
struct Usage {
    struct Stage {
        std::string name;  ///< "rx0", "build0", "work0"
        std::uint32_t lcore = 0;
        stages::PollCounts::Values polls;
    };
    struct Lcore {
        std::uint32_t id = 0;
        stages::PollCounts::Values turns;   ///< of all its stages together
        core::TimeNs longest_pause_ns = 0;  ///< between the beginnings of two turns, once it had done some work
        core::TimeNs pause_after_ns = 0;    ///< so long after its first work that began
    };
    struct Reader {
        double waiting_s = 0;  ///< for room in the pipeline
        double pacing_s = 0;   ///< for the time of the next record
    };

    double seconds = 0;
    std::vector<Stage> stages;  ///< along the way of the data
    std::vector<Lcore> lcores;
    std::optional<std::uint64_t> sink_bytes;  ///< where there is a writer
    std::optional<Reader> reader;             ///< in a replay
    /// Packets of events that were refused for want of room, or left out on purpose to prevent that.
    std::uint64_t refused_packets = 0;
    std::uint64_t evicted_events = 0;
    /// Packets that found the receive queue of a device full; devices are asked by observe::usage_of().
    std::uint64_t missed_packets = 0;

    /// Both of the same run.
    Usage& operator+=(const Usage& other);
    Usage& operator-=(const Usage& other);
};

struct Bottleneck {
    std::string part;      ///< "writer", "work0", "memory", "queue", "reader", "pace", "sender", ...
    std::string sentence;  ///< "writer: ring full0 full in 83 % of polls; the disk took 1.20 GB/s"
};

[[nodiscard]] Bottleneck find_bottleneck(const Usage& usage);

/// The line of the summary; says where the interval is not the whole run of `seconds`.
[[nodiscard]] std::string bottleneck_text(const Usage& usage, double seconds);
/// {"part", "sentence", "seconds"}
[[nodiscard]] nlohmann::json bottleneck_json(const Usage& usage);
/// By stage: {"lcore", "busy", "blocked" (parts of its time), "polls": {"busy", "idle", "blocked": {"output", ...}}}
[[nodiscard]] nlohmann::json stages_json(const Usage& usage);

}  // namespace weir::pipeline
