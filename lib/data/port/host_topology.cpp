#include "port/host_topology.hpp"

#include <fmt/format.h>
#include <numa.h>
#include <numaif.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "config/device_facts.hpp"
#include "port/eal.hpp"
#include "port/interface_drops.hpp"

namespace weir::port {

namespace fs = std::filesystem;

namespace {

/// The first line; nothing where there is no such file.
std::optional<std::string> line_of(const fs::path& file) {
    std::ifstream in(file);
    std::string line;
    if (!std::getline(in, line)) return std::nullopt;
    return line;
}

template <class T>
std::optional<T> number_in(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end == text.data()) return std::nullopt;
    return value;
}

template <class T>
std::optional<T> number_of(const fs::path& file) {
    const auto line = line_of(file);
    return line ? number_in<T>(*line) : std::nullopt;
}

std::vector<std::uint32_t> list_of(const fs::path& file) {
    const auto line = line_of(file);
    return line ? parse_cpu_list(*line) : std::vector<std::uint32_t>{};
}

/// Numbers N of the entries PREFIXN of a folder, ascending.
std::vector<std::uint32_t> numbered(const fs::path& folder, std::string_view prefix) {
    std::vector<std::uint32_t> numbers;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename();
        if (!name.starts_with(prefix) || name.size() == prefix.size()) continue;
        const std::string_view digits = std::string_view(name).substr(prefix.size());
        if (const auto number = number_in<std::uint32_t>(digits); number && std::to_string(*number) == digits)
            numbers.push_back(*number);
    }
    std::ranges::sort(numbers);
    return numbers;
}

/// A folder .../hugepages/hugepages-2048kB and so on.
void add_hugepages(const fs::path& folder, NumaNode& node) {
    constexpr std::string_view prefix = "hugepages-";
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename();
        if (!name.starts_with(prefix)) continue;
        const std::uint64_t kib = number_in<std::uint64_t>(std::string_view(name).substr(prefix.size())).value_or(0);
        node.hugepage_bytes += (kib << 10U) * number_of<std::uint64_t>(entry.path() / "nr_hugepages").value_or(0);
        node.hugepage_free_bytes +=
            (kib << 10U) * number_of<std::uint64_t>(entry.path() / "free_hugepages").value_or(0);
    }
}

/// "Node 0 MemTotal:       16384 kB", or without the node in /proc/meminfo.
std::uint64_t memory_total(const fs::path& file) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        const std::size_t at = line.find("MemTotal:");
        if (at == std::string::npos) continue;
        std::istringstream words(line.substr(at + 9));
        std::uint64_t kib = 0;
        words >> kib;
        return kib << 10U;
    }
    return 0;
}

void read_nodes(const fs::path& root, HostTopology& host) {
    const fs::path folder = root / "sys/devices/system/node";
    for (const std::uint32_t id : numbered(folder, "node")) {
        const fs::path here = folder / fmt::format("node{}", id);
        NumaNode node{.id = static_cast<int>(id), .memory_bytes = memory_total(here / "meminfo")};
        add_hugepages(here / "hugepages", node);
        host.nodes.push_back(node);
        for (const std::uint32_t cpu : list_of(here / "cpulist"))
            if (const auto found = std::ranges::find(host.cpus, cpu, &Cpu::id); found != host.cpus.end())
                found->node = node.id;
    }
    if (!host.nodes.empty()) return;
    NumaNode node{.id = 0, .memory_bytes = memory_total(root / "proc/meminfo")};
    add_hugepages(root / "sys/kernel/mm/hugepages", node);
    host.nodes.push_back(node);
}

/// Of one folder of a control group: version 2 has "max 100000" or "250000 100000", version 1 two files.
double quota_of(const fs::path& folder) {
    std::istringstream both(line_of(folder / "cpu.max").value_or(""));
    double quota = 0;
    double period = 0;
    if (!(both >> quota >> period)) {
        quota = static_cast<double>(number_of<std::int64_t>(folder / "cpu.cfs_quota_us").value_or(-1));
        period = static_cast<double>(number_of<std::int64_t>(folder / "cpu.cfs_period_us").value_or(0));
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

/// The strictest of the group's own limit and those of the groups around it.
double read_quota(const fs::path& root, const std::string& control_group) {
    double strictest = 0;
    std::istringstream lines(control_group);
    for (std::string line; std::getline(lines, line);) {
        // "0::/path" in version 2, "4:cpu,cpuacct:/path" in version 1.
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const bool cpu = ("," + controllers + ",").find(",cpu,") != std::string::npos;
        if (!controllers.empty() && !cpu) continue;
        const fs::path mount = root / "sys/fs/cgroup" / controllers;
        fs::path group = fs::path(line.substr(second + 1)).relative_path();
        while (true) {
            const double quota = quota_of(mount / group);
            if (quota > 0) strictest = strictest > 0 ? std::min(strictest, quota) : quota;
            if (group.empty()) break;
            group = group.parent_path();
        }
    }
    return strictest;
}

void mark_usable(const ProcessCpus& process, HostTopology& host) {
    const auto allowed = [&](const Cpu& cpu) {
        return process.affinity.empty() || std::ranges::find(process.affinity, cpu.id) != process.affinity.end();
    };
    // All CPUs but the isolated ones are what a process has that nobody restricted. A list that somebody chose is kept
    // to, whatever else would be possible.
    const bool unrestricted =
        std::ranges::all_of(host.cpus, [&](const Cpu& cpu) { return allowed(cpu) != cpu.isolated; });
    for (Cpu& cpu : host.cpus)
        cpu.usable = allowed(cpu) || (unrestricted && process.can_bind && process.can_bind(cpu.id));
    if (std::ranges::none_of(host.cpus, &Cpu::usable)) host.cpus.front().usable = true;
}

std::string text_of(const fs::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Tried out by a thread that ends at once: the kernel knows, and files only hint at it.
bool can_bind_thread(std::uint32_t cpu) {
    bool bound = false;
    std::thread([&] {
        cpu_set_t set;
        CPU_ZERO(&set);
        if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
        bound = cpu < CPU_SETSIZE && ::sched_setaffinity(0, sizeof set, &set) == 0;
    }).join();
    return bound;
}

}  // namespace

const Cpu* HostTopology::find(std::uint32_t cpu) const noexcept {
    const auto found = std::ranges::find(cpus, cpu, &Cpu::id);
    return found == cpus.end() ? nullptr : &*found;
}

const NumaNode* HostTopology::node(int id) const noexcept {
    const auto found = std::ranges::find(nodes, id, &NumaNode::id);
    return found == nodes.end() ? nullptr : &*found;
}

std::vector<std::uint32_t> HostTopology::usable() const {
    std::vector<std::uint32_t> all;
    for (const Cpu& cpu : cpus)
        if (cpu.usable) all.push_back(cpu.id);
    return all;
}

std::uint32_t HostTopology::cores() const {
    std::set<std::uint32_t> all;
    for (const Cpu& cpu : cpus) all.insert(cpu.core);
    return static_cast<std::uint32_t>(all.size());
}

HostTopology read_topology(const fs::path& root, const ProcessCpus& process) {
    HostTopology host;
    const fs::path folder = root / "sys/devices/system/cpu";
    std::vector<std::uint32_t> online = list_of(folder / "online");
    if (online.empty()) online = numbered(folder, "cpu");
    if (online.empty()) online = process.affinity;
    if (online.empty()) online = {0};
    const std::vector<std::uint32_t> isolated = list_of(folder / "isolated");
    const std::vector<std::uint32_t> tickless = list_of(folder / "nohz_full");
    for (const std::uint32_t id : online) {
        Cpu cpu{.id = id, .core = id};
        const fs::path here = folder / fmt::format("cpu{}", id) / "topology";
        if (const auto siblings = list_of(here / "thread_siblings_list"); !siblings.empty())
            cpu.core = std::min(siblings.front(), id);
        cpu.isolated = std::ranges::find(isolated, id) != isolated.end();
        cpu.tickless = std::ranges::find(tickless, id) != tickless.end();
        host.cpus.push_back(cpu);
    }
    read_nodes(root, host);
    mark_usable(process, host);
    host.cpu_quota = read_quota(root, process.control_group);
    return host;
}

HostTopology host_topology() {
    return read_topology("/", {usable_cpus(), can_bind_thread, text_of("/proc/self/cgroup")});
}

int device_node(std::string_view device, const fs::path& root) {
    const std::string name(device.substr(0, device.find(',')));
    fs::path folder;
    if (config::is_pci_address(name)) {
        const bool has_domain = std::ranges::count(name, ':') == 2;
        folder = root / "sys/bus/pci/devices" / (has_domain ? name : "0000:" + name);
    } else {
        std::string interface = argument(std::string(device), "iface");
        if (interface.empty() || name.starts_with("net_tap")) interface = argument(std::string(device), "remote");
        if (interface.empty()) return any_node;
        folder = root / "sys/class/net" / interface / "device";
    }
    const int node = number_of<int>(folder / "numa_node").value_or(any_node);
    return node < 0 ? any_node : node;
}

std::vector<std::uint32_t> parse_cpu_list(std::string_view text) {
    constexpr std::uint32_t cpus_max = 65536;
    std::vector<std::uint32_t> cpus;
    while (!text.empty()) {
        const std::string_view item = text.substr(0, text.find(','));
        text.remove_prefix(std::min(item.size() + 1, text.size()));
        const auto first = number_in<std::uint32_t>(item);
        const std::size_t dash = item.find('-');
        const auto last = dash == std::string_view::npos ? first : number_in<std::uint32_t>(item.substr(dash + 1));
        if (!first || !last || *last < *first || *last >= cpus_max) break;
        for (std::uint32_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    }
    return cpus;
}

std::string cpu_list_text(const std::vector<std::uint32_t>& cpus) {
    const std::set<std::uint32_t> sorted(cpus.begin(), cpus.end());
    std::string text;
    for (auto at = sorted.begin(); at != sorted.end();) {
        const std::uint32_t first = *at;
        std::uint32_t last = first;
        while (++at != sorted.end() && *at == last + 1) ++last;
        text += fmt::format("{}{}", text.empty() ? "" : ",", first);
        if (last > first) text += fmt::format("-{}", last);
    }
    return text;
}

PreferNode::PreferNode(int node) noexcept {
    if (node < 0 || ::numa_available() < 0 || ::numa_max_node() == 0 || node > ::numa_max_node()) return;
    if (::get_mempolicy(&mode_, mask_, nodes_max, nullptr, 0) != 0) return;
    ::numa_set_preferred(node);
    changed_ = true;
}

PreferNode::~PreferNode() {
    if (changed_) ::set_mempolicy(mode_, mode_ == MPOL_DEFAULT || mode_ == MPOL_LOCAL ? nullptr : mask_, nodes_max);
}

}  // namespace weir::port
