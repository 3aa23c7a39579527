#include "bench/neighbour.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "bench/file_descriptor.hpp"
#include "bench/interface_counters.hpp"
#include "core/error.hpp"

namespace weir::bench {
namespace {

constexpr std::uint16_t discard_port = 9;  // RFC 863: nobody answers
constexpr int neighbour_looks = 50;
constexpr auto between_looks = std::chrono::milliseconds(20);

using Mac = std::array<std::uint8_t, 6>;

std::string text_of(const in_addr& address) {
    std::array<char, INET_ADDRSTRLEN> text{};
    return ::inet_ntop(AF_INET, &address, text.data(), text.size());
}

Mac mac_of(const sockaddr& address) {
    Mac mac{};
    std::memcpy(mac.data(), address.sa_data, mac.size());
    return mac;
}

/// Of an interface, which has to be an Ethernet.
Mac own_mac(int socket, const std::string& interface) {
    ifreq request{};
    interface.copy(static_cast<char*>(request.ifr_name), IFNAMSIZ - 1);
    if (::ioctl(socket, SIOCGIFHWADDR, &request) != 0 || request.ifr_hwaddr.sa_family != ARPHRD_ETHER)
        throw core::RunError(fmt::format("{} is no Ethernet: frames cannot be sent there", interface));
    return mac_of(request.ifr_hwaddr);
}

/// Any packet makes the kernel ask who has the address.
void make_known(sockaddr_in to) {
    to.sin_port = htons(discard_port);
    const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const char nothing = 0;
    (void)::sendto(socket.get(), &nothing, sizeof nothing, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

/// Source: arp(7), SIOCGARP.
std::optional<Mac> known_mac(int socket, const sockaddr_in& to, const std::string& interface) {
    arpreq request{};
    std::memcpy(&request.arp_pa, &to, sizeof to);
    interface.copy(static_cast<char*>(request.arp_dev), sizeof request.arp_dev - 1);
    if (::ioctl(socket, SIOCGARP, &request) != 0 || (request.arp_flags & ATF_COM) == 0) return std::nullopt;
    return mac_of(request.arp_ha);
}

Mac asked_mac(int socket, const sockaddr_in& to, const std::string& interface) {
    make_known(to);
    for (int look = 0; look < neighbour_looks; ++look) {
        if (const auto mac = known_mac(socket, to, interface)) return *mac;
        std::this_thread::sleep_for(between_looks);
    }
    throw core::RunError(
        fmt::format("nobody on {} answers for {}: it is down, or behind a router, where frames cannot "
                    "be sent to",
                    interface, text_of(to.sin_addr)));
}

}  // namespace

Neighbour neighbour_of(int socket) {
    sockaddr_in own{};
    sockaddr_in to{};
    socklen_t own_bytes = sizeof own;
    socklen_t to_bytes = sizeof to;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_bytes) != 0 ||
        ::getpeername(socket, reinterpret_cast<sockaddr*>(&to), &to_bytes) != 0)
        throw core::RunError(fmt::format("a connected socket: {}", std::strerror(errno)));
    Neighbour neighbour;
    neighbour.own = {text_of(own.sin_addr), ntohs(own.sin_port)};
    neighbour.interface = interface_with(neighbour.own.address);
    neighbour.own_mac = own_mac(socket, neighbour.interface);
    neighbour.mac = asked_mac(socket, to, neighbour.interface);
    return neighbour;
}

std::uint32_t address_number(const std::string& address) {
    in_addr number{};
    ::inet_pton(AF_INET, address.c_str(), &number);
    return ntohl(number.s_addr);
}

}  // namespace weir::bench
