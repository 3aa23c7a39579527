// What runs on CPUs and how fast they may go: power management, tasks, interrupts, clock sources.
#pragma once

#include "doctor/host_facts.hpp"
#include "doctor/root_files.hpp"

namespace weir::doctor {

/// Fills in `cpus`, `turbo`, `latency_limit_us`, `tasks`, `interrupts` and the clock sources; of the CPUs of
/// `topology`.
void read_cpus(const RootFiles& files, HostFacts& host);

}  // namespace weir::doctor
