#include "port/packet_socket.hpp"

#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>

namespace weir::port {

namespace {

bool is_packet_socket_of(int file, unsigned interface) noexcept {
    int domain = 0;
    socklen_t bytes = sizeof domain;
    if (::getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) != 0 || domain != AF_PACKET) return false;
    sockaddr_ll address{};
    bytes = sizeof address;
    return ::getsockname(file, reinterpret_cast<sockaddr*>(&address), &bytes) == 0 &&
           static_cast<unsigned>(address.sll_ifindex) == interface;
}

}  // namespace

PacketSockets PacketSockets::find(const std::string& args) {
    PacketSockets found;
    const std::size_t at = ("," + args).find(",iface=");
    if (at == std::string::npos) return found;
    const std::string name = args.substr(at + 6, args.find(',', at) - at - 6);
    const unsigned interface = ::if_nametoindex(name.c_str());
    if (interface == 0) return found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
        const std::string number = entry.path().filename().string();
        int file = -1;
        std::from_chars(number.data(), number.data() + number.size(), file);
        if (is_packet_socket_of(file, interface)) found.sockets_.push_back(file);
    }
    static_cast<void>(found.dropped());  // what was before
    found.dropped_ = 0;
    return found;
}

std::optional<std::uint64_t> PacketSockets::dropped() noexcept {
    bool told = !sockets_.empty();
    for (const int socket : sockets_) {
        tpacket_stats statistics{};
        socklen_t bytes = sizeof statistics;
        // Reading sets the kernel's counters back to zero.
        if (::getsockopt(socket, SOL_PACKET, PACKET_STATISTICS, &statistics, &bytes) == 0)
            dropped_ += statistics.tp_drops;
        else
            told = false;
    }
    return told || dropped_ > 0 ? std::optional(dropped_) : std::nullopt;
}

}  // namespace weir::port
