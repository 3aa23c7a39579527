// Signals that end a run, and two that ask for something.
#pragma once

namespace weir::run {

/// From now on SIGINT, SIGTERM and SIGHUP end a run cleanly (SIGHUP not where it is ignored), SIGUSR1 asks how the run
/// goes, and SIGUSR2 asks for the packets that the flight recorder has. What was set before does not come back when the
/// run is over: a signal that comes while the program takes its leave must not turn a complete run into a failure.
void catch_signals();

/// The first signal that came to end the run, or 0.
[[nodiscard]] int stop_signal() noexcept;
/// SIGUSR1 has come since the last call.
[[nodiscard]] bool asked_for_progress() noexcept;
/// SIGUSR2 has come since the last call.
[[nodiscard]] bool asked_to_record() noexcept;

}  // namespace weir::run
