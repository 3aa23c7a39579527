// Packets that the kernel dropped in front of a DPDK device, in the device's queue or in the interface before it: of
// kernel, net_af_packet, net_tap, net_af_xdp and net_pcap, whose drivers do not say so themselves.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "port/packet_socket.hpp"

namespace weir::port {

class InterfaceDrops {
public:
    InterfaceDrops() = default;
    /// For a device that has just been started; `args` are its arguments. Of other drivers it knows nothing.
    static InterfaceDrops find(const std::string& driver, const std::string& args);

    struct Dropped {
        std::optional<std::uint64_t> all;  ///< nothing: the kernel does not count them, or only some and saw none
        std::uint64_t by_interface = 0;    ///< of them, those that never came to the device's queue
    };
    /// Since then. Asking changes it, so for one thread.
    [[nodiscard]] Dropped dropped() noexcept;
    /// The kernel is in front of the device: if its counts are not known, the driver's do not replace them.
    [[nodiscard]] bool applies() const noexcept { return kind_ != Kind::none; }

private:
    enum class Kind : std::uint8_t { none, packet_sockets, tap, xdp, driver_counts };
    struct Total {
        std::optional<std::uint64_t> queue;
        std::optional<std::uint64_t> interface;
    };
    [[nodiscard]] Total total() noexcept;

    Kind kind_ = Kind::none;
    std::string interface_;
    PacketSockets sockets_;
    Total before_;
};

/// The value of "key=..." among a device's arguments, or empty.
[[nodiscard]] std::string argument(const std::string& args, const std::string& key);

/// Nothing if there is no such interface.
[[nodiscard]] std::optional<std::uint32_t> interface_mtu(const std::string& interface) noexcept;
/// Its address; nothing if there is no such interface, or it is none of Ethernet.
[[nodiscard]] std::optional<std::array<std::uint8_t, 6>> interface_mac(const std::string& interface) noexcept;
/// Sets the MTU of a kernel interface; false, with errno set, if that is not allowed.
[[nodiscard]] bool set_interface_mtu(const std::string& interface, std::uint32_t mtu) noexcept;

}  // namespace weir::port
