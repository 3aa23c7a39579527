#include "run/service_manager.hpp"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/loaded_library.hpp"

namespace weir::run {

namespace {

struct SystemdLibrary {
    core::LoadedLibrary library{"libsystemd", "libsystemd.so.0", "libsystemd0"};
    WEIR_LIBRARY_FUNCTION(sd_notify);
    WEIR_LIBRARY_FUNCTION(sd_watchdog_enabled);
};

const SystemdLibrary& systemd() {
    static const SystemdLibrary functions;
    return functions;
}

constexpr std::uint64_t hour_us = 3'600'000'000;

/// A newline would begin another variable of the protocol.
std::string one_line(std::string text) {
    std::ranges::replace(text, '\n', ' ');
    return text;
}

}  // namespace

ServiceManager::ServiceManager() : listens_(std::getenv("NOTIFY_SOCKET") != nullptr) {
    std::uint64_t interval_us = 0;
    if (listens_ && systemd().sd_watchdog_enabled(0, &interval_us) > 0)
        watchdog_s_ = 1e-6 * static_cast<double>(interval_us);
}

void ServiceManager::tell(const std::string& lines) {
    systemd().sd_notify(0, lines.c_str());
}

void ServiceManager::ready(double seconds) {
    if (!listens_) return;
    ready_ = true;
    looked_s_ = fed_s_ = told_s_ = seconds;
    tell("READY=1\nSTATUS=running");
}

std::string ServiceManager::look(double seconds, const Lcores& lcores, const Text& status) {
    if (!ready_ || stopping_) return {};
    constexpr double status_interval_s = 1;
    if (!said_stuck_ && seconds - told_s_ >= status_interval_s) {
        told_s_ = seconds;
        tell("STATUS=" + one_line(status()));
    }
    constexpr double looks_in_interval = 16;
    if (watchdog_s_ == 0 || seconds - looked_s_ < watchdog_s_ / looks_in_interval) return {};
    looked_s_ = seconds;
    return look_at_lcores(seconds, lcores);
}

std::string ServiceManager::look_at_lcores(double seconds, const Lcores& lcores) {
    progress_.look(lcores(), seconds);
    const double limit_s = watchdog_s_ / 2;
    if (const auto stuck = progress_.stuck(seconds, limit_s); stuck.has_value()) {
        if (std::exchange(said_stuck_, true)) return {};
        tell(fmt::format("STATUS=lcore {} is stuck", *stuck));
        return fmt::format(
            "lcore {} has not polled for {:.1f} s, so the service manager's watchdog is not fed any more", *stuck,
            limit_s);
    }
    constexpr double feeds_in_interval = 4;
    if (seconds - fed_s_ >= watchdog_s_ / feeds_in_interval) {
        fed_s_ = seconds;
        tell("WATCHDOG=1");
    }
    return std::exchange(said_stuck_, false) ? "all lcores poll again" : "";
}

void ServiceManager::be_patient(bool patient) {
    if (!ready_ || stopping_ || watchdog_s_ == 0) return;
    const auto own_us = static_cast<std::uint64_t>(watchdog_s_ * 1e6);
    tell(fmt::format("WATCHDOG=1\nWATCHDOG_USEC={}", patient ? hour_us : own_us));
}

void ServiceManager::stopping(const std::string& why) {
    if (!listens_ || std::exchange(stopping_, true)) return;
    tell(fmt::format("STOPPING=1\nWATCHDOG_USEC={}\nSTATUS={}: closing open events and writing what is left", hour_us,
                     one_line(why)));
}

}  // namespace weir::run
