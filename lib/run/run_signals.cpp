#include "run/run_signals.hpp"

#include <unistd.h>

#include <atomic>
#include <string_view>

#include "pipeline/pipeline.hpp"

namespace weir::pipeline {

namespace {

std::atomic<int> stop_signal{0};
std::atomic<TimeNs> stop_signal_ns{0};
std::atomic<bool> question{false};
std::atomic<bool> record{false};

void on_question(int) {
    question.store(true);
}

void on_record(int) {
    record.store(true);
}

/// The first signal asks for a clean end. A second one ends the program where it stands, which is the way out when the
/// sink hangs; not if it comes at once, because `timeout` and terminals may well send the same signal twice.
void on_signal(int number) {
    const TimeNs now = wall_ns();
    if (stop_signal.load() == 0) {
        stop_signal_ns.store(now);
        stop_signal.store(number);
    } else if (now - stop_signal_ns.load() > core::ns_per_s) {
        constexpr std::string_view text =
            "weir: ended by a second signal; what was written so far is in the hidden directory, see weir inspect\n";
        const auto written = ::write(STDERR_FILENO, text.data(), text.size());
        static_cast<void>(written);
        ::signal(number, SIG_DFL);
        ::raise(number);
    }
}

}  // namespace

SignalGuard::SignalGuard() {
    stop_signal.store(0);
    struct sigaction action {};
    action.sa_handler = on_signal;
    ::sigaction(SIGINT, &action, &interrupt_);
    ::sigaction(SIGTERM, &action, &terminate_);
    // The terminal is gone; whoever wants the run to go on without one says so with nohup.
    ::sigaction(SIGHUP, nullptr, &hang_up_);
    if (hang_up_.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
    action.sa_handler = on_question;
    ::sigaction(SIGUSR1, &action, &user_);
    action.sa_handler = on_record;
    ::sigaction(SIGUSR2, &action, &record_);
}

SignalGuard::~SignalGuard() {
    ::signal(SIGUSR1, SIG_IGN);  // one that comes too late must not end the program
    ::signal(SIGUSR2, SIG_IGN);
    if (stop_signal.load() != 0) return;
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
    ::sigaction(SIGHUP, &hang_up_, nullptr);
}

bool SignalGuard::asked() noexcept {
    return question.exchange(false);
}

bool SignalGuard::asked_to_record() noexcept {
    return record.exchange(false);
}

int SignalGuard::received() noexcept {
    return stop_signal.load();
}

}  // namespace weir::pipeline
