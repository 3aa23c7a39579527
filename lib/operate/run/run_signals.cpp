#include "run/run_signals.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "pipeline/pipeline.hpp"
#include "pipeline/wall_clock.hpp"

namespace weir::run {

namespace {

std::atomic<int> stop_number{0};
std::atomic<core::TimeNs> stop_ns{0};
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
    const core::TimeNs now = pipeline::wall_ns();
    if (stop_number.load() == 0) {
        stop_ns.store(now);
        stop_number.store(number);
    } else if (now - stop_ns.load() > core::ns_per_s) {
        constexpr std::string_view text =
            "weir: ended by a second signal; what was written so far is in the hidden directory, see weir inspect\n";
        const auto written = ::write(STDERR_FILENO, text.data(), text.size());
        static_cast<void>(written);
        ::signal(number, SIG_DFL);
        ::raise(number);
    }
}

}  // namespace

void catch_signals() {
    stop_number.store(0);
    struct sigaction action {};
    action.sa_handler = on_signal;
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    // The terminal is gone; whoever wants the run to go on without one says so with nohup.
    struct sigaction hang_up {};
    ::sigaction(SIGHUP, nullptr, &hang_up);
    if (hang_up.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
    action.sa_handler = on_question;
    ::sigaction(SIGUSR1, &action, nullptr);
    action.sa_handler = on_record;
    ::sigaction(SIGUSR2, &action, nullptr);
}

int stop_signal() noexcept {
    return stop_number.load();
}

bool asked_for_progress() noexcept {
    return question.exchange(false);
}

bool asked_to_record() noexcept {
    return record.exchange(false);
}

}  // namespace weir::run
