// Opens the devices of a configuration for a moment, as a run would, and asks what DPDK knows of them; tries the flow
// rules. In a process of its own: DPDK starts once in a process, and a driver that crashes must not take the rest
// along.
#pragma once

#include <string>
#include <vector>

#include "doctor/check.hpp"
#include "doctor/host_facts.hpp"

namespace weir::doctor {

/// Takes `watch_s` longer for packets that come by themselves, where rules are to be seen to work. Call it while the
/// process has one thread. Of devices whose opening would disturb somebody else (memif, vhost, ...), a finding says so.
[[nodiscard]] Known<std::vector<DeviceFacts>> probe_devices(const PlannedRun& run, double watch_s);

/// Why this device is not opened to look at it; empty: it is.
[[nodiscard]] std::string not_opened_reason(const config::PortConfig& port);

}  // namespace weir::doctor
