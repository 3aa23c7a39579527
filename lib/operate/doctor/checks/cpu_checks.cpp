// Who else uses the CPUs of lcores: the scheduler, tasks, siblings, interrupts.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "doctor/check.hpp"

namespace weir::doctor {

namespace {

/// CPUs that lcores are bound to; empty where they float.
std::vector<std::uint32_t> bound_cpus(const CheckInput& subject) {
    if (subject.run == nullptr || !subject.run->plan->pin) return {};
    return subject.run->plan->placement.lcores();
}

std::string lcore_words(const std::vector<std::uint32_t>& lcores) {
    return (lcores.size() == 1 ? "lcore " : "lcores ") + port::cpu_list_text(lcores);
}

bool among_cpus(const std::vector<std::uint32_t>& list, std::uint32_t cpu) {
    return std::ranges::find(list, cpu) != list.end();
}

std::vector<std::uint32_t> isolated_of(const CheckInput& subject, const std::vector<std::uint32_t>& cpus,
                                       bool isolated) {
    std::vector<std::uint32_t> some;
    for (const std::uint32_t id : cpus)
        if (const port::Cpu* cpu = subject.host.topology.find(id); cpu != nullptr && cpu->isolated == isolated)
            some.push_back(id);
    return some;
}

/// CPUs that no lcore has.
std::vector<std::uint32_t> other_cpus(const CheckInput& subject, const std::vector<std::uint32_t>& lcores) {
    std::vector<std::uint32_t> others;
    for (const port::Cpu& cpu : subject.host.topology.cpus)
        if (!among_cpus(lcores, cpu.id) && !cpu.isolated) others.push_back(cpu.id);
    return others;
}

std::vector<Finding> check_isolation(const CheckInput& subject) {
    if (subject.run == nullptr) return {};
    const std::vector<std::uint32_t> lcores = bound_cpus(subject);
    Finding finding{.wanted = "lcores on isolated CPUs, without a timer tick",
                    .why = "the scheduler puts other tasks beside an lcore, for milliseconds at a time"};
    if (lcores.empty()) {
        finding.status = Status::warning;
        finding.sure = Sure::likely;
        finding.found =
            fmt::format("lcores are bound to no CPU: the machine has {}", subject.host.topology.cpus.size());
        finding.mend = "[lcores] rx, build, work, on a machine with four CPUs and more";
        return {finding};
    }
    const std::vector<std::uint32_t> shared = isolated_of(subject, lcores, false);
    std::vector<std::uint32_t> ticking;
    for (const std::uint32_t id : lcores)
        if (const port::Cpu* cpu = subject.host.topology.find(id); cpu != nullptr && !cpu->tickless)
            ticking.push_back(id);
    finding.about = lcore_words(lcores);
    finding.found = "isolated, tickless";
    if (shared.empty() && ticking.empty()) return {finding};
    const std::string list = port::cpu_list_text(lcores);
    finding.status = Status::warning;
    finding.sure = shared.empty() ? Sure::possible : Sure::likely;
    finding.found = shared.empty() ? fmt::format("isolated, but {} with a timer tick", port::cpu_list_text(ticking))
                                   : fmt::format("{} not isolated", port::cpu_list_text(shared));
    if (shared.empty()) finding.why = "a timer interrupts each lcore up to a thousand times a second";
    finding.mend =
        fmt::format("on the kernel's command line: isolcpus=managed_irq,domain,{0} nohz_full={0} rcu_nocbs={0}", list);
    return {finding};
}

std::vector<Finding> check_tasks(const CheckInput& subject) {
    const std::vector<std::uint32_t> lcores = bound_cpus(subject);
    if (lcores.empty()) return {};
    Finding finding{.about = lcore_words(lcores),
                    .found = "no task of any program may run there",
                    .wanted = "no task of any program",
                    .why = "what runs there keeps the lcore from polling, and its queue fills"};
    if (!subject.host.tasks) {
        finding.status = Status::unknown;
        finding.found = "";
        finding.why = subject.host.tasks.why;
        return {finding};
    }
    std::set<std::string> names;
    std::size_t count = 0;
    const Task* bound = nullptr;
    for (const Task& task : *subject.host.tasks) {
        if (task.kernel || std::ranges::none_of(lcores, [&](auto lcore) { return among_cpus(task.cpus, lcore); }))
            continue;
        ++count;
        names.insert(task.name);
        if (task.cpus.size() < subject.host.topology.cpus.size()) bound = &task;
    }
    if (count == 0) return {finding};
    constexpr std::size_t names_max = 5;
    std::vector<std::string> some(names.begin(), names.end());
    const bool more = some.size() > names_max;
    if (more) some.resize(names_max);
    const bool isolated = isolated_of(subject, lcores, false).empty();
    finding.status = Status::warning;
    finding.sure = isolated ? Sure::likely : Sure::possible;
    finding.found = fmt::format("{} thread{} may run there: {}{}", count, count == 1 ? "" : "s", fmt::join(some, ", "),
                                more ? ", ..." : "");
    const std::string others = port::cpu_list_text(other_cpus(subject, lcores));
    finding.mend = isolated && bound != nullptr ? fmt::format("taskset -cp {} {} (and so on)", others, bound->id)
                                                : "isolate the CPUs (check isolation)";
    return {finding};
}

std::vector<Finding> check_smt(const CheckInput& subject) {
    const std::vector<std::uint32_t> lcores = bound_cpus(subject);
    if (lcores.empty()) return {};
    std::vector<std::uint32_t> together;  // lcores that share a core with another lcore
    std::vector<std::uint32_t> siblings;  // of no lcore, and open to everybody
    std::map<std::uint32_t, std::uint32_t> on_core;
    for (const std::uint32_t lcore : lcores)
        if (const port::Cpu* cpu = subject.host.topology.find(lcore)) ++on_core[cpu->core];
    for (const port::Cpu& cpu : subject.host.topology.cpus) {
        const auto core = on_core.find(cpu.core);
        if (core == on_core.end()) continue;
        if (among_cpus(lcores, cpu.id) && core->second > 1) together.push_back(cpu.id);
        if (!among_cpus(lcores, cpu.id) && !cpu.isolated) siblings.push_back(cpu.id);
    }
    Finding finding{.about = lcore_words(lcores),
                    .found = "nobody shares a core with an lcore",
                    .wanted = "a core of its own for each lcore",
                    .why = "two threads of a core share its units and caches: each has little more than half"};
    if (together.empty() && siblings.empty()) return {finding};
    finding.status = Status::warning;
    finding.sure = together.empty() ? Sure::possible : Sure::likely;
    finding.found = together.empty() ? fmt::format("CPUs {} are siblings of lcores, and other tasks may run there",
                                                   port::cpu_list_text(siblings))
                                     : fmt::format("{} share cores with each other", lcore_words(together));
    if (!together.empty()) {
        finding.mend = "[lcores]: one CPU of each core (thread_siblings_list in /sys/devices/system/cpu/cpu*/topology)";
        return {finding};
    }
    std::vector<Step> steps;
    for (const std::uint32_t cpu : siblings)
        steps.push_back(write_to(fmt::format("/sys/devices/system/cpu/cpu{}/online", cpu), "0"));
    finding.mend = shell_text(steps);
    return {finding};
}

std::vector<Finding> check_interrupts(const CheckInput& subject) {
    const std::vector<std::uint32_t> lcores = bound_cpus(subject);
    if (lcores.empty()) return {};
    Finding finding{.about = lcore_words(lcores),
                    .found = "no interrupt is delivered there",
                    .wanted = "interrupts on other CPUs",
                    .why = "each interrupt takes microseconds from the lcore, and brings its driver's work along"};
    if (!subject.host.interrupts) {
        finding.status = Status::unknown;
        finding.found = "";
        finding.why = subject.host.interrupts.why;
        return {finding};
    }
    const std::string others = port::cpu_list_text(other_cpus(subject, lcores));
    std::vector<Step> steps;
    std::vector<std::string> names;
    for (const Interrupt& interrupt : *subject.host.interrupts) {
        const bool used = interrupt.count > 0 || !interrupt.name.empty();
        if (!used || std::ranges::none_of(lcores, [&](auto lcore) { return among_cpus(interrupt.cpus, lcore); }))
            continue;
        names.push_back(fmt::format("{}{}{}", interrupt.number, interrupt.name.empty() ? "" : " ", interrupt.name));
        steps.push_back(write_to(fmt::format("/proc/irq/{}/smp_affinity_list", interrupt.number), others));
    }
    if (names.empty()) return {finding};
    constexpr std::size_t names_max = 6;
    const std::size_t count = names.size();
    if (count > names_max) names.resize(names_max);
    finding.status = Status::warning;
    finding.sure = Sure::possible;
    finding.found = fmt::format("{} interrupt{}: {}{}", count, count == 1 ? "" : "s", fmt::join(names, ", "),
                                count > names_max ? ", ..." : "");
    if (others.empty()) {
        finding.mend = "leave a CPU to the kernel: fewer lcores";
        return {finding};
    }
    return {with_fix(std::move(finding), std::move(steps), "the next boot, or irqbalance")};
}

}  // namespace

std::vector<Check> cpu_checks() {
    return {
        {"isolation", "cpu", "whether lcores are on CPUs that the scheduler leaves alone (isolcpus, nohz_full)", false,
         check_isolation},
        {"tasks", "cpu", "tasks of other programs that may run on the CPUs of lcores", false, check_tasks},
        {"smt", "cpu", "whether an lcore shares its core with another one or with other tasks", false, check_smt},
        {"interrupts", "cpu", "interrupts that are delivered to the CPUs of lcores", false, check_interrupts},
    };
}

}  // namespace weir::doctor
