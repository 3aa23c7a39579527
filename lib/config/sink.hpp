// [[sink]]: where a run goes. What all kinds that write have in common, and the options of each kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "config/hdf5_sink.hpp"
#include "config/recorder.hpp"
#include "options/place.hpp"
#include "store/write_policy.hpp"

namespace weir::pipeline {

using options::Place;

enum class SinkKind : std::uint8_t { events, hdf5, pcapng, null };
/// What becomes of the run when a sink fails.
enum class SinkError : std::uint8_t {
    stop,      ///< it ends, with an error
    carry_on,  ///< it goes on as long as another sink takes events
};

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

/// One [[sink]].
struct SinkConfig {
    SinkKind kind = SinkKind::null;
    // Of all kinds that write.
    std::string path;  ///< with {name}, {run}, {run:06}, {date} still in it; empty: nothing is written
    std::uint32_t full_warning_seconds = 600;  ///< a warning when the disk will be full in less; 0: none
    std::string require_mount;                 ///< a file system must be mounted here; empty: not asked
    SinkError on_error = SinkError::stop;
    /// Of the kind; the first where it has none.
    std::variant<std::monostate, EventsSinkConfig, Hdf5SinkConfig, RecorderConfig> options;
    Place place;

    [[nodiscard]] bool writes() const noexcept { return kind != SinkKind::null; }
    [[nodiscard]] bool stores_events() const noexcept { return kind == SinkKind::events || kind == SinkKind::hdf5; }
    [[nodiscard]] const EventsSinkConfig& events() const { return std::get<EventsSinkConfig>(options); }
    [[nodiscard]] const Hdf5SinkConfig& hdf5() const { return std::get<Hdf5SinkConfig>(options); }
    [[nodiscard]] const RecorderConfig& recorder() const { return std::get<RecorderConfig>(options); }
    bool operator==(const SinkConfig&) const = default;
};

/// As `kind` has it.
[[nodiscard]] std::string_view sink_kind_name(SinkKind kind);

}  // namespace weir::pipeline
