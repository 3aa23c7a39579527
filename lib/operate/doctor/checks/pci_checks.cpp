// Devices on PCI: who drives them, the link that they hang on, and where they sit.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "config/device_facts.hpp"
#include "doctor/check.hpp"
#include "port/pci_devices.hpp"

namespace weir::doctor {

namespace {

const config::PortConfig* port_of(const CheckInput& subject, const PciFacts& device) {
    if (subject.run == nullptr) return nullptr;
    for (const config::PortConfig& port : subject.run->config->ports)
        if (config::is_pci_address(port.device) && port::full_pci_address(port.devargs()) == device.address)
            return &port;
    return nullptr;
}

std::string name_of_device(const CheckInput& subject, const PciFacts& device) {
    const config::PortConfig* port = port_of(subject, device);
    return port != nullptr ? fmt::format("port {}, {}", port->name, device.address) : device.address;
}

/// It shares the card with the kernel's driver, which stays.
bool bifurcated(const PciFacts& device) {
    return device.driver == "mlx5_core" || device.driver == "mlx4_core";
}

std::vector<Step> binding(const HostFacts& host, const PciFacts& device) {
    const std::string folder = "/sys/bus/pci/devices/" + device.address;
    std::vector<Step> steps;
    if (!host.vfio) steps.push_back(execute({"modprobe", "vfio-pci"}));
    steps.push_back(write_to(folder + "/driver_override", "vfio-pci"));
    if (!device.driver.empty()) steps.push_back(write_to(folder + "/driver/unbind", device.address));
    steps.push_back(write_to("/sys/bus/pci/drivers_probe", device.address));
    return steps;
}

Finding driver_of_device(const CheckInput& subject, const PciFacts& device) {
    const HostFacts& host = subject.host;
    Finding finding{.about = name_of_device(subject, device),
                    .found = device.driver.empty() ? "no driver" : "driver " + device.driver,
                    .wanted = bifurcated(device) ? "the kernel's driver, which shares the card" : "driver vfio-pci",
                    .why = "DPDK takes the card through it"};
    const std::string problem = port::pci_problem(device.address, host.root / "sys");
    if (problem.empty()) return finding;
    finding.status = Status::error;
    finding.why = problem;
    if (!device.present || !device.network) {
        finding.found = device.present ? "no network device" : "no such device";
        finding.wanted = "a network device at this address";
        finding.mend = "device = \"...\" in [[port]]: one of those that are here";
        return finding;
    }
    if (device.driver == "vfio-pci") return finding;  // no IOMMU, which is a check of its own
    finding.why = fmt::format("DPDK cannot take the card from {}: the run does not start",
                              device.driver.empty() ? "nobody" : "the kernel's " + device.driver);
    const std::vector<Step> steps = binding(host, device);
    finding.mend = shell_text(steps);
    if (device.default_route)
        finding.why += "; it carries the default route, so binding it cuts this machine off: choose another one";
    else if (device.in_use)
        finding.why += "; its interface is up: make sure that nobody needs it";
    else if (!device.driver.empty() && device.interfaces.empty())
        finding.why += "; which interface it has cannot be seen: make sure that nobody needs it";
    else
        finding = with_fix(std::move(finding), steps, "the next boot");
    return finding;
}

std::vector<Finding> check_driver(const CheckInput& subject) {
    std::vector<Finding> findings;
    for (const PciFacts& device : subject.host.pci) findings.push_back(driver_of_device(subject, device));
    return findings;
}

/// Words of the kernel's command line that switch an IOMMU on.
std::string iommu_words(const HostFacts& host) {
    const std::string line = host.command_line ? *host.command_line : "";
    return line.find("intel_iommu=on") != std::string::npos ? "iommu=pt" : "intel_iommu=on iommu=pt (AMD: iommu=pt)";
}

std::vector<Finding> check_iommu(const CheckInput& subject) {
    const HostFacts& host = subject.host;
    std::vector<Finding> findings;
    for (const PciFacts& device : host.pci) {
        if (!device.present) continue;
        Finding finding{.about = name_of_device(subject, device),
                        .found = device.iommu_group.empty() ? "no IOMMU" : "IOMMU group " + device.iommu_group,
                        .wanted = "an IOMMU group, and iommu=pt",
                        .why = "vfio-pci needs an IOMMU; passed through, it costs nothing"};
        const bool passthrough = host.command_line && host.command_line->find("iommu=pt") != std::string::npos;
        const std::string mend = "on the kernel's command line: " + iommu_words(host) + "; and on in the firmware";
        if (device.iommu_group.empty() && !bifurcated(device)) {
            finding.status = Status::error;
            finding.why = "vfio-pci does not give a card away that no IOMMU guards: the run does not start";
            finding.mend = mend;
        } else if (!host.command_line) {
            finding.status = Status::unknown;
            finding.why = host.command_line.why;
        } else if (!device.iommu_group.empty() && !passthrough && bifurcated(device)) {
            finding.status = Status::warning;
            finding.sure = Sure::possible;
            finding.why =
                "the kernel's driver maps every buffer through the IOMMU, which costs rate with small packets";
            finding.mend = mend;
        }
        findings.push_back(std::move(finding));
    }
    return findings;
}

std::string link_words(const PciLink& link) {
    return fmt::format("{:g} GT/s x{} (about {:.0f} Gb/s)", link.gts, link.width, link.gbps());
}

/// What the port's own link can bring, as far as anybody says.
double port_gbps(const CheckInput& subject, const PciFacts& device) {
    constexpr double mega = 1000;
    double gbps = 0;
    for (const InterfaceFacts& interface : subject.host.interfaces)
        if (std::ranges::find(device.interfaces, interface.name) != device.interfaces.end() && interface.mbps)
            gbps = std::max(gbps, *interface.mbps / mega);
    const config::PortConfig* port = port_of(subject, device);
    if (port == nullptr || !subject.host.devices) return gbps;
    for (const DeviceFacts& opened : *subject.host.devices)
        if (opened.port == port->name) gbps = std::max(gbps, opened.mbps / mega);
    return gbps;
}

Finding link_of_device(const CheckInput& subject, const PciFacts& device) {
    Finding finding{.about = name_of_device(subject, device),
                    .wanted = "the widest and fastest link that card and slot can have",
                    .why = "every packet crosses it, and what does not fit is lost in the card"};
    if (!device.link || !device.link_max) {
        finding.status = Status::unknown;
        finding.why = device.link ? device.link_max.why : device.link.why;
        return finding;
    }
    PciLink narrowest = *device.link;
    finding.found = link_words(*device.link);
    finding.wanted = link_words(*device.link_max);
    bool less = device.link->gts < device.link_max->gts || device.link->width < device.link_max->width;
    if (device.bridge_link && device.bridge_link->gbps() < narrowest.gbps()) {
        narrowest = *device.bridge_link;
        finding.found += fmt::format("; the bridge {} above it {}", device.bridge, link_words(narrowest));
        less = true;
    }
    // One interface of a card with two: both may send at once.
    const double rate = std::max(port_gbps(subject, device), subject.load.bits_per_s / 1e9);
    if (rate > 0) finding.wanted += fmt::format(", and more than the {:.0f} Gb/s that are to come", rate);
    if (subject.load.known() && narrowest.gbps() < subject.load.bits_per_s / 1e9 && subject.host.pci.size() == 1) {
        finding.status = Status::error;
        finding.why =
            fmt::format("{} do not go through: the card drops the rest", bit_rate_text(subject.load.bits_per_s));
    } else if (rate > 0 && narrowest.gbps() < rate) {
        finding.status = Status::warning;
        finding.why = "the port can bring more than the slot can take, and the card drops the rest";
    } else if (less) {
        finding.status = Status::warning;
        finding.sure = rate > 0 ? Sure::possible : Sure::likely;
        finding.why =
            "card or slot can do more than they do: a slot with fewer lanes, a riser, a setting of the firmware";
    }
    if (finding.status != Status::ok)
        finding.mend = "another slot (lspci -tv shows them); the firmware's setting of the slot's speed";
    return finding;
}

std::vector<Finding> check_pcie_link(const CheckInput& subject) {
    std::vector<Finding> findings;
    for (const PciFacts& device : subject.host.pci)
        if (device.present) findings.push_back(link_of_device(subject, device));
    return findings;
}

std::vector<Finding> check_pcie_sizes(const CheckInput& subject) {
    constexpr std::uint32_t request_wanted = 512;
    constexpr std::uint32_t payload_wanted = 256;
    std::vector<Finding> findings;
    for (const PciFacts& device : subject.host.pci) {
        if (!device.present) continue;
        Finding finding{.about = name_of_device(subject, device),
                        .wanted = fmt::format("MPS {} and MRRS {} bytes or more", payload_wanted, request_wanted),
                        .why = "small PCIe packets are mostly headers, and the link carries less"};
        if (!device.payload_max || !device.read_request_max) {
            finding.status = Status::unknown;
            finding.why = device.payload_max.why;
            findings.push_back(std::move(finding));
            continue;
        }
        finding.found = fmt::format("MPS {} of {}, MRRS {}", *device.payload_max, *device.payload_capability,
                                    *device.read_request_max);
        if (*device.payload_max < std::min(*device.payload_capability, payload_wanted)) {
            finding.status = Status::warning;
            finding.sure = Sure::likely;
            finding.mend = "on the kernel's command line: pci=pcie_bus_perf";
        }
        if (*device.read_request_max < request_wanted) {
            finding.status = Status::warning;
            finding.sure = Sure::likely;
            // Bits 12 to 14 of the control register; 2 stands for 512 bytes.
            finding.mend +=
                fmt::format("{}setpci -s {} CAP_EXP+8.w=2000:7000", finding.mend.empty() ? "" : "; ", device.address);
        }
        findings.push_back(std::move(finding));
    }
    return findings;
}

/// Of one port: the rx lcores that poll it, and where they are.
Finding numa_of_port(const CheckInput& subject, std::uint32_t index, int node) {
    const plan::Plan& plan = *subject.run->plan;
    std::set<std::uint32_t> far;
    std::set<std::uint32_t> all;
    for (const plan::Placement::Queue& queue : plan.placement.queues) {
        if (queue.port != index) continue;
        const std::uint32_t lcore = plan.rx[queue.rx];
        all.insert(lcore);
        if (plan.placement.node_of(plan.host, lcore) != node) far.insert(lcore);
    }
    Finding finding{
        .about = "port " + subject.run->config->ports[index].name,
        .found = fmt::format("the device on node {}, its rx lcores {} on the same", node, fmt::join(all, " ")),
        .wanted = fmt::format("rx lcores on node {}", node),
        .why = "a packet that crosses between sockets costs half as much again, and their link is shared"};
    if (far.empty()) return finding;
    std::vector<std::uint32_t> near;
    for (const port::Cpu& cpu : plan.host.cpus)
        if (cpu.node == node && cpu.usable && cpu.core == cpu.id && near.size() < all.size()) near.push_back(cpu.id);
    finding.status = Status::warning;
    finding.sure = Sure::likely;
    finding.found = fmt::format("the device on node {}, rx lcores {} on another", node, fmt::join(far, " "));
    finding.mend = fmt::format("rx = [{}] in [lcores]", fmt::join(near, ", "));
    return finding;
}

std::vector<Finding> check_numa(const CheckInput& subject) {
    if (subject.run == nullptr || !subject.run->plan->pin || subject.host.topology.nodes.size() < 2) return {};
    const plan::Plan& plan = *subject.run->plan;
    std::vector<Finding> findings;
    for (std::uint32_t port = 0; port < subject.run->config->ports.size(); ++port) {
        const int node = port < plan.port_nodes.size() ? plan.port_nodes[port] : port::any_node;
        if (node != port::any_node) {
            findings.push_back(numa_of_port(subject, port, node));
        } else if (config::is_pci_address(subject.run->config->ports[port].device)) {
            findings.push_back({.status = Status::unknown,
                                .about = "port " + subject.run->config->ports[port].name,
                                .found = "a device on no node",
                                .wanted = "rx lcores on its node",
                                .why = "the firmware does not say which socket the slot belongs to"});
        }
    }
    return findings;
}

}  // namespace

std::vector<Check> pci_checks() {
    return {
        {"driver", "pci", "which driver holds each PCI device, and whether DPDK can take it", false, check_driver},
        {"iommu", "pci", "whether an IOMMU guards the device (vfio-pci), and is passed through", false, check_iommu},
        {"pcie_link", "pci",
         "speed and width of the PCIe link and of the bridge above, against what card, slot and port can do", false,
         check_pcie_link},
        {"pcie_sizes", "pci", "the largest PCIe payload (MPS) and read request (MRRS) in force", false,
         check_pcie_sizes},
        {"numa", "pci", "whether rx lcores are on the NUMA node of the device that they poll", false, check_numa},
    };
}

}  // namespace weir::doctor
