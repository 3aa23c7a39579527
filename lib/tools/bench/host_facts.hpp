// Says of this machine what one has to know to believe numbers that were measured on it.
#pragma once

#include <string>

#include "bench/results.hpp"

namespace weir::bench {

/// `interface`: of the kernel, that packets go through; empty if there is none. What cannot be found out is left empty.
[[nodiscard]] HostFacts host_facts(const std::string& role, const std::string& interface,
                                   const std::string& weir_version);

/// The same on two sides: they have the same clock. Empty if the system does not say.
[[nodiscard]] std::string boot_id();

}  // namespace weir::bench
