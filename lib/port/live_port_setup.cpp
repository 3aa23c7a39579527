// How a port comes to life: step by step, each checked, and what the driver would not do is remembered.
#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "config/device_facts.hpp"
#include "core/error.hpp"
#include "port/device_problem.hpp"
#include "port/eal.hpp"
#include "port/flow_control.hpp"
#include "port/interface_link.hpp"
#include "port/live_port.hpp"
#include "port/pci_devices.hpp"

namespace weir::port {

/// What the driver logged is the reason; the code that it returned says less, and often something else.
void LivePort::fail(const char* step, int code) const {
    std::string reason = LogCapture::text();
    if (reason.empty()) reason = rte_strerror(code < 0 ? -code : code);
    const std::string args = config_.args.value_or("");
    if (const std::string missing = missing_driver_text(config_.device); !missing.empty() && config_.args.has_value())
        reason = missing + " (" + reason + ")";
    // Only what failed is blamed on a privilege: some drivers do without it on some kernels.
    if (const std::string lacking = privilege_problem(config_.device + "," + args); !lacking.empty())
        reason = lacking + " (" + reason + ")";
    if (is_pci_address(config_.device))
        if (const std::string problem = pci_problem(config_.device); !problem.empty())
            reason = problem + " (" + reason + ")";
    throw core::RunError(fmt::format("port '{}' ({}{}{}): {} failed: {}", config_.name, config_.device,
                                     args.empty() ? "" : ",", args, step, reason));
}

void LivePort::remark(const std::string& text) {
    remarks_ += (remarks_.empty() ? "" : ", ") + text;
}

LivePort::LivePort(const LivePortConfig& config, std::vector<BufferPool*> pools)
    : config_(config), pools_(std::move(pools)), taken_(std::make_unique<Taken[]>(config.queues)) {
    const LogCapture log;
    find_device();
    // The interface of a TAP is made for us, with the kernel's usual MTU: its senders would have to fragment.
    if (driver_of(config_.device) == "net_tap" && !set_interface_mtu(setup_.interface, config_.mtu))
        remark(fmt::format("the interface's MTU stays: {}", std::strerror(errno)));
    check_interface();
    try {
        plan();
        configure();
        set_up_queues();
        start();
        settle();
        open_clock();
    } catch (...) {
        // One that is half configured is left alone: some drivers do not survive being closed then.
        if (started_) {
            ::rte_eth_dev_stop(id_);
            ::rte_eth_dev_close(id_);
        }
        throw;
    }
    if (const std::string said = LogCapture::text(); !said.empty()) remark(said);
}

void LivePort::find_device() {
    const std::string all = config_.device + "," + config_.args.value_or("");
    if (const std::string problem = interface_problem(all); !problem.empty() && config_.args.has_value())
        throw core::RunError(fmt::format("port '{}' ({}): {}", config_.name, all, problem));
    if (config_.args.has_value())
        if (const int rc = ::rte_eal_hotplug_add("vdev", config_.device.c_str(), config_.args->c_str()); rc != 0)
            fail("creating the device", rc);
    const std::string name = is_pci_address(config_.device) ? full_pci_address(config_.device) : config_.device;
    if (const int rc = ::rte_eth_dev_get_port_by_name(name.c_str(), &id_); rc != 0) fail("finding the device", rc);
    facts_ = device_facts(config_.device);
    setup_.interface = interface_of(driver_of(config_.device), config_.args.value_or(""));
}

/// The kernel drops what is longer than the interface's MTU before the driver sees it.
void LivePort::check_interface() {
    setup_.interface_mtu = interface_mtu(setup_.interface);
    if (!config_.receives || setup_.interface_mtu.value_or(config_.mtu) >= config_.mtu) return;
    throw core::RunError(fmt::format(
        "port '{}' ({}): the interface {} has an MTU of {}, and the port's mtu is {}: the kernel would drop longer "
        "frames before weir sees them. Run: ip link set {} mtu {}; or, if no frames are that long, set mtu = {} in "
        "the port",
        config_.name, config_.device, setup_.interface, *setup_.interface_mtu, config_.mtu, setup_.interface,
        config_.mtu, *setup_.interface_mtu));
}

void LivePort::plan() {
    rte_eth_dev_info info{};
    if (const int rc = ::rte_eth_dev_info_get(id_, &info); rc != 0) fail("asking for its abilities", rc);
    const DeviceAbilities abilities = abilities_of(info);
    if (config_.queues > abilities.rx_queues_max)
        throw core::RunError(fmt::format("port '{}' ({}): {} queues are configured, the device has at most {}",
                                         config_.name, config_.device, config_.queues, abilities.rx_queues_max));
    if (config_.answer_queues > info.max_tx_queues)
        throw core::RunError(
            fmt::format("port '{}' ({}): {} rx lcores answer RoCE requests, each through a transmit queue of its own, "
                        "and the device "
                        "has {}: give it more (`qpairs` of net_af_packet, for example), or fewer lcores in lcores.rx",
                        config_.name, config_.device, config_.answer_queues, info.max_tx_queues));
    if (config_.send_queues > info.max_tx_queues)
        throw core::RunError(
            fmt::format("port '{}' ({}): found {} queues to send through; accepted: up to {}, as the device has",
                        config_.name, config_.device, config_.send_queues, info.max_tx_queues));
    const DeviceWishes wishes{config_.queues, config_.mtu, config_.rx_descriptors, pools_.front()->room_bytes(),
                              config_.options};
    setup_.driver = abilities.driver;
    setup_.offloads = plan_offloads(abilities, wishes);
    if (config_.options.timestamps == Timestamps::hardware && !setup_.offloads.timestamps)
        throw core::RunError(fmt::format(
            "port '{}' ({}): timestamps = \"hardware\", but the driver offers none; accepted: \"auto\", \"software\"",
            config_.name, config_.device));
    for (const std::string& text : setup_.offloads.remarks) remark(text);
}

/// One is enough for ARP and ping.
std::uint16_t LivePort::transmit_queues() const noexcept {
    return std::max({facts_.paired ? config_.queues : std::uint16_t{1}, config_.answer_queues, config_.send_queues});
}

void LivePort::configure() {
    const OffloadPlan& offloads = setup_.offloads;
    rte_eth_conf conf{};
    conf.rxmode.mq_mode = offloads.rss_types != 0 ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE;
    conf.rx_adv_conf.rss_conf.rss_hf = offloads.rss_types;
    conf.rxmode.offloads = offloads.rx_offloads;
    if (offloads.mtu.has_value()) conf.rxmode.mtu = *offloads.mtu;
    if (const int rc = ::rte_eth_dev_configure(id_, config_.queues, transmit_queues(), &conf); rc != 0)
        fail("configuring", rc);
}

void LivePort::set_up_queues() {
    const int socket = ::rte_eth_dev_socket_id(id_);
    for (std::uint16_t queue = 0; queue < config_.queues; ++queue)
        if (const int rc = ::rte_eth_rx_queue_setup(id_, queue, setup_.offloads.rx_descriptors,
                                                    static_cast<unsigned>(socket), nullptr, pools_[queue]->get());
            rc != 0)
            fail("setting up a receive queue", rc);
    for (std::uint16_t queue = 0; queue < transmit_queues(); ++queue)
        if (const int rc = ::rte_eth_tx_queue_setup(id_, queue, setup_.offloads.tx_descriptors,
                                                    static_cast<unsigned>(socket), nullptr);
            rc != 0)
            fail("setting up a transmit queue", rc);
    if (config_.answer_queues == 0) return;
    answer_pool_ =
        std::make_unique<BufferPool>(fmt::format("answers{}", config_.index),
                                     AnswerSender::pool_config(config_.answer_queues, setup_.offloads.tx_descriptors));
    for (std::uint16_t queue = 0; queue < config_.answer_queues; ++queue)
        answer_senders_.emplace_back(id_, queue, *answer_pool_, queue == 0 ? &answering_ : nullptr);
}

void LivePort::start() {
    if (const int rc = ::rte_eth_dev_start(id_); rc != 0) fail("starting", rc);
    started_ = true;
    if (config_.options.promiscuous) {
        if (::rte_eth_promiscuous_enable(id_) != 0) remark("no promiscuous mode");
    } else if (const int rc = ::rte_eth_promiscuous_disable(id_); rc != 0 && rc != -ENOTSUP) {
        remark("promiscuous mode cannot be switched off");
    }
    setup_.promiscuous = ::rte_eth_promiscuous_get(id_) == 1;
    const FlowControlResult flow_control = set_flow_control(id_, config_.options);
    setup_.flow_control = flow_control.text;
    if (flow_control.refused.empty()) return;
    if (config_.options.flow_control_required)
        throw core::RunError(fmt::format("port '{}' ({}): {}", config_.name, config_.device, flow_control.refused));
    remark(flow_control.refused);
}

void LivePort::settle() {
    rte_ether_addr mac{};
    if (::rte_eth_macaddr_get(id_, &mac) == 0) std::copy_n(mac.addr_bytes, own_.mac.size(), own_.mac.begin());
    setup_.mac = fmt::format("{:02x}", fmt::join(own_.mac, ":"));
    ::rte_eth_dev_get_mtu(id_, &setup_.mtu);
    own_.ip = config_.address.value_or(0);
    own_.has_ipv6 = config_.ipv6_address.has_value();
    if (own_.has_ipv6) own_.ipv6 = *config_.ipv6_address;
    throw_away_early_packets();
    kernel_ = InterfaceDrops::find(driver_of(config_.device), config_.args.value_or(""));
}

/// What such a device has taken up to now is of other interfaces too, and has gaps that nobody counts. From here on
/// every packet is received, or counted as missed.
void LivePort::throw_away_early_packets() {
    if (!facts_.early) return;
    // As many as were in its rings, and a few; a sender that is faster than this loop must not hold it up for ever.
    constexpr std::uint64_t most = 1U << 17U;
    constexpr std::uint16_t burst = 64;
    std::array<rte_mbuf*, burst> packets;
    for (std::uint16_t queue = 0; queue < config_.queues; ++queue) {
        std::uint64_t count = 0;
        for (std::uint16_t taken = burst; taken > 0 && count < most; count += taken) {
            taken = ::rte_eth_rx_burst(id_, queue, packets.data(), burst);
            ::rte_pktmbuf_free_bulk(packets.data(), taken);
        }
        setup_.thrown_away += count;
    }
    ::rte_eth_stats_reset(id_);
}

void LivePort::open_clock() {
    if (!setup_.offloads.timestamps) return;
    // How long a packet that was stamped may be on its way to the queue. Only a bound for what is promised: stamps that
    // come later still are taken for this time, and counted.
    constexpr core::TimeNs lag_ns = core::ns_per_ms;
    std::string why_not;
    clock_ = DeviceClock::open(id_, why_not);
    if (clock_ != nullptr) {
        stamp_lag_ns_ = lag_ns;
        return;
    }
    if (config_.options.timestamps == Timestamps::hardware)
        throw core::RunError(
            fmt::format("port '{}' ({}): timestamps = \"hardware\": {}", config_.name, config_.device, why_not));
    std::erase(setup_.offloads.got, "timestamp");
    setup_.offloads.without.push_back({"timestamp", why_not});
    setup_.offloads.timestamps = false;
}

LivePort::~LivePort() {
    ::rte_eth_dev_stop(id_);
    ::rte_eth_dev_close(id_);
}

}  // namespace weir::port
