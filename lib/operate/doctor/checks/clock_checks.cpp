// Clocks: what the kernel reads time from, and whether that is the world's time.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "doctor/check.hpp"

namespace weir::doctor {

namespace {

/// Read without a system call.
constexpr std::array quick_sources{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"};

std::vector<Finding> check_clock_source(const CheckInput& subject) {
    const HostFacts& host = subject.host;
    Finding finding{.wanted = "tsc (in a virtual machine also kvm-clock and Hyper-V's)",
                    .why = "weir counts time by the TSC, and the kernel does not trust it when it takes another one"};
    if (!host.clock_source) {
        finding.status = Status::unknown;
        finding.why = host.clock_source.why;
        return {finding};
    }
    finding.found = *host.clock_source;
    if (std::ranges::find(quick_sources, *host.clock_source) != quick_sources.end()) return {finding};
    finding.status = Status::warning;
    finding.sure = Sure::likely;
    if (std::ranges::find(host.clock_sources, "tsc") != host.clock_sources.end())
        return {with_fix(std::move(finding),
                         {write_to("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc")},
                         "the next boot")};
    finding.mend =
        "dmesg says why the TSC was found unstable; a firmware update, or tsc=reliable on the kernel's command line";
    return {finding};
}

std::vector<Finding> check_clock_sync(const CheckInput& subject) {
    const auto& sync = subject.host.clock_sync;
    Finding finding{.wanted = "a clock that is kept in step (NTP, PTP)",
                    .why = "arrival times are UNIX times: those of several machines can be compared only then"};
    if (!sync) {
        finding.status = Status::unknown;
        finding.why = sync.why;
        return {finding};
    }
    finding.found = sync->synchronised ? fmt::format("in step, within {} us as the kernel has it", sync->error_us)
                                       : "not in step with anything";
    if (sync->synchronised) return {finding};
    finding.status = Status::warning;
    finding.sure = Sure::certain;
    finding.mend = "timedatectl set-ntp true, or chrony, or linuxptp for the detector's own time";
    return {finding};
}

}  // namespace

std::vector<Check> clock_checks() {
    return {
        {"clock_source", "clock", "what the kernel reads time from", false, check_clock_source},
        {"clock_sync", "clock", "whether the clock is kept in step, and how well (adjtimex)", false, check_clock_sync},
    };
}

}  // namespace weir::doctor
