// What is told of the flight recorder: the names are those of the report's `recorder`.
#pragma once

#include <array>

#include "core/counters.hpp"

namespace weir::record {

inline constexpr core::CounterFamily triggers{"recorder_triggers", "reason",
                                              "What made the flight recorder save packets."};
inline constexpr std::array recorder_counters = {
    core::CounterInfo::summed("seen",
                              "Packets that rx lcores took from ports or captures while a pcapng sink was there."),
    core::CounterInfo::summed(
        "written",
        "Of these, packets in the sink's files. With `packets = \"incomplete\"` those around triggers only."),
    core::CounterInfo::summed("left_out",
                              "Packets that are missing in the capture, not in the run: "
                              "the disk was slower than the network, so raise `sink.memory`, set `snap_bytes`, "
                              "or use a faster disk; or nothing was written any more, see `recorder.stopped`."),
    core::CounterInfo::summed("files",
                              "Files that were begun. At `files_max` nothing is saved any more: "
                              "save the files elsewhere and see why there is so much to record."),
    core::CounterInfo::summed("triggers.incomplete",
                              "Incomplete events that made the flight recorder save packets. See `events.incomplete`.")
        .in(triggers),
    core::CounterInfo::summed("triggers.drops",
                              "Bursts of lost packets, of `drops` a second and more, that did so. "
                              "See `packets.dropped` and the devices' counters.")
        .in(triggers),
    core::CounterInfo::summed("triggers.request", "Times that somebody asked: SIGUSR2, or `/weir/record` of telemetry.")
        .in(triggers),
    core::CounterInfo::summed("triggers.unsaved",
                              "Triggers that came when nothing was written any more: raise `files_max` or `bytes_max`, "
                              "or make room on the disk; `recorder.stopped` says which."),
};

}  // namespace weir::record
