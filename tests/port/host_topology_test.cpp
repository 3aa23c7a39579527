// Reading a machine from sysfs: two nodes with SMT, isolation and hugepages as the kernel writes them, and what is left
// of it where files are missing.
#include "port/host_topology.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "port/eal.hpp"
#include "temporary_directory.hpp"

namespace weir::port {

namespace {

namespace fs = std::filesystem;
using Cpus = std::vector<std::uint32_t>;

class HostTopologyTest : public testing::Test {
protected:
    void write(const fs::path& file, const std::string& text) const {
        fs::create_directories((root_ / file).parent_path());
        std::ofstream(root_ / file) << text << '\n';
    }
    /// Two nodes with two cores of two threads each.
    void write_machine() const {
        write("sys/devices/system/cpu/online", "0-7");
        write("sys/devices/system/cpu/isolated", "2-3,6-7");
        write("sys/devices/system/cpu/nohz_full", "6-7");
        for (unsigned cpu = 0; cpu < 8; ++cpu)
            write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
                  std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
        write("sys/devices/system/node/node0/cpulist", "0-1,4-5");
        write("sys/devices/system/node/node1/cpulist", "2-3,6-7");
        write("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       16384 kB\nNode 0 MemFree:  1 kB");
        write("sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "512");
        write("sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", "500");
        write("sys/devices/system/node/node1/hugepages/hugepages-1048576kB/nr_hugepages", "1");
    }

    const test::TemporaryDirectory root_;
};

TEST_F(HostTopologyTest, IsReadFromSysfs) {
    write_machine();
    const HostTopology host = read_topology(root_, {});
    ASSERT_EQ(host.cpus.size(), 8U);
    EXPECT_EQ(host.cpus[1], (Cpu{.id = 1, .node = 0, .core = 1}));
    EXPECT_EQ(host.cpus[7], (Cpu{.id = 7, .node = 1, .core = 3, .isolated = true, .tickless = true}));
    EXPECT_EQ(host.cores(), 4U);
    ASSERT_EQ(host.nodes.size(), 2U);
    EXPECT_EQ(host.nodes[0], (NumaNode{0, 16U << 20U, 0, 0}));
    EXPECT_EQ(host.nodes[1], (NumaNode{1, 0, std::uint64_t{2} << 30U, std::uint64_t{1000} << 20U}));
    EXPECT_EQ(host.find(8), nullptr);
    EXPECT_EQ(host.node(2), nullptr);
}

TEST_F(HostTopologyTest, MissingFilesMakeOneNodeOfOrdinaryCpus) {
    ProcessCpus process;
    process.affinity = {4, 9};
    const HostTopology host = read_topology(root_, process);
    ASSERT_EQ(host.cpus.size(), 2U);
    EXPECT_EQ(host.cpus[1], (Cpu{.id = 9, .node = 0, .core = 9}));
    EXPECT_EQ(host.nodes, std::vector<NumaNode>(1));
    EXPECT_EQ(read_topology(root_, {}).usable(), Cpus{0});
    write("sys/devices/system/cpu/cpu0/x", "");
    write("sys/devices/system/cpu/cpu12/x", "");
    write("sys/devices/system/cpu/cpufreq/x", "");
    EXPECT_EQ(read_topology(root_, {}).usable(), (Cpus{0, 12}));
}

TEST_F(HostTopologyTest, IsolatedCpusAreUsableUnlessSomebodyChoseOthers) {
    write_machine();
    ProcessCpus process;
    process.affinity = {0, 1, 4, 5};  // what a process has that nobody restricted
    EXPECT_EQ(read_topology(root_, process).usable(), (Cpus{0, 1, 4, 5}));
    process.can_bind = [](std::uint32_t cpu) { return cpu != 7; };  // a cpuset
    EXPECT_EQ(read_topology(root_, process).usable(), (Cpus{0, 1, 2, 3, 4, 5, 6}));
    process.affinity = {0, 1};  // taskset
    EXPECT_EQ(read_topology(root_, process).usable(), (Cpus{0, 1}));
    process.affinity = {2, 3, 6};
    EXPECT_EQ(read_topology(root_, process).usable(), (Cpus{2, 3, 6}));
}

TEST_F(HostTopologyTest, TheStrictestQuotaOfAllGroupsCounts) {
    ProcessCpus process;
    process.control_group = "0::/daq/weir\n";
    EXPECT_EQ(read_topology(root_, process).cpu_quota, 0);
    write("sys/fs/cgroup/daq/weir/cpu.max", "max 100000");
    EXPECT_EQ(read_topology(root_, process).cpu_quota, 0);
    write("sys/fs/cgroup/daq/cpu.max", "250000 100000");
    EXPECT_EQ(read_topology(root_, process).cpu_quota, 2.5);
    process.control_group = "8:pids:/\n4:cpu,cpuacct:/box\n";
    write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "150000");
    write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000");
    EXPECT_EQ(read_topology(root_, process).cpu_quota, 1.5);
    write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1");
    EXPECT_EQ(read_topology(root_, process).cpu_quota, 0);
}

TEST_F(HostTopologyTest, DevicesKnowTheirNode) {
    write("sys/bus/pci/devices/0000:3b:00.0/numa_node", "1");
    write("sys/bus/pci/devices/0000:3b:00.1/numa_node", "-1");
    write("sys/class/net/det0/device/numa_node", "1");
    EXPECT_EQ(device_node("0000:3b:00.0", root_), 1);
    EXPECT_EQ(device_node("3b:00.0,mprq_en=1", root_), 1);
    EXPECT_EQ(device_node("0000:3b:00.1", root_), any_node);
    EXPECT_EQ(device_node("0000:5e:00.0", root_), any_node);
    EXPECT_EQ(device_node("net_af_packet0,iface=det0", root_), 1);
    EXPECT_EQ(device_node("net_tap0,iface=det0", root_), any_node) << "that one it makes itself";
    EXPECT_EQ(device_node("net_tap0,iface=dtap0,remote=det0", root_), 1);
    EXPECT_EQ(device_node("net_memif0,socket=/run/a", root_), any_node);
    EXPECT_EQ(device_node("sim,format=jungfrau", root_), any_node);
}

TEST_F(HostTopologyTest, ThisMachineIsOne) {
    const HostTopology host = host_topology();
    ASSERT_FALSE(host.cpus.empty());
    ASSERT_FALSE(host.nodes.empty());
    for (const std::uint32_t cpu : usable_cpus())
        EXPECT_TRUE(host.find(cpu) != nullptr && host.find(cpu)->usable) << cpu;
    const PreferNode here(host.cpus.front().node);
    const PreferNode nowhere(12345);
    EXPECT_NE(std::vector<char>(1U << 20U, 'x').data(), nullptr);
}

TEST(CpuLists, AreReadAndWritten) {
    EXPECT_EQ(parse_cpu_list("0-3,8\n"), (Cpus{0, 1, 2, 3, 8}));
    EXPECT_EQ(parse_cpu_list(""), Cpus{});
    EXPECT_EQ(parse_cpu_list("(null)"), Cpus{});
    EXPECT_EQ(parse_cpu_list("2,5-4,7"), Cpus{2});
    EXPECT_EQ(parse_cpu_list("1,4000000000-4100000000"), Cpus{1});
    EXPECT_EQ(cpu_list_text({8, 0, 1, 2, 3, 3}), "0-3,8");
    EXPECT_EQ(cpu_list_text({}), "");
}

}  // namespace

}  // namespace weir::port
