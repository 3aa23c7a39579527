#include "doctor/read_host.hpp"

#include <fmt/format.h>
#include <linux/capability.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <sstream>

#include "config/device_facts.hpp"
#include "doctor/read_cpus.hpp"
#include "doctor/read_devices.hpp"
#include "doctor/root_files.hpp"
#include "port/interface_link.hpp"
#include "port/pci_devices.hpp"

namespace weir::doctor {

namespace {

port::HostTopology topology_of(const std::filesystem::path& root) {
    if (root == "/") return port::host_topology();
    const Known<std::string> group = RootFiles(root).bytes("/proc/self/cgroup");
    // A recorded machine is judged as one whose CPUs can all be had.
    return port::read_topology(
        root, {.affinity = {}, .can_bind = [](std::uint32_t) { return true; }, .control_group = group ? *group : ""});
}

void add_hugepages(const RootFiles& files, const std::string& folder, int node, std::vector<HugePages>& all) {
    constexpr std::string_view prefix = "hugepages-";
    for (const std::string& name : files.names(folder)) {
        if (!name.starts_with(prefix) || !name.ends_with("kB")) continue;
        const auto kib = whole_number(name.substr(prefix.size(), name.size() - prefix.size() - 2));
        const auto total = files.number(folder + "/" + name + "/nr_hugepages");
        const auto free = files.number(folder + "/" + name + "/free_hugepages");
        if (kib && total && free) all.push_back({node, static_cast<std::uint32_t>(*kib), *total, *free});
    }
}

void read_hugepages(const RootFiles& files, HostFacts& host) {
    for (const port::NumaNode& node : host.topology.nodes)
        add_hugepages(files, fmt::format("/sys/devices/system/node/node{}/hugepages", node.id), node.id,
                      host.hugepages);
    host.hugepages_by_node = !host.hugepages.empty();
    if (!host.hugepages_by_node)
        add_hugepages(files, "/sys/kernel/mm/hugepages", host.topology.nodes.front().id, host.hugepages);
}

Known<std::vector<Mount>> mounts_of(const RootFiles& files) {
    const auto lines = files.lines("/proc/mounts");
    if (!lines) return Known<std::vector<Mount>>::no(lines.why);
    std::vector<Mount> mounts;
    for (const std::string& line : *lines) {
        std::istringstream words(line);
        std::string device;
        Mount mount;
        if (words >> device >> mount.where >> mount.type >> mount.options) mounts.push_back(mount);
    }
    return mounts;
}

enum class Limit : std::uint8_t { soft, hard };

/// "Max locked memory  8388608  8388608  bytes": what is in force, and what a process may raise it to.
Known<std::uint64_t> limit_of(const RootFiles& files, std::string_view name, Limit which) {
    const std::string path = "/proc/self/limits";
    const auto lines = files.lines(path);
    if (!lines) return Known<std::uint64_t>::no(lines.why);
    for (const std::string& line : *lines) {
        if (!line.starts_with(name)) continue;
        std::istringstream words(line.substr(name.size()));
        std::string value;
        words >> value;
        if (which == Limit::hard) words >> value;
        if (value == "unlimited") return std::numeric_limits<std::uint64_t>::max();
        if (const auto number = whole_number(value)) return *number;
    }
    return Known<std::uint64_t>::no(fmt::format("{} has no line '{}'", path, name));
}

/// "CapEff:  000001ffffffffff"
bool has_capability(const RootFiles& files, unsigned number) {
    const auto lines = files.lines("/proc/self/status");
    if (!lines) return false;
    for (const std::string& line : *lines)
        if (line.starts_with("CapEff:")) return (std::strtoull(line.c_str() + 7, nullptr, 16) >> number & 1U) != 0;
    return false;
}

/// Whether Debian's service that sets up devices at boot, and gives hugepages back first, is switched on.
Known<DpdkService> dpdk_service_of(const RootFiles& files) {
    const std::string unit = "/etc/systemd/system/dpdk.service";
    if (!files.exists("/etc/systemd/system")) return Known<DpdkService>::no("there is no /etc/systemd/system");
    DpdkService service;
    service.masked = files.link_name(unit) == "null";
    for (const std::string& folder : files.names("/etc/systemd/system"))
        if (folder.ends_with(".wants") && !files.link_name("/etc/systemd/system/" + folder + "/dpdk.service").empty())
            service.enabled = true;
    // Left out of the file, the service's script does it, too.
    service.frees = true;
    if (const auto lines = files.lines("/etc/dpdk/dpdk.conf"))
        for (const std::string& line : *lines)
            if (line.starts_with("FREE_PREVIOUS_ALLOCATIONS=")) service.frees = !line.ends_with("=0");
    return service;
}

/// The second number of each CPU's line is what found no room in its backlog.
Known<std::uint64_t> backlog_drops(const RootFiles& files) {
    const auto lines = files.lines("/proc/net/softnet_stat");
    if (!lines) return Known<std::uint64_t>::no(lines.why);
    std::uint64_t sum = 0;
    for (const std::string& line : *lines) {
        std::istringstream words(line);
        std::uint64_t processed = 0;
        std::uint64_t dropped = 0;
        if (words >> std::hex >> processed >> dropped) sum += dropped;
    }
    return sum;
}

/// From the firmware's table of memory modules (SMBIOS type 17): each that says its speed is a channel of 8 bytes.
Known<double> memory_rate(const RootFiles& files) {
    constexpr std::size_t speed_at = 0x20;  // configured, in millions of transfers per second
    constexpr std::size_t size_at = 0x0c;
    constexpr double bytes_per_transfer = 8;
    double sum = 0;
    std::string why = "the firmware does not say which memory modules there are (/sys/firmware/dmi/entries/17-*)";
    for (const std::string& entry : files.names("/sys/firmware/dmi/entries")) {
        if (!entry.starts_with("17-")) continue;
        const auto raw = files.bytes("/sys/firmware/dmi/entries/" + entry + "/raw");
        if (!raw) why = raw.why;
        if (!raw || raw->size() < speed_at + 2) continue;
        const auto word = [&](std::size_t at) {
            return static_cast<unsigned char>((*raw)[at]) | static_cast<unsigned char>((*raw)[at + 1]) << 8U;
        };
        if (word(size_at) != 0) sum += word(speed_at) * 1e6 * bytes_per_transfer;
    }
    return sum > 0 ? Known<double>(sum) : Known<double>::no(why);
}

void read_system(const RootFiles& files, HostFacts& host) {
    read_hugepages(files, host);
    host.mounts = mounts_of(files);
    host.command_line = files.line("/proc/cmdline");
    const Known<std::string> group = files.bytes("/proc/self/cgroup");
    host.memory = port::free_memory(host.root, group ? *group : "");
    host.iommu = !files.names("/sys/class/iommu").empty();
    host.vfio = files.exists("/sys/module/vfio_pci");  // /dev/vfio/vfio may be there before the module
    host.memlock = limit_of(files, "Max locked memory", Limit::soft);
    host.open_files = limit_of(files, "Max open files", Limit::hard);
    host.may_lock = has_capability(files, CAP_IPC_LOCK);
    host.receive_buffer_max = files.number("/proc/sys/net/core/rmem_max");
    host.backlog_max = files.number("/proc/sys/net/core/netdev_max_backlog");
    host.backlog_dropped = backlog_drops(files);
}

}  // namespace

Interest interest_of(const config::RunConfig& config) {
    Interest interest;
    for (const config::PortConfig& port : config.ports) {
        const std::string device = port.devargs();
        if (config::is_pci_address(device)) {
            interest.pci.push_back(port::full_pci_address(device));
            continue;
        }
        const std::size_t comma = device.find(',');
        const std::string args = comma == std::string::npos ? "" : device.substr(comma + 1);
        const std::string driver = config::driver_of(device);
        // A tap makes its own.
        if (driver == "net_tap") continue;
        if (std::string name = port::interface_of(driver, args); !name.empty()) interest.interfaces.push_back(name);
    }
    return interest;
}

HostFacts read_host(const std::filesystem::path& root, const Interest& interest, Depth depth) {
    const RootFiles files(root);
    HostFacts host;
    host.root = root;
    host.topology = topology_of(root);
    read_system(files, host);
    read_devices(files, interest, host);
    if (depth == Depth::quick) return host;
    host.dpdk_service = dpdk_service_of(files);
    host.memory_bytes_per_s = memory_rate(files);
    read_cpus(files, host);
    return host;
}

}  // namespace weir::doctor
