// One DPDK port: configured, started, polled. Every return code is checked, because several PMDs crash when they are
// polled half configured. Answers ARP and ping for its address.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "port/arp_responder.hpp"
#include "port/buffers.hpp"
#include "port/packet_socket.hpp"

namespace weir::port {

struct LivePortConfig {
    std::string name;                 ///< of the port, for people
    std::uint16_t index = 0;          ///< in the configuration; stamped into packets
    std::string device;               ///< as DPDK names it: PCI address, or the vdev's name before the first comma
    std::optional<std::string> args;  ///< a vdev that is to be created, with these; otherwise it is there already
    std::uint16_t queues = 1;
    std::uint16_t mtu = 9000;
    std::uint16_t rx_descriptors = 1024;
    std::optional<std::uint32_t> address;  ///< IPv4, host byte order: answer ARP and ping for it
};

class LivePort {
public:
    /// Throws core::RunError naming the step that failed and the driver's answer.
    LivePort(const LivePortConfig& config, BufferPool& pool);
    ~LivePort();
    LivePort(const LivePort&) = delete;
    LivePort& operator=(const LivePort&) = delete;

    /// Up to `packets.size()` frames; `now` becomes their arrival time.
    std::uint32_t receive(std::uint16_t queue, std::span<Packet> packets, core::TimeNs now) noexcept;
    /// Sends the answer that an ARP request or a ping is due; the frame stays the caller's. For the lcore of queue 0.
    void answer(std::span<const std::byte> frame) noexcept;

    struct DeviceCounters {
        std::uint64_t received = 0;
        std::uint64_t missed = 0;     ///< dropped by the device, or by the kernel in front of it: the queue was full
        std::uint64_t no_buffer = 0;  ///< dropped by the driver: the pool was empty
    };
    /// For one thread.
    [[nodiscard]] DeviceCounters counters() const noexcept;
    [[nodiscard]] std::uint16_t id() const noexcept { return id_; }
    /// What the driver would not do, in words; empty if nothing.
    [[nodiscard]] const std::string& remarks() const noexcept { return remarks_; }

private:
    LivePortConfig config_;
    BufferPool& pool_;
    PortAddress own_;
    mutable PacketSockets kernel_;  ///< of net_af_packet; asking them changes them
    std::uint16_t id_ = 0;
    std::string remarks_;
};

}  // namespace weir::port
