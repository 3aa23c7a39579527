#include "machine.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace weir::bench {

namespace {

std::uint64_t raw_now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::string field_of(const std::string& path, const std::string& key) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line.rfind(key, 0) != 0) continue;
        const std::size_t at = line.find_first_not_of(": \t", key.size());
        return at == std::string::npos ? std::string() : line.substr(at);
    }
    return {};
}

/// A pair of readings that were taken close together: of several the narrowest.
std::pair<std::uint64_t, std::uint64_t> read_both() {
    std::uint64_t best = ~std::uint64_t{0};
    std::pair<std::uint64_t, std::uint64_t> at;
    for (int i = 0; i < 50; ++i) {
        const std::uint64_t before = __rdtsc();
        const std::uint64_t ns = raw_now_ns();
        const std::uint64_t after = __rdtsc();
        if (after - before >= best) continue;
        best = after - before;
        at = {before + (after - before) / 2, ns};
    }
    return at;
}

}  // namespace

double calibrate_tsc_hz(double seconds) {
    const auto [tsc_from, ns_from] = read_both();
    const timespec pause{0, static_cast<long>(seconds * 1e9)};
    ::nanosleep(&pause, nullptr);
    const auto [tsc_to, ns_to] = read_both();
    return static_cast<double>(tsc_to - tsc_from) * 1e9 / static_cast<double>(ns_to - ns_from);
}

int pin_thread() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        return ::sched_setaffinity(0, sizeof one, &one) == 0 ? cpu : -1;
    }
    return -1;
}

nlohmann::json describe_machine(const std::string& commit) {
    utsname system{};
    ::uname(&system);
    nlohmann::json machine;
    machine["commit"] = commit;
    machine["cpu"] = field_of("/proc/cpuinfo", "model name");
    machine["cpu_family_model_stepping"] = field_of("/proc/cpuinfo", "cpu family") + "/" +
                                           field_of("/proc/cpuinfo", "model\t") + "/" +
                                           field_of("/proc/cpuinfo", "stepping");
    machine["cpus"] = ::sysconf(_SC_NPROCESSORS_ONLN);
    machine["l2_bytes"] = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
    machine["l3_bytes"] = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    machine["kernel"] = std::string(system.sysname) + " " + system.release;
    machine["memory"] = field_of("/proc/meminfo", "MemTotal");
    machine["transparent_hugepages"] = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
    machine["load_at_start"] = first_line("/proc/loadavg");
    machine["virtual"] = field_of("/proc/cpuinfo", "flags").find("hypervisor") != std::string::npos;
    machine["compiler"] = __VERSION__;
    const std::time_t now = std::time(nullptr);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    machine["date"] = text;
    return machine;
}

}  // namespace weir::bench
