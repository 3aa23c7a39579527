// Which of DPDK's drivers a process loads. EAL loads all that are installed, some 150 shared objects, also where no
// device is opened: a third of the CPU time that the replay of a small capture took.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace weir::port {

/// By their names, such as "net_pcap"; no value: all that are installed.
using Drivers = std::optional<std::vector<std::string>>;

/// The drivers that these devices need ("net_pcap0,iface=..."; "kernel"; PCI addresses): all for a PCI device, because
/// only the drivers know which of them has it, and for one whose driver has no file of its name.
[[nodiscard]] Drivers drivers_of(const std::vector<std::string>& devices);

/// While one of these lives, rte_eal_init does not find its folder of drivers, and loads what its arguments name.
class OnlyNamedDrivers {
public:
    explicit OnlyNamedDrivers(const Drivers& drivers);
    ~OnlyNamedDrivers();
    OnlyNamedDrivers(const OnlyNamedDrivers&) = delete;
    OnlyNamedDrivers& operator=(const OnlyNamedDrivers&) = delete;
    /// For rte_eal_init; none if it is to load all.
    [[nodiscard]] const std::vector<std::string>& arguments() const noexcept { return arguments_; }

private:
    std::vector<std::string> arguments_;
};

}  // namespace weir::port
