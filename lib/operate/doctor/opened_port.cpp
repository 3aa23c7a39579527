#include "doctor/opened_port.hpp"

#include <fmt/format.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <rte_ethdev.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "config/device_facts.hpp"
#include "core/clock_ns.hpp"
#include "doctor/rule_trial.hpp"
#include "plan/setup.hpp"
#include "plan/stream_rules.hpp"
#include "port/port_config.hpp"
#include "port/rte_rules.hpp"
#include "stages/rx/rx_rules.hpp"

namespace weir::doctor {

namespace {

port::BufferPoolConfig pool_config(const config::PortConfig& port, std::uint32_t room_bytes) {
    const std::uint32_t buffers = std::uint32_t{port.rx_descriptors} * port.queues + 2048;
    return {.buffers = buffers, .room_bytes = room_bytes};
}

std::string flow_control_words(const rte_eth_fc_conf& conf) {
    switch (conf.mode) {
        case RTE_ETH_FC_RX_PAUSE:
            return "obeys pause frames";
        case RTE_ETH_FC_TX_PAUSE:
            return "sends pause frames";
        case RTE_ETH_FC_FULL:
            return "sends and obeys pause frames";
        default:
            return "off";
    }
}

/// Counters of pause frames, of links and of priorities, that have counted some.
std::vector<std::pair<std::string, std::uint64_t>> pause_counters(std::uint16_t id) {
    const int count = ::rte_eth_xstats_get_names(id, nullptr, 0);
    if (count <= 0) return {};
    std::vector<rte_eth_xstat_name> names(static_cast<std::size_t>(count));
    std::vector<rte_eth_xstat> values(names.size());
    if (::rte_eth_xstats_get_names(id, names.data(), names.size()) != count ||
        ::rte_eth_xstats_get(id, values.data(), static_cast<unsigned>(values.size())) != count)
        return {};
    std::vector<std::pair<std::string, std::uint64_t>> found;
    for (const rte_eth_xstat& value : values) {
        const std::string name = names[value.id].name;
        const bool pause = name.find("pause") != std::string::npos || name.find("xon") != std::string::npos ||
                           name.find("xoff") != std::string::npos;
        if (pause && value.value > 0) found.emplace_back(name, value.value);
    }
    return found;
}

/// The kernel's end of a device that has one: what is sent there, the device receives.
class KernelEnd {
public:
    explicit KernelEnd(const std::string& interface) {
        if (interface.empty()) return;
        socket_ = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
        address_.sll_family = AF_PACKET;
        address_.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
    }
    ~KernelEnd() {
        if (socket_ >= 0) ::close(socket_);
    }
    KernelEnd(const KernelEnd&) = delete;
    KernelEnd& operator=(const KernelEnd&) = delete;

    [[nodiscard]] bool send(std::span<const std::byte> frame) const {
        return socket_ >= 0 && address_.sll_ifindex != 0 &&
               ::sendto(socket_, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&address_),
                        sizeof address_) == static_cast<ssize_t>(frame.size());
    }

private:
    int socket_ = -1;
    sockaddr_ll address_{};
};

class PortTraffic final : public RuleTraffic {
public:
    PortTraffic(port::LivePort& port, const std::string& kernel_end, double watch_s)
        : port_(port),
          kernel_end_(kernel_end),
          end_(std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                      std::chrono::duration<double>(watch_s))) {}

    bool send(std::span<const std::byte> frame) override { return kernel_end_.send(frame); }
    void receive(const std::function<void(const Arrival&)>& take) override {
        std::array<port::Packet, port_burst> packets;
        for (std::uint16_t queue = 0; queue < port_.queues(); ++queue) {
            const auto burst = port_.receive(queue, packets, core::clock_ns(CLOCK_REALTIME), 0);
            for (std::uint32_t i = 0; i < burst.count; ++i) {
                const port::OwnedMbuf owned(packets[i].mbuf);
                take({{port::frame_of(packets[i]), packets[i].captured_bytes}, queue, stages::mark_of(packets[i])});
            }
        }
    }
    bool go_on() override {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the kernel's end needs its turn, too
        return std::chrono::steady_clock::now() < end_;
    }

private:
    static constexpr std::size_t port_burst = 64;
    port::LivePort& port_;
    KernelEnd kernel_end_;
    std::chrono::steady_clock::time_point end_;
};

}  // namespace

std::uint64_t OpenedPort::memory_bytes(const config::PortConfig& port, std::uint32_t room_bytes) {
    return port::BufferPool::memory_bytes(pool_config(port, room_bytes));
}

OpenedPort::OpenedPort(const config::RunConfig& config, const plan::Plan& plan, std::uint32_t index)
    : config_(config), plan_(plan), index_(index) {
    const config::PortConfig& port = config.ports[index];
    pool_ = std::make_unique<port::BufferPool>(fmt::format("doctor{}", index), pool_config(port, plan.room_bytes));
    const port::LivePortConfig live = port::live_port_config(port, static_cast<std::uint8_t>(index));
    port_ = std::make_unique<port::LivePort>(live, std::vector<port::BufferPool*>(live.queues, pool_.get()));
}

DeviceFacts OpenedPort::look() const {
    const std::uint16_t id = port_->id();
    DeviceFacts facts;
    facts.port = config_.ports[index_].name;
    facts.driver = port_->setup().driver;
    facts.mtu = port_->setup().mtu;
    // A link takes a moment after the start.
    for (int tries = 0; tries < 20 && !port_->link().up; ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    facts.link_up = port_->link().up;
    facts.mbps = port_->link().mbps;
    std::array<char, 64> firmware{};
    if (::rte_eth_dev_fw_version_get(id, firmware.data(), firmware.size()) == 0) facts.firmware = firmware.data();
    rte_eth_dev_info info{};
    if (::rte_eth_dev_info_get(id, &info) == 0) facts.rx_descriptors_max = info.rx_desc_lim.nb_max;
    rte_eth_rxq_info queue{};
    facts.rx_descriptors = ::rte_eth_rx_queue_info_get(id, 0, &queue) == 0 && queue.nb_desc > 0
                               ? queue.nb_desc
                               : port_->setup().offloads.rx_descriptors;
    facts.node = ::rte_eth_dev_socket_id(id);
    rte_eth_fc_conf flow{};
    if (const int rc = ::rte_eth_dev_flow_ctrl_get(id, &flow); rc == 0)
        facts.flow_control = flow_control_words(flow);
    else
        facts.flow_control = Known<std::string>::no(fmt::format("the driver does not say ({})", rte_strerror(-rc)));
    facts.pause_counters = pause_counters(id);
    return facts;
}

Known<std::vector<RuleOutcome>> OpenedPort::try_rules(double watch_s) {
    const config::PortConfig& port = config_.ports[index_];
    std::vector<steer::FlowRule> rules = port.rules;
    if (port.flows.empty())
        rules = plan::make_own_rules(config_, index_, plan::make_owners(config_, plan_.placement), plan_.placement);
    if (rules.empty() || port.steer == config::SteerMode::software)
        return std::vector<RuleOutcome>{};  // nothing is asked of the device
    port::EthdevRules device(port_->id());
    steer::PortRules::Options options;
    options.fail_on_refusal = port.on_refusal == config::RefusalMode::fail;
    options.spreads = port.queues > 1;
    if (port.isolated) options.alone = device.isolate(true).empty();
    const bool tap = config::driver_of(port.device) == "net_tap";
    PortTraffic traffic(*port_, tap ? port_->setup().interface : "", watch_s);
    return doctor::try_rules(rules, options, device, traffic);
}

}  // namespace weir::doctor
