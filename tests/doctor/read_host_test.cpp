// What is read of a recorded machine.
#include "doctor/read_host.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "recorded_machine.hpp"

namespace weir::doctor::test {
namespace {

TEST(ReadHost, FindsWhatAGoodMachineSays) {
    const RecordedMachine machine;
    write_good_xeon(machine);
    const HostFacts host = read_host(machine.root(), {{"0000:3b:00.0"}, {"ens3f0"}}, Depth::all);
    EXPECT_EQ(host.topology.cpus.size(), 16U);
    ASSERT_EQ(host.hugepages.size(), 2U);
    EXPECT_EQ(host.hugepages[1].free, 4096U);
    EXPECT_TRUE(host.hugepages_by_node);
    ASSERT_EQ(host.pci.size(), 1U);
    EXPECT_EQ(host.pci[0].driver, "mlx5_core");
    EXPECT_EQ(host.pci[0].bridge, "0000:3a:00.0");
    EXPECT_EQ(host.pci[0].node, 1);
    EXPECT_EQ(host.pci[0].iommu_group, "7");
    ASSERT_TRUE(host.pci[0].link);
    EXPECT_EQ(host.pci[0].link->gts, 16);
    EXPECT_NEAR(host.pci[0].link->gbps(), 227, 1);  // 16 GT/s x16
    EXPECT_EQ(*host.memlock, std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(*host.open_files, 1048576U);
    EXPECT_FALSE(host.may_lock);
    EXPECT_NEAR(*host.memory_bytes_per_s, 12 * 3200e6 * 8, 1);
    ASSERT_TRUE(host.interrupts);
    ASSERT_EQ(host.interrupts->size(), 1U);
    EXPECT_EQ(host.interrupts->front().name, "nvme0q1");
    EXPECT_EQ(host.interrupts->front().count, 107U);
    EXPECT_TRUE(*host.turbo);
    EXPECT_EQ(host.tasks->size(), 3U);
    EXPECT_EQ(host.interfaces.front().name, "ens3f0");
    EXPECT_TRUE(*host.interfaces.front().carrier);
}

TEST(ReadHost, KnowsNothingOfAnEmptyFolderAndSaysWhy) {
    const RecordedMachine machine;
    const HostFacts host = read_host(machine.root(), {{"0000:3b:00.0"}, {"ens3f0"}}, Depth::all);
    EXPECT_FALSE(host.pci.front().present);
    EXPECT_FALSE(host.interfaces.front().exists);
    EXPECT_EQ(host.turbo.why, "/sys/devices/system/cpu/cpufreq/boost: No such file or directory");
    EXPECT_FALSE(host.memory.known);
    for (const std::string& why :
         {host.mounts.why, host.command_line.why, host.tasks.why, host.interrupts.why, host.clock_source.why,
          host.memlock.why, host.dpdk_service.why, host.backlog_max.why, host.memory_bytes_per_s.why})
        EXPECT_FALSE(why.empty());
}

TEST(ReadHost, TakesNonsenseForNothing) {
    const RecordedMachine machine;
    write_good_xeon(machine);
    machine.write("/proc/sys/net/core/rmem_max", "many");
    machine.write("/proc/self/limits", "Max open files");
    machine.write("/proc/interrupts", "");
    machine.write("/dev/cpu_dma_latency", std::string("\0", 1));
    machine.write("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/current_link_speed", "Unknown");
    // A list of capabilities that goes round in a circle ends all the same.
    std::string config(256, '\0');
    config[0x06] = 0x10;
    config[0x34] = 0x60;
    config[0x61] = 0x60;
    machine.write("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/config", config);
    const HostFacts host = read_host(machine.root(), {{"0000:3b:00.0"}, {}}, Depth::all);
    EXPECT_EQ(host.receive_buffer_max.why, "/proc/sys/net/core/rmem_max: found 'many'");
    EXPECT_FALSE(host.open_files);
    EXPECT_FALSE(host.latency_limit_us);
    EXPECT_FALSE(host.pci.front().link);
    EXPECT_EQ(host.pci.front().payload_max.why, "it is no PCI Express device");
}

TEST(ReadHost, SurvivesFilesThatCannotBeRead) {
    const RecordedMachine machine;
    write_good_xeon(machine);
    // A folder opens, and fails when it is read, as some files of the kernel's do.
    machine.remove("/sys/class/net/ens3f0/speed");
    machine.write("/sys/class/net/ens3f0/speed/x", "");
    const HostFacts host = read_host(machine.root(), {{}, {"ens3f0"}}, Depth::all);
    EXPECT_EQ(host.interfaces.front().mbps.why, "/sys/class/net/ens3f0/speed: Is a directory");
}

TEST(ReadHost, IsInterestedInTheDevicesOfTheConfiguration) {
    const Interest interest = interest_of(good_config());
    EXPECT_EQ(interest.pci, std::vector<std::string>{"0000:3b:00.0"});
    EXPECT_EQ(interest.interfaces, std::vector<std::string>{"ens3f0"});
}

}  // namespace
}  // namespace weir::doctor::test
