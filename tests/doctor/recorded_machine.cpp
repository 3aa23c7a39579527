#include "recorded_machine.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace weir::doctor::test {

namespace fs = std::filesystem;

void RecordedMachine::write(const std::string& path, const std::string& text) const {
    const fs::path file = root() / fs::path(path).relative_path();
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text << (text.ends_with('\0') ? "" : "\n");
}

void RecordedMachine::link(const std::string& path, const std::string& target) const {
    const fs::path file = root() / fs::path(path).relative_path();
    fs::create_directories(file.parent_path());
    fs::remove(file);
    fs::create_symlink(target, file);
}

void RecordedMachine::remove(const std::string& path) const {
    fs::remove_all(root() / fs::path(path).relative_path());
}

std::string RecordedMachine::read(const std::string& path) const {
    std::ifstream in(root() / fs::path(path).relative_path());
    return {std::istreambuf_iterator<char>(in), {}};
}

void RecordedMachine::write_cpus(const std::string& isolated, const std::string& governor) const {
    write("/sys/devices/system/cpu/online", "0-15");
    write("/sys/devices/system/cpu/isolated", isolated);
    write("/sys/devices/system/cpu/nohz_full", isolated);
    for (unsigned cpu = 0; cpu < 16; ++cpu) {
        const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}", cpu);
        write(folder + "/topology/thread_siblings_list", fmt::format("{},{}", cpu % 8, cpu % 8 + 8));
        write(folder + "/cpufreq/scaling_governor", governor);
        write(folder + "/cpuidle/state0/name", "POLL");
        write(folder + "/cpuidle/state0/latency", "0");
        write(folder + "/cpuidle/state0/disable", "0");
        write(folder + "/cpuidle/state1/name", "C6");
        write(folder + "/cpuidle/state1/latency", "133");
        write(folder + "/cpuidle/state1/disable", "0");
    }
    write("/sys/devices/system/node/node0/cpulist", "0-3,8-11");
    write("/sys/devices/system/node/node1/cpulist", "4-7,12-15");
    for (const char* node : {"node0", "node1"})
        write(fmt::format("/sys/devices/system/node/{}/meminfo", node), "Node MemTotal:  100663296 kB");
}

void RecordedMachine::write_pci(const Pci& device) const {
    const std::string bus = "/sys/bus/pci/devices/";
    const std::string place = "/sys/devices/pci0000:3a/" + device.bridge;
    const std::string folder = place + "/" + device.address;
    write(folder + "/vendor", "0x15b3");
    write(folder + "/device", "0x101d");
    write(folder + "/class", "0x020000");
    write(folder + "/numa_node", std::to_string(device.node));
    write(folder + "/current_link_speed", device.speed);
    write(folder + "/current_link_width", device.width);
    write(folder + "/max_link_speed", "16.0 GT/s PCIe");
    write(folder + "/max_link_width", "16");
    for (const char* which : {"current", "max"}) {
        write(fmt::format("{}/{}_link_speed", place, which), "16.0 GT/s PCIe");
        write(fmt::format("{}/{}_link_width", place, which), "16");
    }
    // Status says that there are capabilities; the first is at 0x60, PCI Express: it can take payloads of 512 bytes.
    std::string config(256, '\0');
    config[0x06] = 0x10;
    config[0x34] = 0x60;
    config[0x60] = 0x10;
    config[0x64] = 0x02;
    config[0x68] = static_cast<char>(device.control & 0xffU);
    config[0x69] = static_cast<char>(device.control >> 8U);
    write(folder + "/config", config);
    if (!device.driver.empty()) {
        write("/sys/bus/pci/drivers/" + device.driver + "/x", "");
        link(folder + "/driver", "../../../../bus/pci/drivers/" + device.driver);
    }
    if (device.iommu) {
        write("/sys/kernel/iommu_groups/7/x", "");
        link(folder + "/iommu_group", "../../../../kernel/iommu_groups/7");
    }
    if (!device.interface.empty()) write(folder + "/net/" + device.interface + "/x", "");
    link(bus + device.address, "../../../devices/pci0000:3a/" + device.bridge + "/" + device.address);
    link(bus + device.bridge, "../../../devices/pci0000:3a/" + device.bridge);
    write(place + "/class", "0x060400");
}

void RecordedMachine::write_interface(const std::string& name, const std::string& mtu,
                                      const std::string& carrier) const {
    const std::string folder = "/sys/class/net/" + name;
    write(folder + "/mtu", mtu);
    write(folder + "/carrier", carrier);
    write(folder + "/operstate", carrier == "1" ? "up" : "down");
    write(folder + "/flags", carrier == "1" ? "0x1043" : "0x1002");
    write(folder + "/speed", "10000");
}

void RecordedMachine::write_task(unsigned id, const std::string& name, const std::string& cpus, bool kernel) const {
    const std::string folder = fmt::format("/proc/{}", id);
    if (kernel)
        std::ofstream(
            (fs::create_directories(root() / fmt::format("proc/{}", id)), root() / fmt::format("proc/{}/cmdline", id)));
    else
        write(folder + "/cmdline", name + std::string(1, '\0'));
    write(fmt::format("{0}/task/{1}/status", folder, id),
          fmt::format("Name:\t{}\nState:\tS (sleeping)\nCpus_allowed:\tffff\nCpus_allowed_list:\t{}", name, cpus));
}

namespace {

void write_limits(const RecordedMachine& machine, const std::string& memlock, const std::string& files) {
    machine.write("/proc/self/limits",
                  fmt::format("Limit                     Soft Limit           Hard Limit           Units\n"
                              "Max open files            1024                 {1}                files\n"
                              "Max locked memory         {0}                  {0}                bytes",
                              memlock, files));
    machine.write("/proc/self/status", "Name:\tweir\nCapEff:\t0000000000000000");
    machine.write("/proc/self/cgroup", "0::/");
}

void write_hugepages(const RecordedMachine& machine, int node, unsigned total, unsigned free) {
    const std::string folder = fmt::format("/sys/devices/system/node/node{}/hugepages/hugepages-2048kB", node);
    machine.write(folder + "/nr_hugepages", std::to_string(total));
    machine.write(folder + "/free_hugepages", std::to_string(free));
}

/// A memory module as SMBIOS describes it.
void write_module(const RecordedMachine& machine, unsigned index, unsigned mega_transfers) {
    std::string raw(0x28, '\0');
    raw[0x00] = 17;
    raw[0x0d] = 0x40;  // 16 GiB
    raw[0x20] = static_cast<char>(mega_transfers & 0xffU);
    raw[0x21] = static_cast<char>(mega_transfers >> 8U);
    machine.write(fmt::format("/sys/firmware/dmi/entries/17-{}/raw", index), raw);
}

void write_interrupt(const RecordedMachine& machine, unsigned number, const std::string& cpus) {
    machine.write(fmt::format("/proc/irq/{}/effective_affinity_list", number), cpus);
    machine.write(fmt::format("/proc/irq/{}/smp_affinity_list", number), cpus);
}

config::RunConfig parsed(const std::string& port0, const std::string& port1, const std::string& rest) {
    const std::string text =
        "[[port]]\nname = \"det0\"\ndevice = \"0000:3b:00.0\"\n" + port0 + "[[port]]\nname = \"det1\"\n" + port1 +
        "[[stream]]\nport = \"det0\"\ntransport = \"udp\"\nudp_dst = [50001]\nformat = \"jungfrau\"\n"
        "[[stream]]\nport = \"det1\"\ntransport = \"udp\"\nudp_dst = [50002]\nformat = \"jungfrau\"\n"
        "[[sink]]\nkind = \"events\"\npath = \"/data/{name}-{run:06}\"\n" +
        rest;
    return config::parse_config(text, "/etc/weir/det.toml");
}

DeviceFacts opened(const std::string& port) {
    DeviceFacts device;
    device.port = port;
    device.driver = port == "det0" ? "mlx5_pci" : "net_af_packet";
    device.mtu = port == "det0" ? 9000 : 1500;
    device.link_up = true;
    device.mbps = port == "det0" ? 100000 : 10000;
    device.firmware = port == "det0" ? "22.35.1012" : "";
    device.rx_descriptors = 4096;
    device.rx_descriptors_max = 8192;
    device.flow_control = std::string("off");
    device.rules = std::vector<RuleOutcome>{};
    return device;
}

}  // namespace

void write_good_xeon(const RecordedMachine& machine) {
    machine.write_cpus("4-7,12-15", "performance");
    machine.write("/sys/devices/system/cpu/intel_pstate/no_turbo", "0");
    machine.write_pci({.address = "0000:3b:00.0",
                       .bridge = "0000:3a:00.0",
                       .driver = "mlx5_core",
                       .interface = "ens2f0np0",
                       .node = 1});
    machine.write("/sys/class/iommu/dmar0/x", "");
    machine.write_interface("ens2f0np0", "9000");
    machine.write_interface("ens3f0", "9000");
    machine.write_interface("eno1", "1500");
    machine.write("/proc/net/route", "Iface\tDestination\tGateway\neno1\t00000000\t0101A8C0");
    machine.write(
        "/proc/cmdline",
        "BOOT_IMAGE=/vmlinuz root=/dev/sda1 isolcpus=managed_irq,domain,4-7,12-15 nohz_full=4-7,12-15 intel_iommu=on iommu=pt");
    machine.write(
        "/proc/mounts",
        "/dev/sda1 / ext4 rw 0 0\nnone /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n/dev/nvme0n1 /data xfs rw 0 0");
    machine.write("/data/x", "");
    machine.write("/sys/module/vfio_pci/x", "");
    machine.write("/proc/meminfo", "MemTotal:       201326592 kB\nMemAvailable:   150000000 kB");
    write_hugepages(machine, 0, 4096, 4096);
    write_hugepages(machine, 1, 4096, 4096);
    write_limits(machine, "unlimited", "1048576");
    machine.write_task(1, "systemd", "0-3,8-11");
    machine.write_task(812, "sshd", "0-3,8-11");
    machine.write_task(41, "migration/5", "5", true);
    write_interrupt(machine, 120, "1");
    machine.write("/proc/interrupts",
                  "           CPU0       CPU1\n 120:        100          7   IR-PCI-MSI 512-edge   nvme0q1");
    machine.write("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc");
    machine.write("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm");
    machine.write("/etc/systemd/system/multi-user.target.wants/x", "");
    machine.link("/etc/systemd/system/dpdk.service", "/dev/null");
    machine.write("/proc/sys/net/core/rmem_max", "67108864");
    machine.write("/proc/sys/net/core/netdev_max_backlog", "20000");
    machine.write("/proc/net/softnet_stat", "00a1b2c3 00000000 00000000\n00000001 00000000 00000000");
    for (unsigned module = 0; module < 12; ++module) write_module(machine, module, 3200);
}

void write_bad_xeon(const RecordedMachine& machine) {
    write_good_xeon(machine);
    machine.write_cpus("", "powersave");
    machine.write("/sys/devices/system/cpu/intel_pstate/no_turbo", "1");
    machine.remove("/sys/devices/pci0000:3a");
    // A slot with four lanes of generation 3, MPS and MRRS of 128, the kernel's driver, no IOMMU.
    machine.write_pci({.address = "0000:3b:00.0",
                       .bridge = "0000:3a:00.0",
                       .driver = "ice",
                       .interface = "ens2f0",
                       .node = 1,
                       .speed = "8.0 GT/s PCIe",
                       .width = "4",
                       .iommu = false,
                       .control = 0x0016});
    machine.write_interface("ens2f0", "9000", "0");
    machine.write_interface("ens3f0", "1500");
    machine.remove("/sys/class/iommu");
    machine.write("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet");
    machine.write("/proc/mounts", "/dev/sda1 / ext4 rw 0 0");
    machine.write("/proc/meminfo", "MemTotal:       2013265 kB\nMemAvailable:   1000 kB");
    machine.remove("/data");
    machine.remove("/sys/module/vfio_pci");
    write_hugepages(machine, 0, 0, 0);
    write_hugepages(machine, 1, 16, 4);
    write_limits(machine, "8388608", "256");
    machine.write_task(812, "postgres", "0-15");
    write_interrupt(machine, 120, "1");
    machine.write("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet");
    machine.remove("/etc/systemd/system/dpdk.service");
    machine.link("/etc/systemd/system/multi-user.target.wants/dpdk.service", "/lib/systemd/system/dpdk.service");
    machine.write("/proc/sys/net/core/rmem_max", "212992");
    machine.write("/proc/sys/net/core/netdev_max_backlog", "1000");
    machine.write("/proc/net/softnet_stat", "00a1b2c3 0000000f 00000000");
    for (unsigned module = 0; module < 12; ++module)
        machine.remove(fmt::format("/sys/firmware/dmi/entries/17-{}", module));
    write_module(machine, 0, 2133);
}

void write_epyc_guest(const RecordedMachine& machine) {
    machine.write("/sys/devices/system/cpu/online", "0-7");
    machine.write("/sys/devices/system/cpu/isolated", "2-7");
    machine.write("/sys/devices/system/cpu/nohz_full", "2-7");
    for (unsigned cpu = 0; cpu < 8; ++cpu)
        machine.write(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu),
                      std::to_string(cpu));
    machine.write("/sys/devices/system/node/node0/cpulist", "0-7");
    machine.write_pci({.address = "0000:3b:00.0", .bridge = "0000:3a:00.0", .driver = "vfio-pci", .node = -1});
    for (const char* which : {"current", "max"})
        machine.remove(fmt::format("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/{}_link_speed", which));
    machine.write("/sys/class/iommu/ivhd0/x", "");
    machine.write("/sys/module/vfio_pci/x", "");
    machine.write("/proc/cmdline", "root=/dev/vda1 iommu=pt isolcpus=2-7 nohz_full=2-7");
    machine.write("/proc/mounts", "none /dev/hugepages hugetlbfs rw 0 0");
    machine.write("/proc/meminfo", "MemTotal:  33554432 kB\nMemAvailable:  30000000 kB");
    write_hugepages(machine, 0, 4096, 4096);
    write_limits(machine, "unlimited", "524288");
    machine.write("/sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock");
}

config::RunConfig good_config() {
    return parsed("queues = 2\n", "device = \"net_af_packet0,iface=ens3f0\"\n",
                  "[events]\nsources = 2\nmemory = \"1GiB\"\ntimeout_ms = 100\n"
                  "[lcores]\nrx = [4, 5]\nbuild = [6]\nwork = [7]\nidle = \"spin\"\n");
}

config::RunConfig bad_config() {
    return parsed("queues = 2\n", "device = \"net_af_packet0,iface=ens3f0,framesz=2048,blocksz=65536\"\nmtu = 1500\n",
                  "[events]\nsources = 2\nmemory = \"1MiB\"\ntimeout_ms = 100\n"
                  "[lcores]\nrx = [1, 9]\nbuild = [6]\nwork = [7]\nidle = \"sleep\"\n");
}

void add_good_live_facts(HostFacts& host) {
    for (InterfaceFacts& interface : host.interfaces) {
        interface.ring = std::pair<std::uint32_t, std::uint32_t>{4096, 4096};
        interface.merging = std::vector<std::string>{};
    }
    host.clock_sync = ClockSync{true, 12};
    DeviceFacts card = opened("det0");
    card.rules = std::vector<RuleOutcome>{{"flow create 0 ...", RuleOutcome::Effect::verified, ""}};
    host.devices = std::vector<DeviceFacts>{card, opened("det1")};
    for (DiskFacts& disk : host.disks) {
        disk.free_bytes = std::uint64_t{400} << 40U;
        disk.bytes_per_s = 20e9;
        disk.how = "past the page cache";
    }
}

void add_bad_live_facts(HostFacts& host) {
    for (InterfaceFacts& interface : host.interfaces) {
        interface.ring = std::pair<std::uint32_t, std::uint32_t>{256, 4096};
        interface.merging = std::vector<std::string>{"gro"};
    }
    host.clock_sync = ClockSync{false, 16000000};
    DeviceFacts card = opened("det0");
    card.link_up = false;
    card.rx_descriptors = 64;
    card.pause_counters = {{"rx_pause_ctrl_phy", 17}};
    card.rules = std::vector<RuleOutcome>{
        {"flow create 0 ...", RuleOutcome::Effect::none, "of 16 packets 16 arrived otherwise"}};
    host.devices = std::vector<DeviceFacts>{card, opened("det1")};
    host.disks = {{.sink = "sink events",
                   .folder = "/slow",
                   .exists = true,
                   .file_system = "ext4",
                   .free_bytes = std::uint64_t{100} << 30U,
                   .bytes_per_s = 200e6,
                   .how = "past the page cache"}};
}

std::vector<Finding> Judged::of(std::string_view check) const {
    std::vector<Finding> some;
    for (const Finding& finding : findings)
        if (finding.check == check) some.push_back(finding);
    return some;
}

Finding Judged::only(std::string_view check) const {
    const std::vector<Finding> some = of(check);
    EXPECT_EQ(some.size(), 1U) << check;
    return some.empty() ? Finding{} : some.front();
}

Judged judged(const RecordedMachine& machine, const config::RunConfig* config, const Load& load,
              void (*live)(HostFacts&)) {
    ExamineOptions options;
    options.root = machine.root();
    options.load = load;
    Examination examination(config, options);
    static_cast<void>(examination.look());
    Judged out{examination.host(), {}};
    if (live != nullptr) live(out.host);
    out.findings = judge({out.host, config != nullptr ? &examination.run() : nullptr, load});
    return out;
}

}  // namespace weir::doctor::test
