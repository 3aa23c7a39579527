#include "port/eal.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "core/error.hpp"

namespace weir::port {

std::vector<std::uint32_t> usable_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<std::uint32_t> cpus;
    if (::sched_getaffinity(0, sizeof set, &set) == 0)
        for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    if (cpus.empty()) cpus.push_back(0);
    return cpus;
}

bool is_pci_address(const std::string& device) noexcept {
    const std::string name = device.substr(0, device.find(','));
    return name.find(':') != std::string::npos && name.find('.') != std::string::npos &&
           std::isxdigit(static_cast<unsigned char>(name.front())) != 0;
}

namespace {

std::string lcore_map(const EalConfig& config) {
    const std::vector<std::uint32_t> cpus = usable_cpus();
    std::string all;
    for (const std::uint32_t cpu : cpus) all += (all.empty() ? "" : ",") + std::to_string(cpu);
    std::uint32_t main = RTE_MAX_LCORE - 1;
    while (std::ranges::find(config.lcores, main) != config.lcores.end()) --main;
    std::string map = fmt::format("{}@({})", main, all);
    for (const std::uint32_t lcore : config.lcores) {
        if (lcore >= RTE_MAX_LCORE)
            throw core::UsageError(
                fmt::format("[lcores]: found lcore {}; accepted: 0 to {}", lcore, RTE_MAX_LCORE - 1));
        const bool own = config.pin && std::ranges::find(cpus, lcore) != cpus.end();
        map += own ? fmt::format(",{0}@{0}", lcore) : fmt::format(",{}@({})", lcore, all);
    }
    return fmt::format("{} --main-lcore={}", map, main);
}

}  // namespace

void start_eal(const EalConfig& config) {
    const std::string lcores = lcore_map(config);
    const std::size_t split = lcores.find(' ');
    std::vector<std::string> args = {"weir", "--lcores=" + lcores.substr(0, split), lcores.substr(split + 1),
                                     "--no-telemetry", "--log-level=*:error"};
    const std::uint64_t mib = (config.memory_bytes >> 20U) + 1;
    if (config.pci.empty()) {
        // No device needs physical addresses, so neither hugepages nor privileges are needed.
        args.insert(args.end(), {"--no-huge", "--no-pci", "--no-shconf", "-m", std::to_string(mib)});
    } else {
        args.push_back("--file-prefix=weir" + std::to_string(::getpid()));
        for (const std::string& address : config.pci) args.push_back("--allow=" + address);
    }
    for (const std::string& vdev : config.vdevs) args.push_back("--vdev=" + vdev);
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    if (::rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0)
        throw core::RunError(fmt::format(
            "DPDK could not start: {} (asked for {} MiB{})", rte_strerror(rte_errno), mib,
            config.vdevs.empty() ? std::string() : ", device " + fmt::format("{}", fmt::join(config.vdevs, " "))));
}

void stop_eal() noexcept {
    ::rte_eal_cleanup();
}

}  // namespace weir::port
