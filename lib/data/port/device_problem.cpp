#include "port/device_problem.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <net/if.h>
#include <rte_version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "config/device_facts.hpp"
#include "port/eal.hpp"
#include "port/interface_drops.hpp"
#include "port/interface_link.hpp"

namespace weir::port {

namespace {

struct Capability {
    unsigned bit;
    const char* name;
};
constexpr Capability raw{CAP_NET_RAW, "CAP_NET_RAW"};
constexpr Capability administer{CAP_NET_ADMIN, "CAP_NET_ADMIN"};
constexpr Capability lock{CAP_IPC_LOCK, "CAP_IPC_LOCK"};
constexpr Capability system{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"};

constexpr std::array of_kernel{raw};
constexpr std::array of_af_packet{raw, lock};
constexpr std::array of_af_xdp{raw, administer, system, lock};
constexpr std::array of_tap{administer};
constexpr std::array of_pcap{raw};

std::span<const Capability> needed_by(const std::string& driver, bool interface_named) {
    if (driver == "kernel") return of_kernel;
    if (driver == "net_af_packet") return of_af_packet;
    if (driver == "net_af_xdp") return of_af_xdp;
    if (driver == "net_tap") return of_tap;
    if (driver == "net_pcap" && interface_named) return of_pcap;  // a file needs none
    return {};
}

std::string arguments_of(const std::string& device) {
    const std::size_t comma = device.find(',');
    return comma == std::string::npos ? std::string() : device.substr(comma + 1);
}

/// Those that are in effect; all where the kernel does not say, so that nobody is accused.
std::uint64_t own_capabilities() {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("CapEff:")) return std::stoull(line.substr(7), nullptr, 16);
    return ~std::uint64_t{0};
}

/// "there are: eth0, eth1 and lo", in the process's network namespace.
std::string interfaces_text() {
    std::vector<std::string> names;
    if (struct if_nameindex* const all = ::if_nameindex(); all != nullptr) {
        for (const struct if_nameindex* one = all; one->if_index != 0; ++one) names.emplace_back(one->if_name);
        ::if_freenameindex(all);
    }
    std::ranges::sort(names);
    return names.empty() ? "there are none" : fmt::format("there are: {}", fmt::join(names, ", "));
}

std::string program() {
    std::array<char, 4096> path{};
    const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
    return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "weir";
}

}  // namespace

std::string device_name_problem(const std::string& device) {
    const std::string name = device.substr(0, device.find(','));
    // "eth_" is how older DPDK called them, and still an alias.
    if (config::is_pci_address(name) || name.starts_with("net_") || name.starts_with("eth_") ||
        config::driver_of(name) == "sim" || config::driver_of(name) == "kernel")
        return {};
    if (::if_nametoindex(name.c_str()) != 0)
        return fmt::format(
            "{} is an interface of the kernel: write \"kernel,iface={}\" to receive through a packet socket, "
            "or the card's PCI address if DPDK has a driver for it",
            name, name);
    return fmt::format(
        "a PCI address (\"0000:3b:00.0\"), \"kernel,iface=...\", a virtual device (\"net_memif0,...\") or \"sim,format=...\"; "
        "nor has the kernel an interface of that name: {}",
        interfaces_text());
}

std::string interface_problem(const std::string& device) {
    const std::string driver = config::driver_of(device);
    const std::string args = arguments_of(device);
    const std::string interface = interface_of(driver, args);
    if (driver == "net_tap") return {};  // makes its own
    if (interface.empty())
        return driver == "kernel" || driver == "net_af_packet" || driver == "net_af_xdp"
                   ? fmt::format("the device needs an interface, iface=NAME; {}", interfaces_text())
                   : std::string();
    if (::if_nametoindex(interface.c_str()) != 0) return {};
    return fmt::format("there is no interface '{}'; {}", interface, interfaces_text());
}

std::string overwriting_problem(const std::string& device) {
    constexpr std::string_view key = "tx_pcap=";
    const std::string driver = config::driver_of(device);
    if (driver != "net_pcap" && driver != "eth_pcap") return {};
    std::istringstream args(arguments_of(device));
    for (std::string one; std::getline(args, one, ',');) {
        std::error_code unknown;
        if (one.starts_with(key) && std::filesystem::is_regular_file(one.substr(key.size()), unknown))
            return fmt::format("{}: exists already; weir does not overwrite a capture", one);
    }
    return {};
}

std::vector<std::string> missing_capabilities(const std::string& device) {
    const std::string driver = config::driver_of(device);
    const std::uint64_t own = own_capabilities();
    std::vector<std::string> missing;
    for (const Capability& one : needed_by(driver, !interface_of(driver, arguments_of(device)).empty()))
        if ((own >> one.bit & 1U) == 0) missing.emplace_back(one.name);
    return missing;
}

std::string privilege_problem(const std::string& device) {
    const std::vector<std::string> missing = missing_capabilities(device);
    if (missing.empty()) return {};
    std::string names = fmt::format("{}", fmt::join(missing, ","));
    std::ranges::transform(names, names.begin(), [](unsigned char c) { return std::tolower(c); });
    return fmt::format("the process lacks {}: run as root, or once as root: setcap {}+ep {}",
                       fmt::join(missing, " and "), names, program());
}

std::string missing_driver_text(std::string_view device) {
    const std::string driver = config::driver_of(device);
    if (!driver.starts_with("net_") || driver == "net_virtio_user")
        return {};  // that one is in the library of net_virtio
    constexpr int abi = RTE_VER_YEAR >= 21 ? RTE_VER_YEAR + (RTE_VER_MONTH >= 11 ? 1 : 0) : 0;
    const std::string library = fmt::format("librte_{}.so.{}", driver, abi);
    void* const loaded = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (loaded != nullptr) {
        ::dlclose(loaded);
        return {};
    }
    std::string package = library.substr(0, library.find(".so")) + std::to_string(abi);
    std::ranges::replace(package, '_', '-');
    return fmt::format("DPDK has no driver '{}': is {} installed (on Debian the package {}), or the name misspelt?",
                       driver, library, package);
}

}  // namespace weir::port
