// What is told of a device: the names are those of the report's `devices`.
#pragma once

#include <array>

#include "core/counters.hpp"

namespace weir::port {

inline constexpr std::array device_counters = {
    core::CounterInfo::summed(
        "received",
        "Packets that the device says it handed over: the independent side of the ledger. "
        "Zero at the end means that the link is down, the detector is off, or its packets go elsewhere."),
    core::CounterInfo::summed(
        "missed",
        "Packets that the device, or the kernel in front of it, dropped because its receive queue was full. "
        "The rx lcore did not come back in time: give it a core of its own, more `rx_descriptors` (or `framecnt`, `ring`), "
        "or more queues. \"unknown\" where the driver does not tell: then only sequence numbers do.",
        core::Place::device),
    core::CounterInfo::summed(
        "missed_by_interface",
        "Of `missed`: packets that the kernel's interface dropped before the device could see them (its rx dropped and errors, "
        "`ip -s link`): frames longer than its MTU, bad frames, frames that came while it was going down or up, "
        "a full ring of the card or backlog of the processor (net.core.netdev_max_backlog). "
        "Only there when there were any.",
        core::Place::kernel),
    core::CounterInfo::summed("no_buffer",
                              "Packets that the driver dropped because no packet buffer was free. "
                              "Events or the sink hold them all: raise `[events] memory`, "
                              "or find what keeps events open. \"unknown\" where the driver counts attempts, "
                              "not packets.",
                              core::Place::weir),
};

}  // namespace weir::port
