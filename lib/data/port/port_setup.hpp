// How a port comes to life: step by step, each checked, and what the driver would not do is remembered.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/device_facts.hpp"
#include "core/units.hpp"
#include "port/answer_sender.hpp"
#include "port/arp_responder.hpp"
#include "port/buffers.hpp"
#include "port/device_clock.hpp"
#include "port/interface_drops.hpp"
#include "port/kernel_device.hpp"
#include "port/offloads.hpp"

namespace weir::port {

struct LivePortConfig {
    std::string name;                 ///< of the port, for people
    std::uint8_t index = 0;           ///< in the configuration; stamped into packets
    std::string device;               ///< as DPDK names it: PCI address, or the vdev's name before the first comma
    std::optional<std::string> args;  ///< a vdev that is to be created, with these; otherwise it is there already
    std::uint16_t queues = 1;
    std::uint16_t mtu = 9000;
    std::uint16_t rx_descriptors = 1024;
    /// rx lcores that answer RoCE requests, each through a transmit queue of its own; 0: none does.
    std::uint16_t answer_queues = 0;
    std::uint16_t send_queues = 1;                               ///< that a sender uses
    bool receives = true;                                        ///< frames as long as the MTU says have to come in
    std::optional<std::uint32_t> address;                        ///< IPv4, host byte order: answer ARP and ping for it
    std::optional<std::array<std::uint8_t, 16>> ipv6_address{};  ///< likewise neighbour solicitations and ping
    config::PortOptions options{};
};

/// What has become of the configuration; constant from the start on.
struct PortSettings {
    std::string driver;  ///< as it calls itself: "net_memif", "mlx5_pci"
    std::string mac;
    OffloadPlan offloads;
    std::uint16_t mtu = 0;  ///< as the driver says it is; 0: it does not say
    bool promiscuous = false;
    std::string flow_control;
    std::string interface;                       ///< of the kernel, that the device sits on; empty: none
    bool interface_is_made_up = false;           ///< the kernel made it, and no card is behind it: veth, TAP
    std::optional<std::uint32_t> interface_mtu;  ///< nothing: there is none, or it does not say
    std::string ring;                            ///< "64 MiB": instead of receive descriptors; empty: it has those
    std::uint64_t thrown_away = 0;               ///< packets that came before the run could take them
    std::uint64_t too_early = 0;                 ///< of them, datagrams that were sent to this device
};

/// A device that is configured and started; whoever has this stops and closes it.
struct StartedPort {
    std::uint16_t id = 0;
    std::unique_ptr<KernelDevice> kernel_device;  ///< what the port is made of, if it is one
    config::DeviceFacts facts;
    PortAddress own;
    InterfaceDrops kernel;
    std::unique_ptr<DeviceClock> clock;
    core::TimeNs stamp_lag_ns = 0;  ///< with a clock: how long a packet that was stamped may be on its way
    std::unique_ptr<BufferPool> answer_pool;
    std::vector<AnswerSender> answer_senders;  ///< per transmit queue, if RoCE requests are answered
    PortSettings settings;
    std::string remarks;  ///< what the driver would not do, in words; empty if nothing
};

/// `pools`: of each queue. `answering`: taken by who uses the first transmit queue. Throws core::RunError naming the
/// step that failed and the driver's answer.
[[nodiscard]] StartedPort set_up_port(const LivePortConfig& config, std::span<BufferPool* const> pools,
                                      std::atomic_flag& answering);

struct ThrownAway {
    std::uint64_t packets = 0;
    std::uint64_t datagrams = 0;  ///< of them, of UDP
};
/// Gives back what waits in a port's queues.
ThrownAway throw_away_packets(std::uint16_t id, std::uint16_t queues) noexcept;

}  // namespace weir::port
