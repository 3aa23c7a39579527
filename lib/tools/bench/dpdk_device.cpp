#include "bench/dpdk_device.hpp"

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include <atomic>

#include "config/device_facts.hpp"
#include "port/eal.hpp"

namespace weir::bench {
namespace {

constexpr std::uint64_t other_memory_bytes = 64U << 20;

}  // namespace

void need_eal(const std::string& device) {
    struct Eal {
        explicit Eal(const std::string& first) {
            port::EalConfig config;
            config.memory_bytes =
                port::BufferPool::memory_bytes({.buffers = dpdk_buffers, .room_bytes = room_bytes_max}) +
                other_memory_bytes;
            if (config::is_pci_address(first)) config.pci.push_back(first.substr(0, first.find(',')));
            config.pin = false;
            port::start_eal(config);
        }
        ~Eal() { port::stop_eal(); }
    };
    static Eal eal(device);
}

void need_lcore() {
    struct Registered {
        Registered() : own(::rte_lcore_id() == LCORE_ID_ANY && ::rte_thread_register() == 0) {}
        ~Registered() {
            if (own) ::rte_thread_unregister();
        }
        bool own;
    };
    thread_local Registered registered;
}

std::uint32_t next_dpdk_id() {
    static std::atomic<std::uint32_t> next{0};
    return next.fetch_add(1);
}

port::LivePortConfig dpdk_port_config(const std::string& device, std::uint32_t mtu) {
    port::LivePortConfig config;
    config.name = "bench";
    const std::size_t comma = device.find(',');
    config.device = device.substr(0, comma);
    if (!config::is_pci_address(device)) config.args = comma == std::string::npos ? "" : device.substr(comma + 1);
    config.mtu = static_cast<std::uint16_t>(mtu);
    config.options.timestamps = config::Timestamps::software;
    return config;
}

DpdkPlace::DpdkPlace(const std::string& device)
    : name_(device.substr(0, device.find(','))), bus_(config::is_pci_address(device) ? "pci" : "vdev") {
    need_eal(device);
    std::uint16_t id = 0;
    // A virtual device is made by its port.
    if (config::is_pci_address(device) && ::rte_eth_dev_get_port_by_name(name_.c_str(), &id) != 0)
        (void)::rte_eal_hotplug_add(bus_, name_.c_str(), "");
}

DpdkPlace::~DpdkPlace() {
    const port::LogCapture quiet;  // it has gone already if it never came to be
    (void)::rte_eal_hotplug_remove(bus_, name_.c_str());
}

}  // namespace weir::bench
