// What a number was measured on, and how its clock ran: without these a rate means nothing.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace weir::bench {

/// TSC ticks per second, measured against CLOCK_MONOTONIC_RAW over about `seconds`: the kernel's and DPDK's own idea of
/// it can be off by more than a tenth of a percent in a guest.
[[nodiscard]] double calibrate_tsc_hz(double seconds);

/// CPU, caches, kernel, page sizes, load. `commit` as the caller knows it.
[[nodiscard]] nlohmann::json describe_machine(const std::string& commit);

/// Binds the calling thread to one CPU: the last of those that it may use. Returns its number.
int pin_thread();

}  // namespace weir::bench
