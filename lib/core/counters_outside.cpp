// What is counted or measured beside the ledger: by devices, by rings, and how full things are; and for every counter
// the section of the documentation that tells how to find the cause.
#include <array>

#include "core/counters_text.hpp"

namespace weir::core {
namespace {

constexpr CounterInfo highest(std::string_view name, std::string_view help) {
    return {name, Merge::maximum, help};
}

constexpr std::array device_counters = {
    CounterInfo::summed(
        "received",
        "Packets that the device says it handed over: the independent side of the ledger. Zero at the end means that "
        "the "
        "link is down, the detector is off, or its packets go elsewhere."),
    CounterInfo::summed(
        "missed",
        "Packets that the device, or the kernel in front of it, dropped because its receive queue was full. The rx "
        "lcore "
        "did not come back in time: give it a core of its own, more `rx_descriptors` (or `framecnt`), or more queues. "
        "\"unknown\" where the driver does not tell: then only sequence numbers do."),
    CounterInfo::summed(
        "missed_by_interface",
        "Of `missed`: packets that the kernel's interface dropped before the device could see them (its rx dropped and "
        "errors, `ip -s link`): frames longer than its MTU, bad frames, a full ring of the card or backlog of the "
        "processor (net.core.netdev_max_backlog). Only there when there were any."),
    CounterInfo::summed(
        "no_buffer",
        "Packets that the driver dropped because no packet buffer was free. Events or the sink hold them all: raise "
        "`[events] memory`, or find what keeps events open. \"unknown\" where the driver counts attempts, not "
        "packets."),
};

constexpr std::array ring_counters = {
    highest("capture",
            "Packets between the capture reader and an rx lcore. Full in a replay means only that the reader is "
            "faster than the pipeline, which is usual: it waits, or drops with `--drop`."),
    highest("steer",
            "Packets that one rx lcore hands to another, which owns their stream. Close to full, packets are about "
            "to be lost as `dropped.ring_full.steer`: that lcore is overloaded."),
    highest("descriptors",
            "What rx lcores tell the event builder. It has room for every message there can be; if it fills "
            "up, the build lcore is starved on its CPU."),
    highest("commands",
            "What the event builder tells an rx lcore. It fills up only if that lcore is starved on its CPU."),
    highest("events",
            "Closed events on their way to a worker. If it fills up, the reducer or the disk is slower than the "
            "detector: look at `rings.full` to tell which."),
    highest("released",
            "Events that a worker is done with, on their way back to the builder. Fills up only if the build "
            "lcore is starved."),
    highest("recycle",
            "Messages on their way back to the rx lcore that owns their buffers. Fills up only if that lcore is "
            "starved."),
    highest("full",
            "Output buffers that wait for the disk. Full means that the disk is slower than what the workers "
            "write: a faster disk, or a reducer that makes less of it."),
    highest("free",
            "Output buffers that a worker can fill. Full when nothing waits for the disk; empty when everything "
            "does."),
};

constexpr std::array level_counters = {
    highest("buffers",
            "Packet buffers that are not in the pool: held by messages, in rings, or given to the device. The "
            "last of them gone, packets are lost."),
    highest("memory",
            "Packet buffers held by messages, as a part of what `[events] memory` allows. At 100 % events are "
            "evicted or refused: a source is silent, `timeout_ms` is long for the rate, or the sink is slow."),
    highest("open",
            "Events that are still collecting, as a part of how many there can be. High while all is well means "
            "that sources are far apart in time; at the limit events are evicted."),
    highest("queued",
            "Events that are closed and not yet written. Growing: the reducer or the disk is slower than the "
            "detector."),
    highest("writer", "Output buffers that wait for the disk, over all workers. At 100 % the disk is the limit."),
};

constexpr std::array recorder_counters = {
    CounterInfo::summed("seen", "Packets that rx lcores took from ports or captures while a pcapng sink was there."),
    CounterInfo::summed(
        "written",
        "Of these, packets in the sink's files. With `packets = \"incomplete\"` those around triggers only."),
    CounterInfo::summed(
        "left_out",
        "Packets that are missing in the capture, not in the run: the disk was slower than the network, so raise "
        "`sink.memory`, set `snap_bytes`, or use a faster disk; or nothing was written any more, see "
        "`recorder.stopped`."),
    CounterInfo::summed(
        "files",
        "Files that were begun. At `files_max` nothing is saved any more: save the files elsewhere and see why "
        "there is so much to record."),
    CounterInfo::summed("triggers.incomplete",
                        "Incomplete events that made the flight recorder save packets. See `events.incomplete`."),
    CounterInfo::summed("triggers.drops",
                        "Bursts of lost packets, of `drops` a second and more, that did so. See `packets.dropped` and "
                        "the devices' counters."),
    CounterInfo::summed("triggers.request", "Times that somebody asked: SIGUSR2, or `/weir/record` of telemetry."),
    CounterInfo::summed("triggers.unsaved",
                        "Triggers that came when nothing was written any more: raise `files_max` or `bytes_max`, or "
                        "make room on the disk; `recorder.stopped` says which."),
};

struct Page {
    std::string_view begin;  ///< of the full names of counters
    std::string_view section;
};
// The first that fits.
constexpr Page pages[] = {
    {"packets.unsteered", "unsteered"},
    {"packets.not_for_us.", "unsteered"},
    {"packets.dropped.malformed.truncated", "cut-frames"},
    {"packets.dropped.malformed.ip_length", "cut-frames"},
    {"packets.dropped.malformed.ip_fragment", "cut-frames"},
    {"packets.dropped.malformed.oversized", "cut-frames"},
    {"packets.dropped.malformed.bad_icrc", "icrc"},
    {"packets.dropped.malformed.", "geometry"},
    {"packets.dropped.roce.", "roce"},
    {"answers.", "roce"},
    {"packets.dropped.duplicate", "duplicate"},
    {"packets.dropped.late", "late"},
    {"packets.dropped.no_room", "no-room"},
    {"packets.dropped.queue_full", "queue-full"},
    {"packets.dropped.prescaled", "prescaled"},
    {"packets.dropped.ring_full.", "rings"},
    {"packets.dropped.unbound", "unbound"},
    {"messages.refused.duplicate", "duplicate"},
    {"messages.refused.late", "late"},
    {"messages.refused.no_room", "no-room"},
    {"messages.refused.queue_full", "queue-full"},
    {"messages.refused.prescaled", "prescaled"},
    {"messages.refused.unbound", "unbound"},
    {"events.refused.no_room", "no-room"},
    {"events.refused.queue_full", "queue-full"},
    {"events.refused.prescaled", "prescaled"},
    {"events.incomplete.timeout", "missing"},
    {"events.incomplete.evicted", "evicted"},
    {"events.incomplete.end_of_run", "end-of-run"},
    {"events.incomplete.no_room", "no-room"},
    {"events.dropped.incomplete", "incomplete"},
    {"events.dropped.no_room", "no-room"},
    {"events.dropped.reduce_error", "reduce-error"},
    {"events.dropped.write_error", "write-error"},
    {"device.received", "nothing-came"},
    {"device.", "device"},
    {"rings.", "rings"},
    {"levels.", "no-room"},
};

}  // namespace

std::vector<CounterSection> outside_sections() {
    return {
        {"device", "What each device says itself, per port, in the report's `devices`. Not part of the ledger's sums.",
         device_counters.data(), device_counters.size()},
        {"rings", "How full the rings between lcores and threads are: only while a run goes on, in `--progress json`.",
         ring_counters.data(), ring_counters.size()},
        {"levels", "How full buffers and queues are: only while a run goes on, on the progress line and in JSON.",
         level_counters.data(), level_counters.size()},
        {"recorder",
         "What a sink of kind `pcapng` did with the packets beside the run, in the report's `recorder`. It changes "
         "none of "
         "the other counters.",
         recorder_counters.data(), recorder_counters.size()},
    };
}

std::string counter_page(std::string_view full_name) {
    if (full_name.starts_with("recorder.")) return "docs/guides/RECORDER.md#what-is-counted";
    for (const Page& page : pages)
        if (full_name.starts_with(page.begin)) return "docs/guides/LOSSES.md#" + std::string(page.section);
    return "docs/reference/COUNTERS.md";
}

}  // namespace weir::core
