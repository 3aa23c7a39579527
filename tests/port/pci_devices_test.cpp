// What is said of PCI devices, on a sysfs that is made up.
#include <gtest/gtest.h>

#include <fstream>

#include "port/pci_devices.hpp"
#include "temporary_directory.hpp"

namespace {

using namespace weir::port;
namespace fs = std::filesystem;

class PciDevices : public ::testing::Test {
protected:
    void add(const std::string& address, const char* driver, const char* interface = "", bool iommu = true,
             const char* kind = "0x020000") {
        const fs::path folder = sys_ / "bus/pci/devices" / address;
        fs::create_directories(folder);
        std::ofstream(folder / "vendor") << "0x8086\n";
        std::ofstream(folder / "device") << "0x1592\n";
        std::ofstream(folder / "class") << kind << "\n";
        if (*driver != '\0') {
            const fs::path target = sys_ / "bus/pci/drivers" / driver;
            fs::create_directories(target);
            fs::create_directory_symlink(target, folder / "driver");
        }
        if (iommu) fs::create_directories(folder / "iommu_group");
        if (*interface != '\0') fs::create_directories(folder / "net" / interface);
    }
    void expect_said(const std::string& device, const std::vector<std::string>& words) {
        const std::string said = pci_problem(device, sys_);
        for (const std::string& word : words) EXPECT_NE(said.find(word), std::string::npos) << word << " in: " << said;
    }

    const weir::test::TemporaryDirectory sys_;
};

TEST_F(PciDevices, ThatCanBeUsedAreNotComplainedOf) {
    add("0000:3b:00.0", "vfio-pci");
    add("0000:3b:00.1", "mlx5_core", "ens1");  // stays with the kernel
    EXPECT_EQ(pci_problem("0000:3b:00.0", sys_), "");
    EXPECT_EQ(pci_problem("3b:00.0,arg=1", sys_), "");
    EXPECT_EQ(pci_problem("0000:3B:00.1", sys_), "");
}

TEST_F(PciDevices, ThatTheKernelHoldsAreNamedWithDriverAndInterfaceAndWhatToRun) {
    add("0000:3b:00.0", "ice", "ens1f0");
    expect_said("0000:3b:00.0", {"held by the kernel's driver 'ice' as ens1f0", "modprobe vfio-pci",
                                 "dpdk-devbind.py --bind=vfio-pci 0000:3b:00.0", "logged in"});
}

TEST_F(PciDevices, WithoutADriverAreToBeBound) {
    add("0000:3b:00.0", "");
    expect_said("0000:3b:00.0", {"no kernel driver", "dpdk-devbind.py --bind=vfio-pci 0000:3b:00.0"});
}

TEST_F(PciDevices, OnVfioWithoutAnIommuAreExplained) {
    add("0000:3b:00.0", "vfio-pci", "", false);
    expect_said("0000:3b:00.0", {"no IOMMU group", "intel_iommu=on"});
}

TEST_F(PciDevices, ThatDoNotExistAreAnsweredWithThoseThatDo) {
    add("0000:3b:00.0", "ice", "ens1f0");
    add("0000:5e:00.0", "", "", true);
    add("0000:00:02.0", "nvme", "", true, "0x010802");
    expect_said("0000:3b:00.7", {"there is no PCI device 0000:3b:00.7", "0000:3b:00.0 (8086:1592, ice, ens1f0)",
                                 "0000:5e:00.0 (8086:1592, no driver)"});
    EXPECT_EQ(pci_problem("0000:3b:00.7", sys_).find("nvme"), std::string::npos);
    expect_said("0000:00:02.0", {"not a network device", "0000:3b:00.0"});
    expect_said("0000:00:02.1", {"there is no PCI device"});
}

TEST_F(PciDevices, OnAMachineWithoutAnyAreSaidToBeNone) {
    expect_said("0000:3b:00.0", {"there is no network device on this machine's PCI bus"});
}

TEST(PciAddress, IsMadeWhole) {
    EXPECT_EQ(full_pci_address("3B:00.0"), "0000:3b:00.0");
    EXPECT_EQ(full_pci_address("0001:3b:00.0,a=b:c"), "0001:3b:00.0");
}

}  // namespace
