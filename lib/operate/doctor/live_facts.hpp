// What only the kernel of a live system can be asked: its clock, and interfaces by ethtool.
#pragma once

#include "doctor/host_facts.hpp"

namespace weir::doctor {

/// Fills in `clock_sync`, and of each interface its state, ring, merging and firmware. For the machine itself.
void ask_kernel(HostFacts& host);
/// Says of the same facts that they are not recorded: `host` was read below another root.
void not_recorded(HostFacts& host);

}  // namespace weir::doctor
