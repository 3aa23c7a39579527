// Packets that the kernel dropped in front of a DPDK device: of net_af_packet, net_tap and net_af_xdp, whose drivers do
// not say so themselves.
#pragma once

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

    /// Since then. Nothing where the kernel does not count them. Asking changes it, so for one thread.
    [[nodiscard]] std::optional<std::uint64_t> dropped() noexcept;

private:
    enum class Kind : std::uint8_t { none, packet_sockets, tap, xdp };
    [[nodiscard]] std::optional<std::uint64_t> total() noexcept;

    Kind kind_ = Kind::none;
    std::string interface_;
    PacketSockets sockets_;
    std::optional<std::uint64_t> before_;
};

/// The value of "key=..." among a device's arguments, or empty.
[[nodiscard]] std::string argument(const std::string& args, const std::string& key);

/// Sets the MTU of a kernel interface; false, with errno set, if that is not allowed.
[[nodiscard]] bool set_interface_mtu(const std::string& interface, std::uint32_t mtu) noexcept;

}  // namespace weir::port
