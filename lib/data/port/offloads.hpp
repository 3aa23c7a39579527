// What is asked of a device: decided from what it says it can do, so that nothing is asked that the driver does not
// offer, and what weir does without is said. A pure function on a plain struct, which tests fill like any card.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/port_options.hpp"

struct rte_eth_dev_info;

namespace weir::port {

/// A driver's limits for the length of a queue.
struct DescriptorLimits {
    std::uint16_t min = 0;
    std::uint16_t max = UINT16_MAX;
    std::uint16_t align = 1;
};

/// The part of rte_eth_dev_info that decides.
struct DeviceAbilities {
    std::string driver;             ///< as it calls itself: "mlx5_pci", "net_ice", "net_af_packet"
    std::uint64_t rx_offloads = 0;  ///< RTE_ETH_RX_OFFLOAD_*, of the port and of its queues
    std::uint64_t rss_types = 0;    ///< RTE_ETH_RSS_*; 0: it spreads nothing
    std::uint16_t rx_queues_max = 1;
    std::uint32_t mtu_max = 0;
    DescriptorLimits rx_descriptors;
    DescriptorLimits tx_descriptors;
};
[[nodiscard]] DeviceAbilities abilities_of(const rte_eth_dev_info& info);

/// What the configuration and the packet buffers call for.
struct DeviceRequest {
    std::uint16_t queues = 1;
    std::uint16_t mtu = 9000;
    std::uint16_t rx_descriptors = 1024;
    std::uint32_t room_bytes = 0;  ///< longest frame that fits into one buffer
    config::PortOptions options;
};

/// What the device is told, and what is said about it.
struct OffloadPlan {
    struct Without {
        std::string what;  ///< "timestamp"
        std::string why;   ///< in words
    };
    std::uint64_t rx_offloads = 0;     ///< RTE_ETH_RX_OFFLOAD_*
    std::uint64_t rss_types = 0;       ///< RTE_ETH_RSS_*; 0: not asked to spread
    std::optional<std::uint16_t> mtu;  ///< nothing: left to the device, which would refuse this one
    std::uint16_t rx_descriptors = 0;  ///< within the driver's limits
    std::uint16_t tx_descriptors = 0;
    bool timestamps = false;
    std::vector<std::string> asked;    ///< what weir wanted: "udp_checksum", "scatter", "rss", "timestamp"
    std::vector<std::string> got;      ///< of these, what the device does
    std::vector<Without> without;      ///< and the rest, with the reason
    std::vector<std::string> remarks;  ///< sentences for the start of the run
};

[[nodiscard]] OffloadPlan plan_offloads(const DeviceAbilities& device, const DeviceRequest& request);

/// "udp_checksum, rss; without timestamp (the driver does not offer it)".
[[nodiscard]] std::string offloads_text(const OffloadPlan& plan);

}  // namespace weir::port
