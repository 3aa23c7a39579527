// PCI devices as sysfs has them, to say what is wrong with an address before DPDK does, in words that help.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weir::port {

struct PciDevice {
    std::string address;                  ///< "0000:3b:00.0"
    std::string driver;                   ///< of the kernel, that holds it; empty: none
    std::string id;                       ///< vendor and device, "15b3:101d"
    std::vector<std::string> interfaces;  ///< of the kernel: "ens1f0"
    bool network = false;                 ///< a network controller
    bool iommu = false;                   ///< it is in an IOMMU group, which vfio-pci needs
};

/// All of them, by address. `sys` is where sysfs is mounted.
[[nodiscard]] std::vector<PciDevice> pci_devices(const std::filesystem::path& sys = "/sys");

/// "0000:3b:00.0" for "3b:00.0" and "0000:3B:00.0,arg=1".
[[nodiscard]] std::string full_pci_address(const std::string& device);

/// Why DPDK could not use this device, and what to do; empty if nothing speaks against it.
[[nodiscard]] std::string pci_problem(const std::string& device, const std::filesystem::path& sys = "/sys");

}  // namespace weir::port
