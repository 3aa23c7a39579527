#include "doctor/read_cpus.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <sstream>

namespace weir::doctor {

namespace {

std::vector<IdleState> idle_states(const RootFiles& files, std::uint32_t cpu) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/cpuidle", cpu);
    std::vector<IdleState> states;
    for (const std::string& name : files.names(folder)) {
        if (!name.starts_with("state")) continue;
        const auto place = whole_number(name.substr(5));
        const auto latency = files.number(folder + "/" + name + "/latency");
        if (!place || !latency) continue;
        IdleState state;
        state.place = static_cast<std::uint32_t>(*place);
        const auto called = files.line(folder + "/" + name + "/name");
        state.name = called ? *called : name;
        state.latency_us = static_cast<std::uint32_t>(*latency);
        const auto disabled = files.number(folder + "/" + name + "/disable");
        state.disabled = disabled && *disabled != 0;
        states.push_back(state);
    }
    return states;
}

/// Two interfaces of the kernel, depending on the driver of the CPU's frequency.
Known<bool> turbo_of(const RootFiles& files) {
    if (const auto off = files.number("/sys/devices/system/cpu/intel_pstate/no_turbo")) return *off == 0;
    const auto boost = files.number("/sys/devices/system/cpu/cpufreq/boost");
    return boost ? Known<bool>(*boost != 0) : Known<bool>::no(boost.why);
}

/// The device answers with four bytes: microseconds, in the machine's own order.
Known<std::uint32_t> latency_limit(const RootFiles& files) {
    const auto bytes = files.bytes("/dev/cpu_dma_latency");
    if (!bytes) return Known<std::uint32_t>::no(bytes.why);
    std::int32_t limit = 0;
    if (bytes->size() < sizeof limit) return Known<std::uint32_t>::no("/dev/cpu_dma_latency says nothing");
    std::memcpy(&limit, bytes->data(), sizeof limit);
    return static_cast<std::uint32_t>(limit < 0 ? INT32_MAX : limit);
}

Known<std::vector<Task>> tasks_of(const RootFiles& files) {
    std::vector<Task> tasks;
    const std::string own = files.link_name("/proc/self");
    for (const std::string& process : files.names("/proc")) {
        if (!whole_number(process) || process == own) continue;
        // Threads of the kernel have no command line, and none of them has a parent but 0 and 2.
        const auto command = files.bytes("/proc/" + process + "/cmdline");
        const bool kernel = command && command->empty();
        for (const std::string& thread : files.names("/proc/" + process + "/task")) {
            const auto status = files.lines("/proc/" + process + "/task/" + thread + "/status");
            if (!status) continue;  // it has ended meanwhile
            Task task;
            task.id = static_cast<std::uint32_t>(whole_number(thread).value_or(0));
            task.kernel = kernel;
            for (const std::string& line : *status) {
                if (line.starts_with("Name:")) std::istringstream(line.substr(5)) >> task.name;
                if (line.starts_with("Cpus_allowed_list:")) {
                    std::string list;
                    std::istringstream(line.substr(18)) >> list;
                    task.cpus = port::parse_cpu_list(list);
                }
            }
            tasks.push_back(std::move(task));
        }
    }
    if (tasks.empty()) return Known<std::vector<Task>>::no("/proc shows no tasks");
    return tasks;
}

struct InterruptLine {
    std::uint64_t count = 0;
    std::string name;
};

/// Of /proc/interrupts: a column for each CPU that is online, then the controller, then who asked for it.
std::map<std::uint32_t, InterruptLine> interrupt_lines(const RootFiles& files) {
    std::map<std::uint32_t, InterruptLine> found;
    const auto lines = files.lines("/proc/interrupts");
    if (!lines || lines->empty()) return found;
    std::size_t columns = 0;
    std::istringstream head(lines->front());
    for (std::string word; head >> word;) ++columns;
    for (const std::string& line : *lines) {
        std::istringstream words(line);
        std::string first;
        if (!(words >> first) || !first.ends_with(':')) continue;
        const auto number = whole_number(first.substr(0, first.size() - 1));
        if (!number) continue;
        InterruptLine& entry = found[static_cast<std::uint32_t>(*number)];
        for (std::size_t cpu = 0; cpu < columns; ++cpu) {
            std::uint64_t count = 0;
            if (words >> count) entry.count += count;
        }
        for (std::string word; words >> word;) entry.name = word;
    }
    return found;
}

Known<std::vector<Interrupt>> interrupts_of(const RootFiles& files) {
    if (!files.exists("/proc/irq")) return Known<std::vector<Interrupt>>::no("there is no /proc/irq");
    const std::map<std::uint32_t, InterruptLine> lines = interrupt_lines(files);
    std::vector<Interrupt> all;
    for (const std::string& name : files.names("/proc/irq")) {
        const auto number = whole_number(name);
        if (!number) continue;
        // A virtual machine may have no effective one; the one asked for is the next best.
        auto list = files.line("/proc/irq/" + name + "/effective_affinity_list");
        if (!list) list = files.line("/proc/irq/" + name + "/smp_affinity_list");
        if (!list) continue;
        Interrupt interrupt;
        interrupt.number = static_cast<std::uint32_t>(*number);
        interrupt.cpus = port::parse_cpu_list(*list);
        if (const auto line = lines.find(interrupt.number); line != lines.end()) {
            interrupt.name = line->second.name;
            interrupt.count = line->second.count;
        }
        all.push_back(std::move(interrupt));
    }
    return all;
}

}  // namespace

void read_cpus(const RootFiles& files, HostFacts& host) {
    for (const port::Cpu& cpu : host.topology.cpus) {
        CpuPower power;
        power.cpu = cpu.id;
        power.governor = files.line(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", cpu.id));
        power.idle = idle_states(files, cpu.id);
        host.cpus.push_back(std::move(power));
    }
    host.turbo = turbo_of(files);
    host.latency_limit_us = latency_limit(files);
    host.tasks = tasks_of(files);
    host.interrupts = interrupts_of(files);
    const std::string clocks = "/sys/devices/system/clocksource/clocksource0/";
    host.clock_source = files.line(clocks + "current_clocksource");
    if (const auto available = files.line(clocks + "available_clocksource")) {
        std::istringstream words(*available);
        for (std::string word; words >> word;) host.clock_sources.push_back(word);
    }
}

}  // namespace weir::doctor
