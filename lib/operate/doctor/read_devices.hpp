// What sysfs says of PCI devices and of kernel interfaces.
#pragma once

#include "doctor/host_facts.hpp"
#include "doctor/read_host.hpp"
#include "doctor/root_files.hpp"

namespace weir::doctor {

/// Fills in `pci` and `interfaces`.
void read_devices(const RootFiles& files, const Interest& interest, HostFacts& host);

}  // namespace weir::doctor
