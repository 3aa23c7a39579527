#include "doctor/read_devices.hpp"

#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "port/pci_devices.hpp"

namespace weir::doctor {

double PciLink::gbps() const noexcept {
    // Up to generation 2, eight bits take ten transfers; from 3 on, 128 take 130. Headers and flow control leave about
    // nine tenths with payloads of 256 bytes.
    constexpr double of_packets = 0.9;
    const double coding = gts < 8 ? 0.8 : 128.0 / 130;
    return gts * width * coding * of_packets;
}

namespace {

/// "8.0 GT/s PCIe" and "8".
Known<PciLink> pci_link(const RootFiles& files, const std::string& folder, const std::string& which) {
    const auto speed = files.line(folder + "/" + which + "_link_speed");
    if (!speed) return Known<PciLink>::no(speed.why);
    const auto width = files.number(folder + "/" + which + "_link_width");
    if (!width) return Known<PciLink>::no(width.why);
    PciLink link;
    std::istringstream(*speed) >> link.gts;
    link.width = static_cast<std::uint32_t>(*width);
    // What is no PCI Express says "Unknown" or 0.
    if (link.gts <= 0 || link.width == 0) return Known<PciLink>::no(fmt::format("{}: '{}'", folder, *speed));
    return link;
}

/// Fills in MPS and MRRS from the PCI Express capability (PCI Express Base Specification, 7.5.3).
void read_config_space(const RootFiles& files, const std::string& folder, PciFacts& device) {
    const auto fail = [&](const std::string& why) {
        device.payload_max = device.payload_capability = device.read_request_max = Known<std::uint32_t>::no(why);
    };
    const auto config = files.bytes(folder + "/config");
    if (!config) return fail(config.why);
    const auto byte = [&](std::size_t at) -> std::uint32_t {
        return at < config->size() ? static_cast<unsigned char>((*config)[at]) : 0;
    };
    constexpr std::size_t shown_to_all = 64;
    if (config->size() <= shown_to_all) return fail("only root may read the PCI configuration beyond 64 bytes");
    constexpr std::uint32_t express = 0x10;
    constexpr int capabilities_max = 48;
    std::uint32_t at = (byte(0x06) & 0x10U) != 0 ? byte(0x34) & 0xfcU : 0;
    for (int i = 0; at >= 0x40 && byte(at) != express && i < capabilities_max; ++i) at = byte(at + 1) & 0xfcU;
    if (at < 0x40 || byte(at) != express) return fail("it is no PCI Express device");
    const std::uint32_t control = byte(at + 8) | byte(at + 9) << 8U;
    device.payload_capability = 128U << (byte(at + 4) & 7U);
    device.payload_max = 128U << (control >> 5U & 7U);
    device.read_request_max = 128U << (control >> 12U & 7U);
}

/// The device above it in sysfs, where that is a PCI device too.
std::string bridge_of(const RootFiles& files, const std::string& address) {
    std::error_code error;
    const std::filesystem::path target =
        std::filesystem::read_symlink(files.at("/sys/bus/pci/devices/" + address), error);
    const std::string above = target.parent_path().filename();
    return std::ranges::count(above, ':') == 2 && above.find('.') != std::string::npos ? above : "";
}

/// Interfaces that a default route goes through, IPv4 and IPv6.
std::set<std::string> default_routes(const RootFiles& files) {
    std::set<std::string> names;
    if (const auto lines = files.lines("/proc/net/route"))
        for (const std::string& line : *lines) {
            std::istringstream words(line);
            std::string interface;
            std::string destination;
            if (words >> interface >> destination && destination == "00000000") names.insert(interface);
        }
    if (const auto lines = files.lines("/proc/net/ipv6_route"))
        for (const std::string& line : *lines) {
            std::istringstream words(line);
            std::vector<std::string> all;
            for (std::string word; words >> word;) all.push_back(word);
            constexpr std::size_t columns = 10;
            if (all.size() == columns && all[1] == "00" && all[0].find_first_not_of('0') == std::string::npos &&
                all.back() != "lo")
                names.insert(all.back());
        }
    return names;
}

/// A virtio card's interface hangs on a device of its own below the card: ADDRESS/virtio1/net/eth0.
std::vector<std::string> interfaces_below(const RootFiles& files, const std::string& folder) {
    std::vector<std::string> interfaces = files.names(folder + "/net");
    for (const std::string& child : files.names(folder)) {
        // A link leads elsewhere: to the physical function, whose interfaces are not this device's.
        if (!files.link_name(folder + "/" + child).empty()) continue;
        for (const std::string& name : files.names(folder + "/" + child + "/net")) interfaces.push_back(name);
    }
    return interfaces;
}

/// Whether somebody has set the interface up: IFF_UP, not `operstate`, which the kernel writes up to a second later and
/// which is "down" without a cable, too. One whose flags cannot be read may be up.
bool is_up(const RootFiles& files, const std::string& name) {
    const auto text = files.line("/sys/class/net/" + name + "/flags");
    return !text || (std::strtoul(text->c_str(), nullptr, 16) & IFF_UP) != 0;
}

PciFacts pci_facts(const RootFiles& files, const std::string& address, const std::vector<port::PciDevice>& devices,
                   const std::set<std::string>& routes) {
    PciFacts facts;
    facts.address = address;
    const auto found = std::ranges::find(devices, address, &port::PciDevice::address);
    if (found == devices.end()) return facts;
    facts.present = true;
    facts.network = found->network;
    facts.id = found->id;
    facts.driver = found->driver;
    const std::string folder = "/sys/bus/pci/devices/" + address;
    facts.interfaces = interfaces_below(files, folder);
    facts.iommu_group = files.link_name(folder + "/iommu_group");
    if (const auto node = files.line(folder + "/numa_node"); node && *node != "-1")
        facts.node = static_cast<int>(whole_number(*node).value_or(0));
    facts.link = pci_link(files, folder, "current");
    facts.link_max = pci_link(files, folder, "max");
    facts.bridge = bridge_of(files, address);
    if (!facts.bridge.empty()) {
        facts.bridge_link = pci_link(files, "/sys/bus/pci/devices/" + facts.bridge, "current");
        facts.bridge_link_max = pci_link(files, "/sys/bus/pci/devices/" + facts.bridge, "max");
    }
    read_config_space(files, folder, facts);
    facts.default_route =
        std::ranges::any_of(facts.interfaces, [&](const std::string& name) { return routes.contains(name); });
    facts.in_use = std::ranges::any_of(facts.interfaces, [&](const std::string& name) { return is_up(files, name); });
    return facts;
}

InterfaceFacts interface_facts(const RootFiles& files, const std::string& name, const std::set<std::string>& routes) {
    InterfaceFacts facts;
    facts.name = name;
    const std::string folder = "/sys/class/net/" + name;
    facts.exists = files.exists(folder);
    facts.default_route = routes.contains(name);
    const auto mtu = files.number(folder + "/mtu");
    facts.mtu = mtu ? Known<std::uint32_t>(static_cast<std::uint32_t>(*mtu)) : Known<std::uint32_t>::no(mtu.why);
    // A carrier cannot be read of an interface that is down.
    const auto state = files.line(folder + "/operstate");
    const auto carrier = files.number(folder + "/carrier");
    if (carrier)
        facts.carrier = *carrier != 0;
    else if (state && *state == "down")
        facts.carrier = false;
    else
        facts.carrier = Known<bool>::no(carrier.why);
    const auto speed = files.number(folder + "/speed");
    facts.mbps = speed ? Known<std::uint32_t>(static_cast<std::uint32_t>(*speed)) : Known<std::uint32_t>::no(speed.why);
    return facts;
}

}  // namespace

void read_devices(const RootFiles& files, const Interest& interest, HostFacts& host) {
    const std::set<std::string> routes = default_routes(files);
    if (!interest.pci.empty()) {
        const std::vector<port::PciDevice> devices = port::pci_devices(files.at("/sys"));
        for (const std::string& address : interest.pci) host.pci.push_back(pci_facts(files, address, devices, routes));
    }
    for (const std::string& name : interest.interfaces) host.interfaces.push_back(interface_facts(files, name, routes));
}

}  // namespace weir::doctor
