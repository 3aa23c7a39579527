// What is asked of the captures of a replay before anything is started.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.hpp"
#include "run/run.hpp"

namespace weir::run {

/// Size of the captures, and how many packets they have: PlanInput::capture_bytes and capture_packets. Small ones are
/// counted, which takes milliseconds; otherwise the packets are as many as there can be in so many bytes.
void measure_captures(const stages::CaptureFeeder::Config& captures, plan::PlanInput& input);

/// The port (index) of each capture: one for all of them, or one for each in order. Throws core::UsageError naming
/// --port.
[[nodiscard]] std::vector<std::uint16_t> port_indices(const RunOptions& options);

/// Opens each once, so that what cannot be read is said before DPDK starts: throws core::RunError. Pipes are left
/// alone, because they can be opened only once.
void probe_captures(const stages::CaptureFeeder::Config& captures);

}  // namespace weir::run
