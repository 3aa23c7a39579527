#include "port/live_port.hpp"

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/tsan.hpp"
#include "port/eal.hpp"

namespace weir::port {

namespace {

/// What the driver logged is the reason; the code that it returned says less, and often something else.
[[noreturn]] void fail(const LivePortConfig& config, const char* step, int code) {
    std::string reason = LogCapture::text();
    if (reason.empty()) reason = rte_strerror(code < 0 ? -code : code);
    const std::string args = config.args.value_or("");
    if (const std::string missing = missing_driver_text(config.device); !missing.empty() && config.args.has_value())
        reason = missing + " (" + reason + ")";
    throw core::RunError(fmt::format("port '{}' ({}{}{}): {} failed: {}", config.name, config.device,
                                     args.empty() ? "" : ",", args, step, reason));
}

}  // namespace

LivePort::LivePort(const LivePortConfig& config, std::vector<BufferPool*> pools)
    : config_(config), pools_(std::move(pools)), taken_(std::make_unique<Taken[]>(config.queues)) {
    const LogCapture log;
    if (config.args.has_value())
        if (const int rc = ::rte_eal_hotplug_add("vdev", config.device.c_str(), config.args->c_str()); rc != 0)
            fail(config, "creating the device", rc);
    if (const int rc = ::rte_eth_dev_get_port_by_name(config.device.c_str(), &id_); rc != 0)
        fail(config, "finding the device", rc);
    rte_eth_dev_info info{};
    if (const int rc = ::rte_eth_dev_info_get(id_, &info); rc != 0) fail(config, "asking for its abilities", rc);
    if (config.queues > info.max_rx_queues)
        throw core::RunError(fmt::format("port '{}' ({}): {} queues are configured, the device has at most {}",
                                         config.name, config.device, config.queues, info.max_rx_queues));
    rte_eth_conf conf{};
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
    // Some virtual devices advertise 1518 bytes and carry jumbo frames all the same, but refuse to be told so.
    // Drivers that leave max_mtu at its default mean their frame length.
    constexpr std::uint32_t ethernet_bytes = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
    const std::uint32_t mtu_max =
        info.max_mtu == UINT16_MAX ? info.max_rx_pktlen - std::min(info.max_rx_pktlen, ethernet_bytes) : info.max_mtu;
    if (mtu_max >= config.mtu)
        conf.rxmode.mtu = config.mtu;
    else
        remarks_ = fmt::format("the driver advertises an MTU of {}, {} is left to the device", mtu_max, config.mtu);
    if (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER && mtu_max >= config.mtu) conf.rxmode.offloads = 0;
    if (const int rc = ::rte_eth_dev_configure(id_, config.queues, 1, &conf); rc != 0) fail(config, "configuring", rc);
    std::uint16_t rx_descriptors = config.rx_descriptors;
    std::uint16_t tx_descriptors = 256;
    if (const int rc = ::rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx_descriptors, &tx_descriptors); rc != 0)
        fail(config, "setting the number of descriptors", rc);
    const int socket = ::rte_eth_dev_socket_id(id_);
    for (std::uint16_t queue = 0; queue < config.queues; ++queue)
        if (const int rc = ::rte_eth_rx_queue_setup(id_, queue, rx_descriptors, static_cast<unsigned>(socket), nullptr,
                                                    pools_[queue]->get());
            rc != 0)
            fail(config, "setting up a receive queue", rc);
    if (const int rc = ::rte_eth_tx_queue_setup(id_, 0, tx_descriptors, static_cast<unsigned>(socket), nullptr);
        rc != 0)
        fail(config, "setting up the transmit queue", rc);
    if (const int rc = ::rte_eth_dev_start(id_); rc != 0) fail(config, "starting", rc);
    // Streams are often addressed to the group or to a MAC that the sender was told by hand.
    if (::rte_eth_promiscuous_enable(id_) != 0)
        remarks_ += remarks_.empty() ? "no promiscuous mode" : ", no promiscuous mode";
    // The interface of a TAP is made for us, with the kernel's usual MTU: its senders would have to fragment.
    if (const std::string tap = argument(config.args.value_or(""), "iface"); config.device.starts_with("net_tap"))
        if (!set_interface_mtu(tap.empty() ? "dtap0" : tap, config.mtu))
            remarks_ +=
                fmt::format("{}the interface's MTU stays: {}", remarks_.empty() ? "" : ", ", std::strerror(errno));
    rte_ether_addr mac{};
    if (::rte_eth_macaddr_get(id_, &mac) == 0) std::copy_n(mac.addr_bytes, own_.mac.size(), own_.mac.begin());
    own_.ip = config.address.value_or(0);
    own_.has_ipv6 = config.ipv6_address.has_value();
    if (own_.has_ipv6) own_.ipv6 = *config.ipv6_address;
    facts_ = device_facts(config.device);
    kernel_ = InterfaceDrops::find(driver_of(config.device), config.args.value_or(""));
    if (const std::string said = LogCapture::text(); !said.empty()) remarks_ += (remarks_.empty() ? "" : ", ") + said;
}

LivePort::~LivePort() {
    ::rte_eth_dev_stop(id_);
    ::rte_eth_dev_close(id_);
}

std::uint32_t LivePort::receive(std::uint16_t queue, std::span<Packet> packets, core::TimeNs now) noexcept {
    std::array<rte_mbuf*, 64> burst;
    const auto wanted = static_cast<std::uint16_t>(std::min(packets.size(), burst.size()));
    const std::uint16_t count = ::rte_eth_rx_burst(id_, queue, burst.data(), wanted);
    for (std::uint16_t i = 0; i < count; ++i) {
        core::ordered_after(burst[i]);
        // A frame in several segments is read up to the end of its first; parsing then finds it cut and counts it.
        packets[i] = {burst[i], now, burst[i]->pkt_len, burst[i]->data_len, static_cast<std::uint8_t>(config_.index)};
    }
    std::atomic<std::uint64_t>& taken = taken_[queue].packets;
    if (count > 0) taken.store(taken.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    return count;
}

void LivePort::answer(std::span<const std::byte> frame) noexcept {
    if (own_.ip == 0 && !own_.has_ipv6) return;
    BufferPool& pool = *pools_.front();
    rte_mbuf* reply = pool.allocate();
    if (reply == nullptr) return;
    const std::size_t bytes = port::answer(frame, own_, {rte_pktmbuf_mtod(reply, std::byte*), pool.room_bytes()});
    if (bytes == 0) {
        ::rte_pktmbuf_free(reply);
        return;
    }
    reply->data_len = static_cast<std::uint16_t>(bytes);
    reply->pkt_len = static_cast<std::uint32_t>(bytes);
    if (::rte_eth_tx_burst(id_, 0, &reply, 1) == 0) ::rte_pktmbuf_free(reply);
}

LivePort::DeviceCounters LivePort::counters() const noexcept {
    rte_eth_stats stats{};
    if (::rte_eth_stats_get(id_, &stats) != 0) return {};
    DeviceCounters counters;
    counters.received = stats.ipackets;
    if (facts_.forgets) {
        counters.received = 0;
        for (std::uint16_t queue = 0; queue < config_.queues; ++queue)
            counters.received += taken_[queue].packets.load(std::memory_order_relaxed);
    }
    if (facts_.loss == LossTold::lossless) {
        // Its statistics count attempts to give it buffers; the packets wait where they are.
        counters.missed = counters.no_buffer = 0;
        return counters;
    }
    const std::optional<std::uint64_t> kernel = kernel_.dropped();
    if (facts_.driver == "net_af_xdp") {
        // The interface counts what the driver may count too.
        if (kernel.has_value()) counters.missed = std::max(*kernel, std::uint64_t{stats.imissed});
    } else if (facts_.loss == LossTold::counted) {
        counters.missed = stats.imissed + kernel.value_or(0);
    } else if (stats.imissed > 0) {
        counters.missed = stats.imissed;
    }
    if (facts_.loss == LossTold::counted || stats.rx_nombuf > 0) counters.no_buffer = stats.rx_nombuf;
    return counters;
}

}  // namespace weir::port
