// How fast the CPUs of lcores may go, and how deeply they may sleep.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "doctor/check.hpp"

namespace weir::doctor {

namespace {

/// Power management of the CPUs that lcores are bound to; of all where there is no run, or lcores float.
std::vector<const CpuPower*> powers_of(const CheckInput& subject) {
    std::vector<const CpuPower*> some;
    const bool bound = subject.run != nullptr && subject.run->plan->pin;
    const std::vector<std::uint32_t> lcores =
        bound ? subject.run->plan->placement.lcores() : std::vector<std::uint32_t>{};
    for (const CpuPower& power : subject.host.cpus)
        if (!bound || std::ranges::find(lcores, power.cpu) != lcores.end()) some.push_back(&power);
    return some;
}

std::vector<Finding> check_governor(const CheckInput& subject) {
    const auto powers = powers_of(subject);
    Finding finding{.wanted = "governor performance",
                    .why = "a CPU that has been slowed down takes milliseconds to become fast again"};
    if (powers.empty()) {
        finding.status = Status::unknown;
        finding.why = "the CPUs of the lcores are not there";
        return {finding};
    }
    std::set<std::string> slow;
    std::vector<Step> steps;
    for (const CpuPower* power : powers) {
        if (!power->governor) {
            finding.status = Status::unknown;
            finding.why =
                "the kernel does not govern the frequency here, as in a virtual machine: " + power->governor.why;
            return {finding};
        }
        finding.found = *power->governor;
        if (*power->governor == "performance") continue;
        slow.insert(*power->governor);
        steps.push_back(
            write_to(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", power->cpu), "performance"));
    }
    if (slow.empty()) return {finding};
    finding.status = Status::warning;
    finding.sure = Sure::likely;
    finding.found = fmt::format("{} on {} CPUs", fmt::join(slow, ", "), steps.size());
    return {with_fix(std::move(finding), std::move(steps), "the next boot")};
}

std::vector<Finding> check_turbo(const CheckInput& subject) {
    const HostFacts& host = subject.host;
    Finding finding{.found = "on", .wanted = "on", .why = "lcores are as fast as the CPU can be"};
    if (!host.turbo) {
        finding.status = Status::unknown;
        finding.found = "";
        finding.why = "the kernel does not say, as in a virtual machine: " + host.turbo.why;
        return {finding};
    }
    if (*host.turbo) return {finding};
    finding.status = Status::warning;
    finding.sure = Sure::possible;
    finding.found = "off";
    finding.why =
        "each lcore is a fifth to a third slower than it could be; constant, though, if that is what it is for";
    finding.mend =
        "echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo (AMD: echo 1 > /sys/devices/system/cpu/cpufreq/boost)";
    return {finding};
}

std::vector<Finding> check_idle_states(const CheckInput& subject) {
    constexpr std::uint32_t latency_us_max = 10;
    if (subject.run == nullptr) return {};
    const auto powers = powers_of(subject);
    Finding finding{.wanted = fmt::format("no idle state that takes more than {} us to leave", latency_us_max),
                    .why = "a packet waits until the CPU has woken up"};
    if (subject.run->config->lcores.idle != config::IdleMode::sleep) {
        finding.found = "lcores never sleep (idle in [lcores])";
        return {finding};
    }
    if (subject.host.latency_limit_us && *subject.host.latency_limit_us <= latency_us_max) {
        finding.found = fmt::format("/dev/cpu_dma_latency is held at {} us", *subject.host.latency_limit_us);
        return {finding};
    }
    std::vector<Step> steps;
    std::set<std::string> names;
    bool any = false;
    for (const CpuPower* power : powers)
        for (const IdleState& state : power->idle) {
            any = true;
            if (state.disabled || state.latency_us <= latency_us_max) continue;
            names.insert(state.name);
            steps.push_back(write_to(
                fmt::format("/sys/devices/system/cpu/cpu{}/cpuidle/state{}/disable", power->cpu, state.place), "1"));
        }
    if (!any) {
        finding.status = Status::unknown;
        finding.why = "the kernel shows no idle states, as in a virtual machine";
        return {finding};
    }
    finding.found = "only quick ones";
    if (names.empty()) return {finding};
    finding.status = Status::warning;
    finding.sure = Sure::likely;
    finding.found = fmt::format("{} may be entered", fmt::join(names, ", "));
    return {with_fix(std::move(finding), std::move(steps), "the next boot")};
}

}  // namespace

std::vector<Check> power_checks() {
    return {
        {"governor", "cpu", "the frequency governor of the CPUs of lcores", false, check_governor},
        {"turbo", "cpu", "whether CPUs may go beyond their nominal frequency", false, check_turbo},
        {"idle_states", "cpu", "idle states (C-states) that lcores may fall into, and /dev/cpu_dma_latency", false,
         check_idle_states},
    };
}

}  // namespace weir::doctor
