// What weir has to know about DPDK's drivers that they do not say themselves: who tells of losses, how long a frame may
// be, and which arguments a jumbo frame needs. Measured with DPDK 22.11; docs/guides/DEVICES.md has the table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::config {

/// What can be known about packets lost between the sender and weir.
enum class LossTold : std::uint8_t {
    counted,   ///< the driver, or the kernel in front of it, counts them
    lossless,  ///< there are none: a slow receiver holds the sender up, whose own account tells what did not go out
    unknown,   ///< nobody counts them; only sequence numbers tell
};

struct DeviceFacts {
    std::string_view driver;  ///< "net_memif"; "pci" for PCI addresses; "" for all others
    LossTold loss = LossTold::unknown;
    bool forgets = false;       ///< its count of received packets is gone once the peer has left, or it has none
    std::uint32_t mtu_max = 0;  ///< larger frames are refused or dropped; 0: no such limit
    /// It takes packets before the run can, and leaves some out while that goes on: net_af_packet's sockets hear every
    /// interface before they are bound, and nothing for a moment when they are; the rings of both fill meanwhile.
    bool early = false;
    bool paired = false;            ///< as many transmit queues as receive queues, or it cannot be configured
    std::string_view queues_key{};  ///< the argument that says how many queues there are; empty: it needs none
};

/// A CPU address such as 0000:3b:00.0 rather than a virtual device's name.
[[nodiscard]] bool is_pci_address(const std::string& device) noexcept;
/// "net_af_packet0,iface=det0" -> "net_af_packet"; "pci" for a PCI address.
[[nodiscard]] std::string driver_of(std::string_view device);
/// The simulated detector, "sim,...", which weir makes in its own process (simulate/simulator_feeder.hpp).
[[nodiscard]] bool is_simulator(std::string_view device) noexcept;
[[nodiscard]] const DeviceFacts& device_facts(std::string_view device);

/// `device` with the arguments that frames of this MTU need and that it does not set: `bsize` of net_memif (with a
/// smaller one frames are corrupted silently), `framesz` and `blocksz` of net_af_packet (longer frames are cut
/// silently).
[[nodiscard]] std::string with_frame_room(const std::string& device, std::uint32_t mtu);

/// Memory that "kernel" shares with the kernel, in MiB: its argument `ring`. 0 for other devices.
[[nodiscard]] std::uint32_t kernel_ring_mib(std::string_view device);
/// Which argument of a device that is weir's own ("kernel,iface=det0,ring=64") is wrong, in words; empty if none.
[[nodiscard]] std::string argument_problem(const std::string& device);

/// The least room that a driver asks of a buffer, beyond what the MTU needs: net_af_packet wants a whole frame of its
/// ring to fit. 0: nothing.
[[nodiscard]] std::uint32_t buffer_room_bytes(const std::string& device, std::uint32_t mtu);
/// `device` with the argument that a driver needs to have so many queues (`qpairs` of net_af_packet, ...), unless it is
/// set or they are one.
[[nodiscard]] std::string with_queues(const std::string& device, std::uint16_t queues);

/// Why frames of this MTU do not go through `device` as its arguments stand, in words ("bsize=2048 is ..."); empty if
/// they do.
[[nodiscard]] std::string frame_room_problem(const std::string& device, std::uint32_t mtu);

}  // namespace weir::config
