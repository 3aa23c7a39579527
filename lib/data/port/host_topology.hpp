// What decides where a thread should run and where its memory should lie: CPUs, physical cores, NUMA nodes, isolation,
// hugepages, and the node of a device. Read from sysfs, below a root that tests replace; every file may be absent, as
// in a container, and then the machine looks like one node of ordinary CPUs. Plain data: what is decided from it is
// decided elsewhere, and can be tried on machines that are not there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::port {

constexpr int any_node = -1;  ///< no node is nearer than another, or it is not known

struct Cpu {
    std::uint32_t id = 0;
    int node = 0;
    std::uint32_t core = 0;  ///< the lowest CPU of its physical core: SMT siblings have the same
    bool isolated = false;   ///< the scheduler puts nothing here unasked (isolcpus, or an isolated cpuset)
    bool tickless = false;   ///< nohz_full
    bool usable = true;      ///< a thread of this process can be bound to it

    bool operator==(const Cpu&) const = default;
};

struct NumaNode {
    int id = 0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t hugepage_bytes = 0;  ///< reserved, all sizes together
    std::uint64_t hugepage_free_bytes = 0;

    bool operator==(const NumaNode&) const = default;
};

struct HostTopology {
    std::vector<Cpu> cpus;        ///< those that are online, ascending; at least one
    std::vector<NumaNode> nodes;  ///< ascending; at least one
    double cpu_quota = 0;         ///< CPU time that the control group gets, in CPUs; 0: unlimited

    /// Null: there is no such CPU.
    [[nodiscard]] const Cpu* find(std::uint32_t cpu) const noexcept;
    [[nodiscard]] const NumaNode* node(int id) const noexcept;
    [[nodiscard]] std::vector<std::uint32_t> usable() const;
    [[nodiscard]] std::uint32_t cores() const;  ///< physical ones
};

/// What is true of this process rather than of the machine.
struct ProcessCpus {
    std::vector<std::uint32_t> affinity;  ///< CPUs that its threads may run on; empty: all
    /// Whether a thread of it can be bound to a CPU outside of that. Started as usual, a process has all CPUs but the
    /// isolated ones, and may still bind threads to those, unless its cpuset forbids it.
    std::function<bool(std::uint32_t)> can_bind;
    std::string control_group;  ///< /proc/self/cgroup
};

/// The machine described by the files below `root` ("/": this one).
[[nodiscard]] HostTopology read_topology(const std::filesystem::path& root, const ProcessCpus& process);
/// This machine and this process.
[[nodiscard]] HostTopology host_topology();

/// The NUMA node of a device as the configuration names it: a PCI address, or a virtual device on a kernel interface
/// ("net_af_packet0,iface=det0"). any_node where it has none or does not say.
[[nodiscard]] int device_node(std::string_view device, const std::filesystem::path& root = "/");

/// "0-3,8" -> 0 1 2 3 8; what cannot be read ends the list.
[[nodiscard]] std::vector<std::uint32_t> parse_cpu_list(std::string_view text);
/// The reverse. Ascending, without repetitions.
[[nodiscard]] std::string cpu_list_text(const std::vector<std::uint32_t>& cpus);

/// While one lives, memory that this thread touches first comes from `node` if there is some, and otherwise from any.
/// Nothing where there is one node only, where the kernel has no NUMA, or for any_node.
class PreferNode {
public:
    explicit PreferNode(int node) noexcept;
    ~PreferNode();
    PreferNode(const PreferNode&) = delete;
    PreferNode& operator=(const PreferNode&) = delete;

private:
    static constexpr unsigned long nodes_max = 1024;
    bool changed_ = false;
    int mode_ = 0;  ///< before
    unsigned long mask_[nodes_max / (8 * sizeof(unsigned long))] = {};
};

}  // namespace weir::port
