// Addresses as they are written on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/rewrite.hpp"

namespace weir::resend {

/// Where a capture is sent.
struct Destination {
    std::string device;      ///< a DPDK device with its arguments; empty: a socket
    std::string host;        ///< of a socket
    std::uint16_t port = 0;  ///< of a socket; 0: as captured

    [[nodiscard]] bool is_socket() const noexcept { return device.empty(); }
};

/// Whether a value of --to is one, and not a moment.
[[nodiscard]] bool is_destination(const std::string& text) noexcept;

/// "device:VDEV[,ARGS]", "device:PCI", "udp:HOST[:PORT]", "udp:[IPV6][:PORT]". Throws core::UsageError.
[[nodiscard]] Destination parse_destination(const std::string& text);

/// Each text is a list of KEY=VALUE with commas between: dst-mac, src-mac, dst-ip, src-ip (of IPv4, IPv6, or one of
/// each) and dst-port (PORT for all, FROM:TO for one; any number of them). Throws core::UsageError.
[[nodiscard]] wire::Rewrite parse_rewrite(const std::vector<std::string>& texts);

}  // namespace weir::resend
