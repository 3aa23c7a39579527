#include "port/port_setup.hpp"

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "config/device_facts.hpp"
#include "core/error.hpp"
#include "port/device_problem.hpp"
#include "port/eal.hpp"
#include "port/flow_control.hpp"
#include "port/interface_link.hpp"
#include "port/pci_devices.hpp"
#include "wire/network.hpp"

namespace weir::port {

namespace {

class PortSetup {
public:
    PortSetup(const LivePortConfig& config, std::span<BufferPool* const> pools, std::atomic_flag& answering)
        : config_(config), pools_(pools), answering_(answering) {}

    [[nodiscard]] StartedPort run();

private:
    [[noreturn]] void fail(const char* step, int code) const;
    void remark(const std::string& text);
    [[noreturn]] void fail_because(const char* step, std::string reason) const;
    void find_device();
    void make_kernel_device();
    void open_kernel_device();
    void refused(const FlowControlResult& flow_control);
    void check_interface();
    void plan();
    [[nodiscard]] std::uint16_t transmit_queues() const noexcept;
    void configure();
    void set_up_queues();
    void start();
    void read_back();
    void open_clock();

    const LivePortConfig& config_;
    std::span<BufferPool* const> pools_;  ///< per queue
    std::atomic_flag& answering_;
    bool started_ = false;
    StartedPort port_;
};

StartedPort PortSetup::run() {
    const LogCapture log;
    find_device();
    // The interface of a TAP is made for us, with the kernel's usual MTU: its senders would have to fragment.
    if (config::driver_of(config_.device) == "net_tap" && !set_interface_mtu(port_.settings.interface, config_.mtu))
        remark(fmt::format("the interface's MTU stays: {}", std::strerror(errno)));
    check_interface();
    try {
        plan();
        configure();
        set_up_queues();
        start();
        read_back();
        open_clock();
    } catch (...) {
        // One that is half configured is left alone: some drivers do not survive being closed then.
        if (started_) {
            ::rte_eth_dev_stop(port_.id);
            ::rte_eth_dev_close(port_.id);
        }
        throw;
    }
    if (const std::string said = LogCapture::text(); !said.empty()) remark(said);
    return std::move(port_);
}

/// What the driver logged is the reason; the code that it returned says less, and often something else.
void PortSetup::fail(const char* step, int code) const {
    std::string reason = LogCapture::text();
    if (reason.empty()) reason = rte_strerror(code < 0 ? -code : code);
    fail_because(step, std::move(reason));
}

void PortSetup::fail_because(const char* step, std::string reason) const {
    const std::string args = config_.args.value_or("");
    if (const std::string missing = missing_driver_text(config_.device); !missing.empty() && config_.args.has_value())
        reason = missing + " (" + reason + ")";
    // Only what failed is blamed on a privilege: some drivers do without it on some kernels.
    if (const std::string lacking = privilege_problem(config_.device + "," + args); !lacking.empty())
        reason = lacking + " (" + reason + ")";
    if (config::is_pci_address(config_.device))
        if (const std::string problem = pci_problem(config_.device); !problem.empty())
            reason = problem + " (" + reason + ")";
    throw core::RunError(fmt::format("port '{}' ({}{}{}): {} failed: {}", config_.name, config_.device,
                                     args.empty() ? "" : ",", args, step, reason));
}

void PortSetup::remark(const std::string& text) {
    port_.remarks += (port_.remarks.empty() ? "" : ", ") + text;
}

void PortSetup::find_device() {
    const std::string all = config_.device + "," + config_.args.value_or("");
    if (const std::string problem = interface_problem(all); !problem.empty() && config_.args.has_value())
        throw core::RunError(fmt::format("port '{}' ({}): {}", config_.name, all, problem));
    if (const std::string problem = overwriting_problem(all); !problem.empty())
        throw core::RunError(fmt::format("port '{}': {}", config_.name, problem));
    port_.facts = config::device_facts(config_.device);
    port_.settings.interface = interface_of(config::driver_of(config_.device), config_.args.value_or(""));
    if (config::driver_of(config_.device) == "kernel") return make_kernel_device();
    if (config_.args.has_value())
        if (const int rc = ::rte_eal_hotplug_add("vdev", config_.device.c_str(), config_.args->c_str()); rc != 0)
            fail("creating the device", rc);
    const std::string name = config::is_pci_address(config_.device) ? full_pci_address(config_.device) : config_.device;
    if (const int rc = ::rte_eth_dev_get_port_by_name(name.c_str(), &port_.id); rc != 0) fail("finding the device", rc);
}

void PortSetup::make_kernel_device() {
    const std::string args = config_.args.value_or("");
    try {
        port_.kernel_device = std::make_unique<KernelDevice>(args, *pools_.front());
    } catch (const core::RunError& error) {
        fail_because("creating the device", error.what());
    }
    port_.id = port_.kernel_device->id();
    port_.settings.ring = fmt::format("{} MiB", config::kernel_ring_mib("kernel," + args));
}

/// The kernel drops what is longer than the interface's MTU before the driver sees it.
void PortSetup::check_interface() {
    port_.settings.interface_mtu = interface_mtu(port_.settings.interface);
    port_.settings.interface_is_made_up = interface_is_made_up(port_.settings.interface);
    if (!config_.receives || port_.settings.interface_mtu.value_or(config_.mtu) >= config_.mtu) return;
    throw core::RunError(
        fmt::format("port '{}' ({}): the interface {} has an MTU of {}, and the port's mtu is {}: "
                    "the kernel would drop longer frames before weir sees them. Run: ip link set {} mtu {}; or, "
                    "if no frames are that long, set mtu = {} in the port",
                    config_.name, config_.device, port_.settings.interface, *port_.settings.interface_mtu, config_.mtu,
                    port_.settings.interface, config_.mtu, *port_.settings.interface_mtu));
}

void PortSetup::plan() {
    rte_eth_dev_info info{};
    if (const int rc = ::rte_eth_dev_info_get(port_.id, &info); rc != 0) fail("asking for its abilities", rc);
    const bool stamps = config_.options.timestamps != config::Timestamps::hardware;  // the kernel's are none
    const DeviceAbilities abilities =
        port_.kernel_device != nullptr ? port_.kernel_device->abilities(stamps) : abilities_of(info);
    if (config_.queues > abilities.rx_queues_max)
        throw core::RunError(fmt::format("port '{}' ({}): {} queues are configured, the device has at most {}",
                                         config_.name, config_.device, config_.queues, abilities.rx_queues_max));
    if (config_.answer_queues > info.max_tx_queues)
        throw core::RunError(
            fmt::format("port '{}' ({}): {} rx lcores answer RoCE requests, "
                        "each through a transmit queue of its own, "
                        "and the device has {}: give it more (`qpairs` of net_af_packet, for example), "
                        "or fewer lcores in lcores.rx",
                        config_.name, config_.device, config_.answer_queues, info.max_tx_queues));
    if (config_.send_queues > info.max_tx_queues)
        throw core::RunError(
            fmt::format("port '{}' ({}): found {} queues to send through; accepted: up to {}, as the device has",
                        config_.name, config_.device, config_.send_queues, info.max_tx_queues));
    const DeviceRequest request{config_.queues, config_.mtu, config_.rx_descriptors, pools_.front()->room_bytes(),
                                config_.options};
    port_.settings.driver = abilities.driver;
    port_.settings.offloads = plan_offloads(abilities, request);
    if (config_.options.timestamps == config::Timestamps::hardware && !port_.settings.offloads.timestamps)
        throw core::RunError(fmt::format(
            "port '{}' ({}): timestamps = \"hardware\", but the driver offers none; accepted: \"auto\", \"software\"",
            config_.name, config_.device));
    for (const std::string& text : port_.settings.offloads.remarks) remark(text);
}

/// One is enough for ARP and ping.
std::uint16_t PortSetup::transmit_queues() const noexcept {
    return std::max(
        {port_.facts.paired ? config_.queues : std::uint16_t{1}, config_.answer_queues, config_.send_queues});
}

void PortSetup::configure() {
    const OffloadPlan& offloads = port_.settings.offloads;
    rte_eth_conf conf{};
    conf.rxmode.mq_mode = offloads.rss_types != 0 ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE;
    conf.rx_adv_conf.rss_conf.rss_hf = offloads.rss_types;
    // What the kernel does is asked of the kernel, and not of what the device is made of.
    conf.rxmode.offloads = port_.kernel_device != nullptr ? 0 : offloads.rx_offloads;
    if (offloads.mtu.has_value()) conf.rxmode.mtu = *offloads.mtu;
    if (const int rc = ::rte_eth_dev_configure(port_.id, config_.queues, transmit_queues(), &conf); rc != 0)
        fail("configuring", rc);
}

void PortSetup::set_up_queues() {
    const int socket = ::rte_eth_dev_socket_id(port_.id);
    for (std::uint16_t queue = 0; queue < config_.queues; ++queue)
        if (const int rc = ::rte_eth_rx_queue_setup(port_.id, queue, port_.settings.offloads.rx_descriptors,
                                                    static_cast<unsigned>(socket), nullptr, pools_[queue]->get());
            rc != 0)
            fail("setting up a receive queue", rc);
    for (std::uint16_t queue = 0; queue < transmit_queues(); ++queue)
        if (const int rc = ::rte_eth_tx_queue_setup(port_.id, queue, port_.settings.offloads.tx_descriptors,
                                                    static_cast<unsigned>(socket), nullptr);
            rc != 0)
            fail("setting up a transmit queue", rc);
    if (config_.answer_queues == 0) return;
    port_.answer_pool = std::make_unique<BufferPool>(
        fmt::format("answers{}", config_.index),
        AnswerSender::pool_config(config_.answer_queues, port_.settings.offloads.tx_descriptors));
    for (std::uint16_t queue = 0; queue < config_.answer_queues; ++queue)
        port_.answer_senders.emplace_back(port_.id, queue, *port_.answer_pool, queue == 0 ? &answering_ : nullptr);
}

void PortSetup::start() {
    if (const int rc = ::rte_eth_dev_start(port_.id); rc != 0) fail("starting", rc);
    started_ = true;
    if (port_.kernel_device != nullptr) return open_kernel_device();
    if (config_.options.promiscuous) {
        if (::rte_eth_promiscuous_enable(port_.id) != 0) remark("no promiscuous mode");
    } else if (const int rc = ::rte_eth_promiscuous_disable(port_.id); rc != 0 && rc != -ENOTSUP) {
        remark("promiscuous mode cannot be switched off");
    }
    port_.settings.promiscuous = ::rte_eth_promiscuous_get(port_.id) == 1;
    refused(set_flow_control(port_.id, config_.options));
}

void PortSetup::refused(const FlowControlResult& flow_control) {
    port_.settings.flow_control = flow_control.text;
    if (flow_control.refused.empty()) return;
    if (config_.options.flow_control_required)
        throw core::RunError(fmt::format("port '{}' ({}): {}", config_.name, config_.device, flow_control.refused));
    remark(flow_control.refused);
}

void PortSetup::open_kernel_device() {
    const bool promiscuous = config_.options.promiscuous;
    try {
        port_.settings.promiscuous = port_.kernel_device->open(transmit_queues(), promiscuous) && promiscuous;
    } catch (const core::RunError& error) {
        fail_because("starting", error.what());
    }
    if (promiscuous && !port_.settings.promiscuous) remark("no promiscuous mode");
    refused(set_flow_control(port_.id, config_.options));
}

void PortSetup::read_back() {
    rte_ether_addr mac{};
    if (::rte_eth_macaddr_get(port_.id, &mac) == 0)
        std::copy_n(mac.addr_bytes, port_.own.mac.size(), port_.own.mac.begin());
    port_.settings.mac = fmt::format("{:02x}", fmt::join(port_.own.mac, ":"));
    ::rte_eth_dev_get_mtu(port_.id, &port_.settings.mtu);
    port_.own.ip = config_.address.value_or(0);
    port_.own.has_ipv6 = config_.ipv6_address.has_value();
    if (port_.own.has_ipv6) port_.own.ipv6 = *config_.ipv6_address;
    // What such a device has taken up to now is of other interfaces too, and has gaps that nobody counts. From here on
    // every packet is received, or counted as missed.
    if (port_.facts.early) port_.settings.thrown_away = throw_away_packets(port_.id, config_.queues).packets;
    port_.kernel = InterfaceDrops::find(config::driver_of(config_.device), config_.args.value_or(""));
}

void PortSetup::open_clock() {
    if (!port_.settings.offloads.timestamps) return;
    // How long a packet that was stamped may be on its way to the queue. Only a bound for what is promised: stamps that
    // come later still are taken for this time, and counted.
    constexpr core::TimeNs lag_ns = core::ns_per_ms;
    std::string why_not;
    const KernelDevice* const kernel = port_.kernel_device.get();
    port_.clock = kernel != nullptr ? kernel->clock(why_not) : DeviceClock::open(port_.id, why_not);
    if (port_.clock != nullptr) {
        port_.stamp_lag_ns = kernel != nullptr ? KernelDevice::stamp_lag_ns() : lag_ns;
        return;
    }
    if (config_.options.timestamps == config::Timestamps::hardware)
        throw core::RunError(
            fmt::format("port '{}' ({}): timestamps = \"hardware\": {}", config_.name, config_.device, why_not));
    std::erase(port_.settings.offloads.got, "timestamp");
    port_.settings.offloads.without.push_back({"timestamp", why_not});
    port_.settings.offloads.timestamps = false;
}

}  // namespace

namespace {

bool is_datagram(const rte_mbuf* mbuf) noexcept {
    wire::Datagram datagram;
    const auto* frame = rte_pktmbuf_mtod(mbuf, const std::byte*);
    return wire::parse_frame(frame, mbuf->data_len, mbuf->pkt_len, datagram) == wire::ok;
}

}  // namespace

ThrownAway throw_away_packets(std::uint16_t id, std::uint16_t queues) noexcept {
    // As many as were in its rings, and a few; a sender that is faster than this loop must not hold it up for ever.
    constexpr std::uint64_t most = 1U << 17U;
    constexpr std::uint16_t burst = 64;
    std::array<rte_mbuf*, burst> packets;
    ThrownAway sum;
    for (std::uint16_t queue = 0; queue < queues; ++queue) {
        std::uint64_t count = 0;
        for (std::uint16_t taken = burst; taken > 0 && count < most; count += taken) {
            taken = ::rte_eth_rx_burst(id, queue, packets.data(), burst);
            sum.datagrams +=
                static_cast<std::uint64_t>(std::count_if(packets.begin(), packets.begin() + taken, is_datagram));
            ::rte_pktmbuf_free_bulk(packets.data(), taken);
        }
        sum.packets += count;
    }
    ::rte_eth_stats_reset(id);
    return sum;
}

StartedPort set_up_port(const LivePortConfig& config, std::span<BufferPool* const> pools, std::atomic_flag& answering) {
    return PortSetup(config, pools, answering).run();
}

}  // namespace weir::port
