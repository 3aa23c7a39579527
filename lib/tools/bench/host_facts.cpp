#include "bench/host_facts.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "bench/interface_counters.hpp"

namespace weir::bench {
namespace {

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// What stands after "key" and the separator in the first line that begins with it.
std::string value_of(const std::string& path, const std::string& key, char separator) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        if (!line.starts_with(key)) continue;
        const std::size_t at = line.find(separator);
        if (at == std::string::npos) continue;
        const std::size_t begin = line.find_first_not_of(" \t\"", at + 1);
        if (begin == std::string::npos) return {};
        return line.substr(begin, line.find_last_not_of(" \t\"") - begin + 1);
    }
    return {};
}

bool under_hypervisor() {
    return (" " + value_of("/proc/cpuinfo", "flags", ':') + " ").find(" hypervisor ") != std::string::npos;
}

}  // namespace

HostFacts host_facts(const std::string& role, const std::string& interface, const std::string& weir_version) {
    HostFacts facts;
    facts.role = role;
    utsname system{};
    ::uname(&system);
    facts.name = static_cast<const char*>(system.nodename);
    facts.kernel = static_cast<const char*>(system.release);
    facts.cpu = value_of("/proc/cpuinfo", "model name", ':');
    facts.cpus = std::thread::hardware_concurrency();
    facts.memory_bytes =
        static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    facts.system = value_of("/etc/os-release", "PRETTY_NAME", '=');
    if (!interface.empty()) facts.interface = interface_text(interface);
    if (under_hypervisor()) {
        facts.virtual_by = first_line("/sys/class/dmi/id/sys_vendor");
        if (facts.virtual_by.empty()) facts.virtual_by = "a hypervisor";
        facts.remarks.emplace_back("a virtual machine: its CPUs may be taken away at any time");
    }
    if (facts.cpus < 4)
        facts.remarks.push_back(fmt::format("{} CPUs: sender, receiver and kernel share them", facts.cpus));
    if (const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        !governor.empty() && governor != "performance")
        facts.remarks.push_back(fmt::format("the CPUs' frequency is scaled ({})", governor));
    facts.weir = weir_version;
    return facts;
}

std::string boot_id() {
    return first_line("/proc/sys/kernel/random/boot_id");
}

}  // namespace weir::bench
