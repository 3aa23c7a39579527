// Each check on a machine that is set up well, on one that is not, and on one that does not say: what it finds, and the
// command that it gives.
#include "doctor/check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "recorded_machine.hpp"

namespace weir::doctor::test {
namespace {

using Strings = std::vector<std::string>;

constexpr Load easy{.bits_per_s = 10e9, .packet_bytes = 8282, .event_bytes = 1U << 20U, .events_per_s = 0};
constexpr Load hard{.bits_per_s = 400e9, .packet_bytes = 1086, .event_bytes = 1U << 20U, .events_per_s = 0};

std::string words_of(const std::vector<Finding>& findings) {
    std::string text;
    for (const Finding& finding : findings)
        text += std::string(name_of(finding.status)) + " " + finding.check + " (" + finding.about +
                "): " + finding.found + "; wanted " + finding.wanted + "; " + finding.why + "; " + finding.mend + "\n";
    return text;
}

void expect_said(const std::string& text, const Strings& words) {
    for (const std::string& word : words)
        EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' in: " << text;
}

class Checks : public testing::Test {
protected:
    const RecordedMachine machine_{};
    const config::RunConfig good_ = good_config();
    const config::RunConfig bad_ = bad_config();

    Judged good() {
        write_good_xeon(machine_);
        return judged(machine_, &good_, easy, add_good_live_facts);
    }
    Judged bad() {
        write_bad_xeon(machine_);
        return judged(machine_, &bad_, hard, add_bad_live_facts);
    }
    Judged silent() { return judged(machine_, &good_, easy); }
};

TEST_F(Checks, FindNothingOnAMachineThatIsSetUpWell) {
    const Judged judged = good();
    for (const Finding& finding : judged.findings) EXPECT_EQ(finding.status, Status::ok) << words_of({finding});
    for (const Check& check : checks())
        if (check.name != "socket_buffer") {  // only without a configuration
            EXPECT_FALSE(judged.of(check.name).empty()) << check.name;
        }
}

TEST_F(Checks, EachIsTriggeredByAMachineThatIsSetUpBadly) {
    const Judged with_run = bad();
    const Judged without = judged(machine_, nullptr, hard);
    machine_.write_interface("ens3f0", "9000");
    const Judged wider = judged(machine_, &bad_, hard);
    for (const Check& check : checks()) {
        std::vector<Finding> found = with_run.of(check.name);
        for (const Judged* other : {&without, &wider}) {
            const std::vector<Finding> more = other->of(check.name);
            found.insert(found.end(), more.begin(), more.end());
        }
        const bool triggered = std::ranges::any_of(found, [](const Finding& finding) {
            return finding.status == Status::error || finding.status == Status::warning;
        });
        EXPECT_TRUE(triggered) << check.name << "\n" << words_of(found);
    }
}

TEST_F(Checks, EachSaysWhatItFoundWhyAndHowItIsMended) {
    const Judged judged = bad();
    for (const Finding& finding : judged.findings) {
        EXPECT_FALSE(finding.why.empty()) << words_of({finding});
        EXPECT_FALSE(finding.wanted.empty()) << words_of({finding});
        if (finding.status != Status::error && finding.status != Status::warning) continue;
        EXPECT_FALSE(finding.found.empty()) << words_of({finding});
        EXPECT_FALSE(finding.mend.empty()) << words_of({finding});
        if (finding.status == Status::error) {
            EXPECT_EQ(finding.sure, Sure::certain) << words_of({finding});
        }
    }
}

TEST_F(Checks, SayThatTheyDoNotKnowWhereAMachineDoesNotSay) {
    const Judged judged = silent();
    // These are known of any machine: from the configuration, or because what is not there is not there.
    const std::set<std::string_view> always{"hugepages",  "event_memory", "driver",     "iommu",         "pcie_link",
                                            "pcie_sizes", "numa",         "interface",  "offloads",      "frame_room",
                                            "isolation",  "smt",          "tasks",      "socket_buffer", "disk_rate",
                                            "disk_space", "cores",        "idle_states"};
    for (const Check& check : checks()) {
        if (always.contains(check.name)) continue;
        for (const Finding& finding : judged.of(check.name))
            EXPECT_EQ(finding.status, Status::unknown) << words_of({finding});
        EXPECT_FALSE(judged.of(check.name).empty()) << check.name;
    }
}

TEST_F(Checks, OfAVirtualMachineAreContentOrSayWhatItHides) {
    write_epyc_guest(machine_);
    const config::RunConfig config = config::parse_config(
        "[[port]]\nname = \"det0\"\ndevice = \"0000:3b:00.0\"\n"
        "[[stream]]\nport = \"det0\"\ntransport = \"udp\"\nudp_dst = [50001]\nformat = \"jungfrau\"\n"
        "[events]\nsources = 1\n[[sink]]\nkind = \"null\"\n[lcores]\nrx = [2]\nbuild = [3]\nwork = [4]\n",
        "det.toml");
    const Judged judged = test::judged(machine_, &config, {});
    for (const Finding& finding : judged.findings)
        EXPECT_TRUE(finding.status == Status::ok || finding.status == Status::unknown) << words_of({finding});
    for (const char* check : {"governor", "turbo", "pcie_link", "interrupts"})
        EXPECT_EQ(judged.only(check).status, Status::unknown) << check;
    for (const char* check : {"driver", "iommu", "hugepages", "clock_source", "isolation", "smt", "pcie_sizes"})
        EXPECT_EQ(judged.only(check).status, Status::ok) << check;
}

TEST_F(Checks, OfHugepagesCountWhatIsMissingOnEachNode) {
    const Judged judged = bad();
    const std::vector<Finding> found = judged.of("hugepages");
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().status, Status::error);
    // 16 are there, 4 of them free; the others stay, and what is planned comes on top.
    const Finding& node1 = found.back();
    EXPECT_EQ(node1.about, "node 1");
    EXPECT_EQ(node1.found, "8 MiB of free hugepages");
    ASSERT_EQ(node1.fix.size(), 1U);
    EXPECT_EQ(node1.fix.front().file, "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages");
    const std::uint64_t wanted_mib = std::stoull(node1.wanted);
    EXPECT_EQ(std::stoull(node1.fix.front().text), 16 + (wanted_mib - 8 + 1) / 2);
}

TEST_F(Checks, OfHugepagesOnTheWrongNodeOnlyWarn) {
    write_good_xeon(machine_);
    machine_.write("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", "0");
    const Judged judged = test::judged(machine_, &good_, {});
    const std::vector<Finding> found = judged.of("hugepages");
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().status, Status::warning);
    expect_said(words_of(found), {"another node", "nr_hugepages"});
}

TEST_F(Checks, OfTheDriverDoNotOfferToCutTheNetwork) {
    write_bad_xeon(machine_);
    Finding found = test::judged(machine_, &bad_, {}).only("driver");
    EXPECT_EQ(found.status, Status::error);
    expect_said(found.mend, {"modprobe vfio-pci", "echo vfio-pci > /sys/bus/pci/devices/0000:3b:00.0/driver_override",
                             "drivers_probe"});
    EXPECT_EQ(found.fix.size(), 4U);  // the interface is down
    machine_.write_interface("ens2f0", "9000", "1");
    found = test::judged(machine_, &bad_, {}).only("driver");
    EXPECT_TRUE(found.fix.empty());
    expect_said(found.why, {"its interface is up"});
    // So is one that has just been set up, or has no cable: the kernel's operstate is still "down".
    machine_.write("/sys/class/net/ens2f0/operstate", "down");
    EXPECT_TRUE(test::judged(machine_, &bad_, {}).only("driver").fix.empty());
    machine_.write("/proc/net/route", "Iface\tDestination\nens2f0\t00000000");
    found = test::judged(machine_, &bad_, {}).only("driver");
    EXPECT_TRUE(found.fix.empty());
    expect_said(found.why, {"default route", "cuts this machine off"});
    machine_.remove("/proc/net/route");
    machine_.write("/proc/net/ipv6_route",
                   "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe80 400 1 0 3 ens2f0");
    EXPECT_TRUE(test::judged(machine_, &bad_, {}).only("driver").fix.empty());
}

TEST_F(Checks, OfTheDriverFindTheInterfaceOfAVirtioCard) {
    write_bad_xeon(machine_);
    const std::string card = "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
    // One that cannot be seen, as in another network namespace, may be in use.
    machine_.remove(card + "/net");
    Finding found = test::judged(machine_, &bad_, {}).only("driver");
    EXPECT_TRUE(found.fix.empty());
    expect_said(found.why, {"cannot be seen"});
    machine_.write(card + "/virtio1/net/eth1/x", "");
    machine_.write_interface("eth1", "1500", "0");
    EXPECT_FALSE(test::judged(machine_, &bad_, {}).only("driver").fix.empty());
    machine_.write_interface("eth1", "1500", "1");
    found = test::judged(machine_, &bad_, {}).only("driver");
    EXPECT_TRUE(found.fix.empty());
    expect_said(found.why, {"its interface is up"});
    machine_.write("/proc/net/route", "Iface\tDestination\neth1\t00000000");
    expect_said(test::judged(machine_, &bad_, {}).only("driver").why, {"default route"});
    // Nor is the physical function's interface that of the card.
    machine_.remove(card + "/virtio1");
    machine_.write("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.7/net/eth1/x", "");
    machine_.link(card + "/physfn", "../0000:3b:00.7");
    expect_said(test::judged(machine_, &bad_, {}).only("driver").why, {"cannot be seen"});
}

TEST_F(Checks, OfTheDriverNameADeviceThatIsNotThere) {
    write_good_xeon(machine_);
    machine_.remove("/sys/bus/pci/devices/0000:3b:00.0");
    const Finding found = judged(machine_, &good_, {}).only("driver");
    EXPECT_EQ(found.status, Status::error);
    EXPECT_EQ(found.found, "no such device");
    EXPECT_TRUE(found.fix.empty());
}

TEST_F(Checks, OfTheIommuNameTheWordsThatAreMissing) {
    write_bad_xeon(machine_);
    Finding found = judged(machine_, &bad_, {}).only("iommu");
    EXPECT_EQ(found.status, Status::error);
    expect_said(found.mend, {"intel_iommu=on iommu=pt", "firmware"});
    write_good_xeon(machine_);
    machine_.remove("/sys/devices/pci0000:3a");
    machine_.write_pci({.address = "0000:3b:00.0", .bridge = "0000:3a:00.0", .driver = "mlx5_core", .node = 1});
    machine_.write("/proc/cmdline", "root=/dev/sda1 intel_iommu=on");
    found = judged(machine_, &good_, {}).only("iommu");
    EXPECT_EQ(found.status, Status::warning);
    EXPECT_EQ(found.sure, Sure::possible);
}

TEST_F(Checks, OfThePcieLinkCompareItWithCardBridgeAndRate) {
    // 8 GT/s x4, coding 128/130, nine tenths of it payload.
    Finding found = bad().only("pcie_link");
    EXPECT_EQ(found.status, Status::error);
    expect_said(found.found, {"8 GT/s x4 (about 28 Gb/s)"});
    expect_said(found.why, {"400 Gb/s do not go through"});
    found = judged(machine_, &bad_, {}, add_good_live_facts).only("pcie_link");
    EXPECT_EQ(found.status, Status::warning);
    expect_said(found.why, {"the port can bring more"});
    write_good_xeon(machine_);
    machine_.write("/sys/devices/pci0000:3a/0000:3a:00.0/current_link_width", "8");
    machine_.remove("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/current_link_width");
    EXPECT_EQ(judged(machine_, &good_, {}).only("pcie_link").status, Status::unknown);
    machine_.write("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/current_link_width", "16");
    machine_.write("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/current_link_speed", "16.0 GT/s PCIe");
    found = judged(machine_, &good_, {}).only("pcie_link");
    EXPECT_EQ(found.status, Status::warning);
    expect_said(found.found, {"the bridge 0000:3a:00.0 above it 16 GT/s x8"});
}

TEST_F(Checks, OfPcieSizesReadTheConfigurationSpace) {
    EXPECT_EQ(good().only("pcie_sizes").found, "MPS 256 of 512, MRRS 512");
    const Finding found = bad().only("pcie_sizes");
    EXPECT_EQ(found.found, "MPS 128 of 512, MRRS 128");
    expect_said(found.mend, {"pci=pcie_bus_perf", "setpci -s 0000:3b:00.0 CAP_EXP+8.w=2000:7000"});
    machine_.write("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/config", std::string(64, '\0'));
    expect_said(judged(machine_, &bad_, {}).only("pcie_sizes").why, {"only root"});
}

TEST_F(Checks, OfNumaProposeCpusOfTheRightNode) {
    const std::vector<Finding> found = bad().of("numa");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front().found, "the device on node 1, rx lcores 1 9 on another");
    EXPECT_EQ(found.front().mend, "rx = [4, 5] in [lcores]");
}

TEST_F(Checks, OfAnInterfaceSayWhatItsMtuCosts) {
    Finding found = bad().only("interface");
    EXPECT_EQ(found.about, "port det1, ens3f0");
    EXPECT_EQ(found.status, Status::warning);
    EXPECT_EQ(found.mend, "ip link set ens3f0 mtu 8268");
    expect_said(found.why, {"8282 bytes", "IP fragments"});
    // The port's own mtu is what a run insists on.
    found = judged(machine_, &good_, {}).only("interface");
    EXPECT_EQ(found.status, Status::error);
    EXPECT_EQ(found.mend, "ip link set ens3f0 mtu 9000");
    EXPECT_FALSE(found.fix.empty());
    machine_.write("/proc/net/route", "Iface\tDestination\nens3f0\t00000000");
    EXPECT_TRUE(judged(machine_, &good_, {}).only("interface").fix.empty());
    machine_.write_interface("ens3f0", "9000", "0");
    EXPECT_EQ(judged(machine_, &good_, {}).only("interface").mend.substr(0, 21), "ip link set ens3f0 up");
    machine_.remove("/sys/class/net/ens3f0");
    EXPECT_EQ(judged(machine_, &good_, {}).only("interface").found, "no such interface");
}

TEST_F(Checks, OfFrameRoomAreCertainOnlyWhereWholePacketsCanCome) {
    write_bad_xeon(machine_);
    // The interface lets no such frame through: they come in IP fragments, which fit.
    EXPECT_EQ(judged(machine_, &bad_, {}).only("frame_room").status, Status::ok);
    machine_.write_interface("ens3f0", "9000");
    const Finding found = judged(machine_, &bad_, {}).only("frame_room");
    EXPECT_EQ(found.status, Status::error);
    expect_said(found.why, {"framesz=2048", "without a word"});
    const config::RunConfig memif = config::parse_config(
        "[[port]]\nname = \"det0\"\ndevice = \"net_memif0,role=server,bsize=2048\"\nmtu = 1500\n"
        "[[stream]]\nport = \"det0\"\ntransport = \"udp\"\nudp_dst = [50001]\nformat = \"jungfrau\"\n"
        "[events]\nsources = 1\n[[sink]]\nkind = \"null\"\n",
        "det.toml");
    expect_said(judged(machine_, &memif, {}).only("frame_room").why, {"bsize=2048", "corrupts"});
}

TEST_F(Checks, OfOffloadsGiveTheCommand) {
    EXPECT_EQ(bad().only("offloads").mend, "ethtool -K ens3f0 gro off");
}

TEST_F(Checks, OfTheBacklogAddUpWhatAllCpusDropped) {
    const Finding found = bad().only("kernel_backlog");
    EXPECT_EQ(found.found, "1000; 15 packets dropped since boot");
    EXPECT_EQ(found.mend, "echo 10000 > /proc/sys/net/core/netdev_max_backlog");
}

TEST_F(Checks, OfPortsJudgeWhatDpdkSays) {
    const Judged judged = bad();
    std::vector<Finding> found = judged.of("link");
    ASSERT_EQ(found.size(), 2U);
    expect_said(found.front().found, {"link down", "firmware 22.35.1012"});
    EXPECT_EQ(found.front().status, Status::warning);
    EXPECT_EQ(found.back().status, Status::ok);  // af_packet calls its MTU 1500 and carries more
    expect_said(words_of(judged.of("pause")), {"rx_pause_ctrl_phy 17"});
    found = judged.of("flow_rules");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front().status, Status::warning);
    expect_said(found.front().found, {"accepted by the device, and without effect", "16 arrived otherwise"});
    found = judged.of("ring");
    ASSERT_EQ(found.size(), 2U);
    expect_said(words_of(found), {"64 receive descriptors", "rx_descriptors = ", "ethtool -G ens3f0 rx 4096"});
}

TEST_F(Checks, OfPortsAreErrorsWhereFramesDoNotFitOrRulesMayNotBeRefused) {
    write_good_xeon(machine_);
    const auto live = [](HostFacts& host) {
        add_good_live_facts(host);
        std::vector<DeviceFacts> devices = *host.devices;
        devices.front().mtu = 1500;
        devices.front().flow_control = Known<std::string>::no("the driver does not say");
        devices.front().rules = std::vector<RuleOutcome>{{"rule a", RuleOutcome::Effect::refused, "no"},
                                                         {"rule b", RuleOutcome::Effect::software, "no"},
                                                         {"rule c", RuleOutcome::Effect::not_seen, ""}};
        devices.back().not_opened = "it is another's";
        host.devices = devices;
    };
    const Judged judged = test::judged(machine_, &good_, easy, live);
    EXPECT_EQ(judged.of("link").front().status, Status::error);
    const std::vector<Finding> rules = judged.of("flow_rules");
    ASSERT_EQ(rules.size(), 3U);
    EXPECT_EQ(rules[0].status, Status::error);
    EXPECT_EQ(rules[1].status, Status::warning);
    EXPECT_EQ(rules[2].status, Status::unknown);
    EXPECT_EQ(judged.of("link").back().why, "it is another's");
    EXPECT_EQ(judged.of("pause").front().status, Status::unknown);
}

TEST_F(Checks, OfIsolationNameTheWordsOfTheCommandLine) {
    const Finding found = bad().only("isolation");
    EXPECT_EQ(found.mend,
              "on the kernel's command line: isolcpus=managed_irq,domain,1,6-7,9 nohz_full=1,6-7,9 rcu_nocbs=1,6-7,9");
    EXPECT_EQ(found.sure, Sure::likely);
    write_good_xeon(machine_);
    machine_.write("/sys/devices/system/cpu/nohz_full", "");
    const Finding ticking = judged(machine_, &good_, {}).only("isolation");
    EXPECT_EQ(ticking.sure, Sure::possible);
    expect_said(ticking.found, {"4-7 with a timer tick"});
}

TEST_F(Checks, OfTasksLeaveTheKernelsAlone) {
    Finding found = bad().only("tasks");
    EXPECT_EQ(found.found, "2 threads may run there: postgres, systemd");
    // On isolated CPUs only what somebody bound there is left, and it can be moved.
    write_good_xeon(machine_);
    machine_.write_task(900, "monitor", "5");
    found = judged(machine_, &good_, {}).only("tasks");
    EXPECT_EQ(found.sure, Sure::likely);
    EXPECT_EQ(found.mend, "taskset -cp 0-3,8-11 900 (and so on)");
}

TEST_F(Checks, OfSmtTellTwoLcoresOnACoreFromOtherTasks) {
    expect_said(bad().only("smt").found, {"lcores 1,9 share cores"});
    write_good_xeon(machine_);
    machine_.write("/sys/devices/system/cpu/isolated", "4-7");
    const Finding found = judged(machine_, &good_, {}).only("smt");
    EXPECT_EQ(found.sure, Sure::possible);
    expect_said(found.mend, {"echo 0 > /sys/devices/system/cpu/cpu12/online"});
    EXPECT_TRUE(found.fix.empty());
}

TEST_F(Checks, OfInterruptsMoveThemToCpusWithoutLcores) {
    const Finding found = bad().only("interrupts");
    EXPECT_EQ(found.found, "1 interrupt: 120 nvme0q1");
    EXPECT_EQ(found.mend, "echo 0,2-5,8,10-15 > /proc/irq/120/smp_affinity_list");
}

TEST_F(Checks, OfPowerWriteToEachCpuOfAnLcore) {
    const Judged judged = bad();
    const Finding governor = judged.only("governor");
    EXPECT_EQ(governor.found, "powersave on 4 CPUs");
    ASSERT_EQ(governor.fix.size(), 4U);
    EXPECT_EQ(governor.fix.front(), write_to("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance"));
    const Finding idle = judged.only("idle_states");
    EXPECT_EQ(idle.found, "C6 may be entered");
    EXPECT_EQ(idle.fix.back(), write_to("/sys/devices/system/cpu/cpu9/cpuidle/state1/disable", "1"));
    machine_.write("/dev/cpu_dma_latency", std::string("\x02\x00\x00\x00", 4));
    EXPECT_EQ(test::judged(machine_, &bad_, {}).only("idle_states").status, Status::ok);
}

TEST_F(Checks, OfIdleStatesAreUnknownWhereTheKernelShowsNone) {
    EXPECT_EQ(judged(machine_, &bad_, {}).only("idle_states").status, Status::unknown);
}

TEST_F(Checks, OfTheClockTakeTheTscWhereItIsToBeHad) {
    Finding found = bad().only("clock_source");
    EXPECT_EQ(found.mend, "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource");
    machine_.write("/sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet acpi_pm");
    found = judged(machine_, &bad_, {}).only("clock_source");
    EXPECT_TRUE(found.fix.empty());
    expect_said(found.mend, {"unstable"});
}

TEST_F(Checks, OfMemoryCompareTheSumWithWhatIsFree) {
    const Judged judged = bad();
    EXPECT_EQ(judged.only("memory").status, Status::error);
    expect_said(judged.only("memory").found, {"0 MiB are free"});
    // Two modules of 512 KiB each make an event of 1 MiB, which is all the memory that the events get.
    EXPECT_EQ(judged.only("event_memory").status, Status::warning);
    const Finding files = judged.only("open_files");
    EXPECT_EQ(files.found, "256 at most");
    expect_said(files.mend, {"LimitNOFILE=65536"});
    expect_said(judged.only("memlock").found, {"8192 KiB"});
    expect_said(judged.only("dpdk_service").mend, {"systemctl mask dpdk.service"});
    EXPECT_EQ(judged.only("hugetlbfs").fix.size(), 2U);
}

TEST_F(Checks, OfMemlockTakeTheCapabilityForAnAnswer) {
    write_bad_xeon(machine_);
    machine_.write("/proc/self/status", "CapEff:\t0000000000004000");
    EXPECT_EQ(judged(machine_, &bad_, {}).only("memlock").status, Status::ok);
}

TEST_F(Checks, OfTheDebianServiceReadItsFile) {
    write_bad_xeon(machine_);
    machine_.write("/etc/dpdk/dpdk.conf", "NR_2M_PAGES=\nFREE_PREVIOUS_ALLOCATIONS=0");
    const Finding found = judged(machine_, &bad_, {}).only("dpdk_service");
    EXPECT_EQ(found.status, Status::ok);
    expect_said(found.found, {"leaves hugepages alone"});
}

TEST_F(Checks, OfDisksCompareRateAndRoom) {
    const Judged judged = bad();
    const Finding rate = judged.only("disk_rate");
    EXPECT_EQ(rate.status, Status::error);
    expect_said(rate.found, {"200 MB/s"});
    EXPECT_EQ(rate.wanted, "50 GB/s");
    const Finding space = judged.only("disk_space");
    EXPECT_EQ(space.status, Status::warning);
    expect_said(space.found, {"100 GiB free: 0 minutes at 50 GB/s"});
    // Where something is thrown away on the way, nothing is certain.
    config::RunConfig reduced = bad_;
    reduced.reduce.emplace_back();
    const auto slow = [](HostFacts& host) { add_bad_live_facts(host); };
    write_good_xeon(machine_);
    ExamineOptions options;
    options.root = machine_.root();
    Examination examination(&bad_, options);
    static_cast<void>(examination.look());
    HostFacts host = examination.host();
    slow(host);
    PlannedRun run = examination.run();
    run.config = &reduced;
    for (const Finding& finding : judge({host, &run, hard}, {"disk_rate"})) EXPECT_EQ(finding.status, Status::warning);
}

TEST_F(Checks, OfDisksMakeAFolderThatIsMissing) {
    write_bad_xeon(machine_);
    const Finding found = judged(machine_, &bad_, {}).only("disk_space");
    EXPECT_EQ(found.status, Status::error);
    EXPECT_EQ(found.mend, "mkdir -p /data");
}

TEST_F(Checks, OfTheRateAreEstimates) {
    const Judged judged = bad();
    const Finding cores = judged.only("cores");
    EXPECT_EQ(cores.status, Status::warning);
    EXPECT_EQ(cores.sure, Sure::likely);
    const Finding memory = judged.only("memory_bandwidth");
    expect_said(memory.found, {"17.1 GB/s on paper"});  // 2133 million transfers of 8 bytes
    EXPECT_EQ(memory.sure, Sure::likely);
}

TEST_F(Checks, CanBeChosen) {
    write_bad_xeon(machine_);
    ExamineOptions options;
    options.root = machine_.root();
    options.only = {"clock_source", "tasks"};
    Examination examination(&bad_, options);
    std::set<std::string> names;
    for (const Finding& finding : examination.look()) names.insert(finding.check);
    EXPECT_EQ(names, (std::set<std::string>{"clock_source", "tasks"}));
}

TEST(CheckTable, NamesAreUniqueAndSentencesShort) {
    std::set<std::string_view> names;
    for (const Check& check : checks()) {
        EXPECT_TRUE(names.insert(check.name).second) << check.name;
        EXPECT_LE(check.name.size(), 18U) << check.name;
        EXPECT_GT(check.looks_at.size(), 10U) << check.name;
        EXPECT_NE(check.judge, nullptr) << check.name;
    }
}

}  // namespace
}  // namespace weir::doctor::test
