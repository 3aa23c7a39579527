// Signals that end a run, and two that ask for something.
#pragma once

#include <signal.h>

namespace weir::pipeline {

/// SIGINT, SIGTERM and SIGHUP end a run cleanly (SIGHUP not where it is ignored); what was set before is restored. Not
/// after a signal: one that comes again while the program takes its leave must not turn a clean end into a failure.
/// SIGUSR1 asks how the run goes, SIGUSR2 for the packets that the flight recorder has.
class SignalGuard {
public:
    SignalGuard();
    ~SignalGuard();
    SignalGuard(const SignalGuard&) = delete;
    SignalGuard& operator=(const SignalGuard&) = delete;

    /// The first signal that came, or 0.
    [[nodiscard]] static int received() noexcept;
    /// SIGUSR1 has come since the last call.
    [[nodiscard]] static bool asked() noexcept;
    /// SIGUSR2 has come since the last call: what the flight recorder has is to be saved.
    [[nodiscard]] static bool asked_to_record() noexcept;

private:
    struct sigaction interrupt_ {};
    struct sigaction terminate_ {};
    struct sigaction hang_up_ {};
    struct sigaction user_ {};
    struct sigaction record_ {};
};

}  // namespace weir::pipeline
