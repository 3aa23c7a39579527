// What is told of a capture: the names are those of the report's `capture`.
#pragma once

#include <array>

#include "core/counters.hpp"

namespace weir::stages {

inline constexpr std::array capture_counters = {
    core::CounterInfo::summed(
        "skipped", "Records outside the range of time that `--from` and `--to` ask for. As asked; nothing to do."),
    core::CounterInfo::summed(
        "other_link",
        "Packets of interfaces of a pcapng file that are not read, because they are no Ethernet and another interface is. "
        "A warning names their link types. If the detector is behind one of them, "
        "write that interface to a file of its own (`tshark -r all.pcapng -Y 'frame.interface_id == 1' -w one.pcapng`), "
        "and replay both."),
};

}  // namespace weir::stages
