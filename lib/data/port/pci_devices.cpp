#include "port/pci_devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

namespace weir::port {

namespace {

namespace fs = std::filesystem;

std::string word(const fs::path& file) {
    std::string text;
    std::ifstream(file) >> text;
    return text.starts_with("0x") ? text.substr(2) : text;
}

/// Drivers through which DPDK takes the whole device.
constexpr std::array<std::string_view, 4> taken_through{"vfio-pci", "igb_uio", "uio_pci_generic", "uio_hv_generic"};
/// Drivers that keep it and let DPDK in beside them (bifurcated).
constexpr std::array<std::string_view, 2> shared_with{"mlx5_core", "mlx4_core"};

bool among(const auto& list, std::string_view name) {
    return std::ranges::find(list, name) != list.end();
}

std::string described(const PciDevice& device) {
    std::string text = fmt::format("{} ({}{}{}", device.address, device.id,
                                   device.driver.empty() ? ", no driver" : ", ", device.driver);
    for (const std::string& interface : device.interfaces) text += ", " + interface;
    return text + ")";
}

std::string list_text(const std::vector<PciDevice>& devices) {
    std::string text;
    for (const PciDevice& device : devices)
        if (device.network) text += (text.empty() ? "" : ", ") + described(device);
    return text.empty() ? "there is no network device on this machine's PCI bus" : "network devices here: " + text;
}

}  // namespace

std::vector<PciDevice> pci_devices(const fs::path& sys) {
    constexpr std::string_view network_class = "02";  // Ethernet, and InfiniBand cards that can be Ethernet
    std::vector<PciDevice> devices;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(sys / "bus/pci/devices", error)) {
        const fs::path& folder = entry.path();
        PciDevice device;
        device.address = folder.filename();
        device.id = word(folder / "vendor") + ":" + word(folder / "device");
        device.network = word(folder / "class").starts_with(network_class);
        device.driver = fs::read_symlink(folder / "driver", error).filename();
        device.iommu = fs::exists(folder / "iommu_group", error);
        for (const auto& interface : fs::directory_iterator(folder / "net", error))
            device.interfaces.push_back(interface.path().filename());
        std::ranges::sort(device.interfaces);
        devices.push_back(std::move(device));
    }
    std::ranges::sort(devices, {}, &PciDevice::address);
    return devices;
}

std::string full_pci_address(const std::string& device) {
    std::string address = device.substr(0, device.find(','));
    std::ranges::transform(address, address.begin(), [](unsigned char c) { return std::tolower(c); });
    return std::ranges::count(address, ':') == 1 ? "0000:" + address : address;
}

std::string pci_problem(const std::string& device, const fs::path& sys) {
    const std::string address = full_pci_address(device);
    const std::vector<PciDevice> devices = pci_devices(sys);
    const auto found = std::ranges::find(devices, address, &PciDevice::address);
    if (found == devices.end()) return fmt::format("there is no PCI device {}; {}", address, list_text(devices));
    if (!found->network) return fmt::format("{} is not a network device; {}", described(*found), list_text(devices));
    if (among(shared_with, found->driver)) return {};
    if (among(taken_through, found->driver)) {
        if (found->driver == "vfio-pci" && !found->iommu)
            return fmt::format(
                "{} is bound to vfio-pci but in no IOMMU group: "
                "boot with intel_iommu=on or amd_iommu=on (and iommu=pt), and switch the IOMMU on in the firmware",
                address);
        return {};
    }
    constexpr const char* bind = "modprobe vfio-pci; dpdk-devbind.py --bind=vfio-pci";
    if (found->driver.empty())
        return fmt::format("{} has no kernel driver, and DPDK needs it bound to vfio-pci: {} {}", address, bind,
                           address);
    std::string interfaces;
    for (const std::string& interface : found->interfaces) interfaces += (interfaces.empty() ? "" : ", ") + interface;
    return fmt::format(
        "{} is held by the kernel's driver '{}'{}, and DPDK needs it bound to vfio-pci: {} {}{}", address,
        found->driver, interfaces.empty() ? "" : " as " + interfaces, bind, address,
        interfaces.empty() ? "" : " (which takes the interface away; not the one you are logged in through)");
}

}  // namespace weir::port
