// One DPDK port: configured, started, polled. Every return code is checked, because several PMDs crash when they are
// polled half configured. Answers ARP and ping for its address.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "port/arp_responder.hpp"
#include "port/buffers.hpp"
#include "port/device_facts.hpp"
#include "port/interface_drops.hpp"

namespace weir::port {

struct LivePortConfig {
    std::string name;                 ///< of the port, for people
    std::uint8_t index = 0;           ///< in the configuration; stamped into packets
    std::string device;               ///< as DPDK names it: PCI address, or the vdev's name before the first comma
    std::optional<std::string> args;  ///< a vdev that is to be created, with these; otherwise it is there already
    std::uint16_t queues = 1;
    std::uint16_t mtu = 9000;
    std::uint16_t rx_descriptors = 1024;
    std::optional<std::uint32_t> address;                        ///< IPv4, host byte order: answer ARP and ping for it
    std::optional<std::array<std::uint8_t, 16>> ipv6_address{};  ///< likewise neighbour solicitations and ping
};

class LivePort {
public:
    /// `pools`: of each queue, which must outlive the port. Throws core::RunError naming the step that failed and the
    /// driver's answer.
    LivePort(const LivePortConfig& config, std::vector<BufferPool*> pools);
    ~LivePort();
    LivePort(const LivePort&) = delete;
    LivePort& operator=(const LivePort&) = delete;

    /// Up to `packets.size()` frames; `now` becomes their arrival time.
    std::uint32_t receive(std::uint16_t queue, std::span<Packet> packets, core::TimeNs now) noexcept;
    /// Sends the answer that an ARP request or a ping is due; the frame stays the caller's. For the lcore of queue 0.
    void answer(std::span<const std::byte> frame) noexcept;

    struct DeviceCounters {
        std::uint64_t received = 0;
        /// Dropped by the device, or by the kernel in front of it: the queue was full. Nothing: nobody counts them.
        std::optional<std::uint64_t> missed;
        /// Dropped by the driver: the pool was empty. Nothing: it does not count packets.
        std::optional<std::uint64_t> no_buffer;
    };
    /// For one thread.
    [[nodiscard]] DeviceCounters counters() const noexcept;
    [[nodiscard]] std::uint16_t id() const noexcept { return id_; }
    /// What the driver would not do, in words; empty if nothing.
    [[nodiscard]] const std::string& remarks() const noexcept { return remarks_; }

private:
    LivePortConfig config_;
    std::vector<BufferPool*> pools_;  ///< per queue
    PortAddress own_;
    DeviceFacts facts_;
    mutable InterfaceDrops kernel_;  ///< asking changes it
    /// Packets taken from each queue, for drivers that forget; written by the lcore of the queue.
    struct alignas(core::cache_line_bytes) Taken {
        std::atomic<std::uint64_t> packets{0};
    };
    std::unique_ptr<Taken[]> taken_;
    std::uint16_t id_ = 0;
    std::string remarks_;
};

}  // namespace weir::port
