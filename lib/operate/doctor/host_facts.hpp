// What is known of the host and its devices, before anything is judged: plain data, which tests fill like any machine.
// Every fact can be "not known", with the reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "port/free_memory.hpp"
#include "port/host_topology.hpp"

namespace weir::doctor {

template <class T>
struct Known {
    std::optional<T> value{};
    std::string why = "nobody asked";  ///< it is not known

    Known() = default;
    Known(T known) : value(std::move(known)) { why.clear(); }
    [[nodiscard]] static Known no(const std::string& reason) {
        Known unknown;
        unknown.why = reason;
        return unknown;
    }
    explicit operator bool() const noexcept { return value.has_value(); }
    const T& operator*() const noexcept { return *value; }
    const T* operator->() const noexcept { return &*value; }
};

struct HugePages {
    int node = 0;
    std::uint32_t page_kib = 2048;
    std::uint64_t total = 0;  ///< pages
    std::uint64_t free = 0;
};

struct Mount {
    std::string where;
    std::string type;
    std::string options;
};

/// A thread of some process.
struct Task {
    std::uint32_t id = 0;
    std::string name;
    std::vector<std::uint32_t> cpus;  ///< that it may run on
    bool kernel = false;              ///< a thread of the kernel's
};

struct Interrupt {
    std::uint32_t number = 0;
    std::string name;                 ///< of who asked for it, as far as the kernel says
    std::vector<std::uint32_t> cpus;  ///< that it is delivered to
    std::uint64_t count = 0;          ///< so far, on all CPUs
};

struct IdleState {
    std::uint32_t place = 0;  ///< N of stateN
    std::string name;         ///< "C6"
    std::uint32_t latency_us = 0;
    bool disabled = false;
};

struct CpuPower {
    std::uint32_t cpu = 0;
    Known<std::string> governor;
    std::vector<IdleState> idle;
};

/// As one end of a link says it: transfers per second on each lane, and lanes.
struct PciLink {
    double gts = 0;  ///< GT/s: 8 is generation 3
    std::uint32_t width = 0;
    /// Payload that goes through, without what packets and acknowledgements take.
    [[nodiscard]] double gbps() const noexcept;
};

struct PciFacts {
    std::string address;
    bool present = false;
    bool network = false;
    std::string id;  ///< vendor and device, "15b3:101d"
    std::string driver;
    std::vector<std::string> interfaces;
    std::string iommu_group;  ///< empty: it is in none
    int node = port::any_node;
    Known<PciLink> link;
    Known<PciLink> link_max;
    std::string bridge;  ///< that it hangs on; empty: none
    Known<PciLink> bridge_link;
    Known<PciLink> bridge_link_max;
    Known<std::uint32_t> payload_max;         ///< MPS in force, bytes
    Known<std::uint32_t> payload_capability;  ///< and what the device can
    Known<std::uint32_t> read_request_max;    ///< MRRS, bytes
    bool default_route = false;               ///< one of its interfaces has it
    bool in_use = false;                      ///< one of its interfaces is up
};

/// A kernel interface that a port sits on.
struct InterfaceFacts {
    std::string name;
    bool exists = false;
    Known<std::uint32_t> mtu;
    Known<bool> carrier;
    Known<std::uint32_t> mbps;
    bool default_route = false;
    // Only the kernel can be asked, not sysfs.
    Known<std::pair<std::uint32_t, std::uint32_t>> ring;  ///< receive descriptors: as they are, and at most
    Known<std::vector<std::string>> merging;              ///< of "gro" and "lro", those that are on
    Known<std::string> firmware;
};

/// What a rule came to in the device.
struct RuleOutcome {
    std::string rule;  ///< as testpmd writes it
    enum class Effect : std::uint8_t { verified, none, not_seen, software, refused } effect = Effect::not_seen;
    std::string remark;
};

/// What DPDK says of a port that was opened for a moment.
struct DeviceFacts {
    std::string port;        ///< its name
    std::string not_opened;  ///< why the rest is not known; empty: it is
    std::string driver;
    std::uint32_t mtu = 0;
    bool link_up = false;
    std::uint32_t mbps = 0;  ///< 0: not known
    std::string firmware;
    std::uint32_t rx_descriptors = 0;
    std::uint32_t rx_descriptors_max = 0;
    int node = port::any_node;
    Known<std::string> flow_control;                                    ///< "off", "full", "sends", "obeys"
    std::vector<std::pair<std::string, std::uint64_t>> pause_counters;  ///< that are not zero
    Known<std::vector<RuleOutcome>> rules;
};

struct ClockSync {
    bool synchronised = false;
    std::int64_t error_us = 0;  ///< the kernel's estimate
};

struct DpdkService {
    bool enabled = false;
    bool masked = false;
    bool frees = false;  ///< FREE_PREVIOUS_ALLOCATIONS, as far as its file says
};

/// Of one sink.
struct DiskFacts {
    std::string sink;    ///< "sink events"
    std::string folder;  ///< that the run directory will be in
    bool exists = false;
    std::string file_system;
    Known<std::uint64_t> free_bytes;  ///< for an ordinary user
    Known<double> bytes_per_s;        ///< measured
    std::string how;                  ///< "past the page cache"
};

struct HostFacts {
    std::filesystem::path root = "/";  ///< where all this was read
    port::HostTopology topology;
    std::vector<HugePages> hugepages;  ///< by node and size; one node where the kernel has none
    bool hugepages_by_node = false;    ///< they can be reserved on each node
    Known<std::vector<Mount>> mounts;
    Known<std::string> command_line;  ///< of the kernel
    port::FreeMemory memory;
    bool iommu = false;  ///< there is an IOMMU in use
    bool vfio = false;   ///< the module vfio-pci is loaded
    std::vector<PciFacts> pci;
    std::vector<InterfaceFacts> interfaces;
    std::vector<CpuPower> cpus;
    Known<bool> turbo;
    Known<std::uint32_t> latency_limit_us;  ///< of /dev/cpu_dma_latency, as somebody holds it
    Known<std::vector<Task>> tasks;
    Known<std::vector<Interrupt>> interrupts;
    Known<std::string> clock_source;
    std::vector<std::string> clock_sources;  ///< to choose from
    Known<ClockSync> clock_sync;
    Known<std::uint64_t> memlock;     ///< bytes that may be locked; the largest number: unlimited
    Known<std::uint64_t> open_files;  ///< at most; DPDK raises its own limit to that
    bool may_lock = false;            ///< CAP_IPC_LOCK: memlock does not matter
    Known<DpdkService> dpdk_service;
    Known<std::uint64_t> receive_buffer_max;  ///< net.core.rmem_max
    Known<std::uint64_t> backlog_max;         ///< net.core.netdev_max_backlog
    Known<std::uint64_t> backlog_dropped;     ///< since boot, all CPUs
    Known<double> memory_bytes_per_s;         ///< of all channels that have a module
    std::vector<DiskFacts> disks;
    Known<std::vector<DeviceFacts>> devices;
};

}  // namespace weir::doctor
