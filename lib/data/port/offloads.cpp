#include "port/offloads.hpp"

#include <fmt/format.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace weir::port {

namespace {

constexpr std::uint32_t frame_bytes_beyond_mtu = RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN;

/// Drivers in which hardware time stamps leave the fast receive path as it is. mlx5 stamps in its vector code too
/// (drivers/net/mlx5/mlx5_rxtx_vec_sse.h of DPDK 22.11); ice, iavf and idpf leave theirs for the scalar one
/// (*_rxtx_vec_common.h). The kernel stamps in any case. Of others it is not known.
constexpr std::array<std::string_view, 2> stamps_for_free{"mlx5_pci", "kernel"};

/// The nearest length within the limits, and a remark if that is another one.
std::uint16_t fitted(const char* key, std::uint16_t wanted, const DescriptorLimits& limits,
                     std::vector<std::string>& remarks) {
    const std::uint32_t align = std::max<std::uint32_t>(1, limits.align);
    const std::uint32_t most = limits.max == 0 ? UINT16_MAX : limits.max;
    std::uint32_t value = (wanted + align - 1) / align * align;
    if (value > most) value = most / align * align;
    value = std::max<std::uint32_t>(value, limits.min);
    if (value != wanted)
        remarks.push_back(fmt::format("{} = {} became {}: the driver takes {} to {}, in steps of {}", key, wanted,
                                      value, limits.min, most, align));
    return static_cast<std::uint16_t>(value);
}

struct Planner {
    const DeviceAbilities& device;
    const DeviceRequest& request;
    OffloadPlan plan;

    void without(const char* what, std::string why) { plan.without.push_back({what, std::move(why)}); }

    /// Asks for an offload if the driver has it.
    bool ask(const char* what, std::uint64_t offload, const char* otherwise) {
        plan.asked.emplace_back(what);
        if ((device.rx_offloads & offload) != offload) {
            without(what, fmt::format("the driver does not offer it: {}", otherwise));
            return false;
        }
        plan.rx_offloads |= offload;
        plan.got.emplace_back(what);
        return true;
    }

    void checksums() {
        if (request.options.checksums == config::Checksums::ignore) {
            without("udp_checksum", "the configuration says checksums = \"ignore\"");
            return;
        }
        // Of IPv4 headers weir checks them itself, always: they are being read anyway.
        ask("udp_checksum", RTE_ETH_RX_OFFLOAD_UDP_CKSUM, "UDP checksums are not looked at");
    }

    void frames() {
        // Some virtual devices advertise 1518 bytes and carry jumbo frames all the same, but refuse to be told so.
        if (device.mtu_max >= request.mtu)
            plan.mtu = request.mtu;
        else
            plan.remarks.push_back(fmt::format("the driver advertises an MTU of {}, {} is left to the device",
                                               device.mtu_max, request.mtu));
        const std::uint32_t frame = request.mtu + frame_bytes_beyond_mtu;
        if (frame > request.room_bytes)
            ask("scatter", RTE_ETH_RX_OFFLOAD_SCATTER,
                "what it does with frames that are longer than a buffer is its own affair");
    }

    void spreading() {
        if (request.queues == 1) return;
        plan.asked.emplace_back("rss");
        // By addresses and ports where it can: streams differ in them. Fragments of one datagram stay together, because
        // they are hashed by addresses.
        constexpr std::uint64_t wanted = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP;
        plan.rss_types = device.rss_types & wanted;
        if (plan.rss_types != 0)
            plan.got.emplace_back("rss");
        else
            without("rss",
                    "the driver does not offer it: the device or the kernel spreads over the queues as it is set up, "
                    "and weir hands packets to the lcore that owns their stream");
    }

    void stamps() {
        const config::Timestamps wanted = request.options.timestamps;
        if (wanted == config::Timestamps::software) return;
        plan.asked.emplace_back("timestamp");
        if ((device.rx_offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP) == 0) {
            without("timestamp", "the driver does not offer it: packets get the time of the poll that took them");
        } else if (wanted == config::Timestamps::automatic &&
                   std::ranges::find(stamps_for_free, device.driver) == stamps_for_free.end()) {
            without("timestamp",
                    "with it the driver may leave its fast receive path: "
                    "timestamps = \"hardware\" asks for it all the same");
        } else {
            plan.timestamps = true;
            plan.rx_offloads |= RTE_ETH_RX_OFFLOAD_TIMESTAMP;
            plan.got.emplace_back("timestamp");
        }
    }
};

}  // namespace

DeviceAbilities abilities_of(const rte_eth_dev_info& info) {
    DeviceAbilities device;
    device.driver = info.driver_name != nullptr ? info.driver_name : "";
    device.rx_offloads = info.rx_offload_capa | info.rx_queue_offload_capa;
    device.rss_types = info.flow_type_rss_offloads;
    device.rx_queues_max = info.max_rx_queues;
    // Drivers that leave max_mtu at its default mean their frame length.
    constexpr std::uint32_t ethernet_bytes = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
    device.mtu_max =
        info.max_mtu == UINT16_MAX ? info.max_rx_pktlen - std::min(info.max_rx_pktlen, ethernet_bytes) : info.max_mtu;
    device.rx_descriptors = {info.rx_desc_lim.nb_min, info.rx_desc_lim.nb_max, info.rx_desc_lim.nb_align};
    device.tx_descriptors = {info.tx_desc_lim.nb_min, info.tx_desc_lim.nb_max, info.tx_desc_lim.nb_align};
    return device;
}

OffloadPlan plan_offloads(const DeviceAbilities& device, const DeviceRequest& request) {
    Planner planner{device, request, {}};
    OffloadPlan& plan = planner.plan;
    planner.checksums();
    planner.frames();
    planner.spreading();
    planner.stamps();
    plan.rx_descriptors = fitted("rx_descriptors", request.rx_descriptors, device.rx_descriptors, plan.remarks);
    plan.tx_descriptors = fitted("tx_descriptors", request.options.tx_descriptors, device.tx_descriptors, plan.remarks);
    return std::move(plan);
}

std::string offloads_text(const OffloadPlan& plan) {
    std::string text = plan.got.empty() ? "none" : fmt::format("{}", fmt::join(plan.got, ", "));
    for (const OffloadPlan::Without& part : plan.without) text += fmt::format("; without {} ({})", part.what, part.why);
    return text;
}

}  // namespace weir::port
