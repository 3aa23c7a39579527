#include "interrupt.hpp"

#include <csignal>

namespace weir::app {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");

namespace {

void on_interrupt(int /*signal*/) {
    interrupted.store(true, std::memory_order_relaxed);
}

}  // namespace

void catch_interrupts() {
    interrupted = false;
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace weir::app
