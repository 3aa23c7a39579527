// What is told of rings and levels while a run goes on; how full they are is measured in pipeline/levels.cpp.
#pragma once

#include <array>

#include "core/counters.hpp"

namespace weir::pipeline {

inline constexpr std::array ring_counters = {
    core::CounterInfo::highest(
        "capture",
        "Packets between the capture reader and an rx lcore. "
        "Full in a replay means only that the reader is faster than the pipeline, which is usual: it waits, "
        "or drops with `--drop`."),
    core::CounterInfo::highest("steer",
                               "Packets that one rx lcore hands to another, which owns their stream. Close to full, "
                               "packets are about to be lost as `dropped.ring_full.steer`: that lcore is overloaded."),
    core::CounterInfo::highest("descriptors",
                               "What rx lcores tell the event builder. It has room for every message there can be; "
                               "if it fills up, the build lcore is starved on its CPU."),
    core::CounterInfo::highest(
        "commands", "What the event builder tells an rx lcore. It fills up only if that lcore is starved on its CPU."),
    core::CounterInfo::highest("events",
                               "Closed events on their way to a worker. If it fills up, "
                               "the reducer or the disk is slower than the detector: "
                               "look at `rings.full` to tell which."),
    core::CounterInfo::highest("released",
                               "Events that a worker is done with, on their way back to the builder. "
                               "Fills up only if the build lcore is starved."),
    core::CounterInfo::highest(
        "recycle",
        "Messages on their way back to the rx lcore that owns their buffers. Fills up only if that lcore is starved."),
    core::CounterInfo::highest("full",
                               "Output buffers that wait for the disk. "
                               "Full means that the disk is slower than what the workers write: a faster disk, "
                               "or a reducer that makes less of it."),
    core::CounterInfo::highest(
        "free",
        "Output buffers that a worker can fill. Full when nothing waits for the disk; empty when everything does."),
};

inline constexpr std::array level_counters = {
    core::CounterInfo::highest("buffers",
                               "Packet buffers that are not in the pool: held by messages, in rings, "
                               "or given to the device. The last of them gone, packets are lost."),
    core::CounterInfo::highest(
        "memory",
        "Bytes of the packet buffers and the copies that messages hold, as a part of what `[events] memory` allows. "
        "At 100 % events are evicted or refused: a source is silent, `timeout_ms` is long for the rate, "
        "or the sink is slow."),
    core::CounterInfo::highest("open",
                               "Events that are still collecting, as a part of how many there can be. "
                               "High while all is well means that sources are far apart in time; "
                               "at the limit events are evicted."),
    core::CounterInfo::highest(
        "queued",
        "Events that are closed and not yet written. Growing: the reducer or the disk is slower than the detector."),
    core::CounterInfo::highest(
        "writer", "Output buffers that wait for the disk, over all workers. At 100 % the disk is the limit."),
};

}  // namespace weir::pipeline
