// What the kernel dropped in front of net_af_packet, or of kernel. The driver of the one does not say: its ring
// overflows and imissed stays 0. The kernel counts per socket, and the sockets of this process can be found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::port {

class PacketSockets {
public:
    /// The packet sockets of this process on the interface that `args` name ("iface=det0,..."); none if there is none.
    static PacketSockets find(const std::string& args);
    /// Packets that found no room in their rings since find(); nothing if there are no sockets, or they do not say. For
    /// one thread.
    [[nodiscard]] std::optional<std::uint64_t> dropped() noexcept;

private:
    std::vector<int> sockets_;  ///< the driver's
    std::uint64_t dropped_ = 0;
};

}  // namespace weir::port
