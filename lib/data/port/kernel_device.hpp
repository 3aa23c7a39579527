// An interface of the kernel as a device of DPDK: "kernel,iface=det0". Packets are copied out of a BlockRing, which
// costs less than net_af_packet's ring: there is one look at memory for a block of packets instead of one for each, and
// the kernel says when each of them came.
//
// DPDK takes drivers from its own source tree only. So the device is a net_null, which receives nothing and takes all
// that is sent, and what it lacks is done by the callbacks that DPDK calls with each burst. To all others it is a port
// with a number, like any.
//
// Packets are copied, although mbufs could refer to the ring: blocks are filled in turn, and the kernel stops at one
// that is not free, however many are free after it. An event that waits for a lost packet would so cost many more.
#pragma once

#include <rte_ethdev.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "port/block_ring.hpp"
#include "port/buffers.hpp"
#include "port/device_clock.hpp"
#include "port/offloads.hpp"

namespace weir::port {

/// The packet of `header`, with the VLAN tag that the kernel took out of it put back, into an empty mbuf. What does not
/// fit into it is cut: pkt_len says how long it was.
void copy_frame(const tpacket3_hdr& header, rte_mbuf& mbuf) noexcept;

class KernelDevice {
public:
    /// Makes the device; `args` are "iface=det0" and perhaps "ring=64" (MiB). Throws core::RunError.
    KernelDevice(const std::string& args, BufferPool& pool);
    ~KernelDevice();
    KernelDevice(const KernelDevice&) = delete;
    KernelDevice& operator=(const KernelDevice&) = delete;

    [[nodiscard]] std::uint16_t id() const noexcept { return id_; }
    /// What it can do, instead of what net_null says.
    [[nodiscard]] DeviceAbilities abilities(bool stamps) const;
    /// For the started port with so many transmit queues: packets are received and sent from now on. False: other
    /// hosts' frames are not, although `promiscuous`. Throws core::RunError.
    [[nodiscard]] bool open(std::uint16_t transmit_queues, bool promiscuous);
    /// The clock of the stamps. Null, with the reason, if there is none.
    [[nodiscard]] std::unique_ptr<DeviceClock> clock(std::string& why_not) const;
    /// How long its ring may be left alone: to be woken for a few packets at a time costs more than to copy them.
    [[nodiscard]] core::TimeNs nap_ns() const noexcept { return nap_ns_; }
    /// How long a packet that was stamped may be on its way to the queue.
    [[nodiscard]] static core::TimeNs stamp_lag_ns() noexcept;

private:
    [[nodiscard]] std::uint16_t receive(rte_mbuf** mbufs, std::uint16_t wanted) noexcept;
    [[nodiscard]] std::uint16_t send(rte_mbuf** mbufs, std::uint16_t count) noexcept;
    static std::uint16_t on_receive(std::uint16_t port, std::uint16_t queue, rte_mbuf* mbufs[], std::uint16_t count,
                                    std::uint16_t room, void* self);
    static std::uint16_t on_send(std::uint16_t port, std::uint16_t queue, rte_mbuf* mbufs[], std::uint16_t count,
                                 void* self);

    std::string interface_;
    BlockRing ring_;
    rte_mempool* pool_;
    core::TimeNs nap_ns_;
    std::string name_;  ///< of the net_null
    std::uint16_t id_ = 0;
    int stamp_field_ = -1;
    std::uint64_t stamp_flag_ = 0;
};

}  // namespace weir::port
