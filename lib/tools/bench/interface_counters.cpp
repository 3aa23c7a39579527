#include "bench/interface_counters.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "bench/file_descriptor.hpp"

namespace weir::bench {

std::optional<InterfaceCounters> interface_counters(const std::string& interface) {
    std::ifstream file("/proc/thread-self/net/dev");
    std::string line;
    while (std::getline(file, line)) {
        const std::size_t colon = line.find(':');
        const std::size_t begin = line.find_first_not_of(' ');
        if (colon == std::string::npos || line.substr(begin, colon - begin) != interface) continue;
        std::istringstream numbers(line.substr(colon + 1));
        std::array<std::uint64_t, 12> values{};
        for (std::uint64_t& value : values) numbers >> value;
        if (!numbers) return std::nullopt;
        return InterfaceCounters{
            .received = values[1], .receive_dropped = values[3], .sent = values[9], .send_dropped = values[11]};
    }
    return std::nullopt;
}

std::string interface_with(const std::string& address) {
    in_addr wanted{};
    ifaddrs* list = nullptr;
    if (::inet_pton(AF_INET, address.c_str(), &wanted) != 1 || ::getifaddrs(&list) != 0) return {};
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
    for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
        if (reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr == wanted.s_addr) return at->ifa_name;
    }
    return {};
}

std::string own_address_to(const std::string& text) {
    const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(9);  // nothing is sent
    socklen_t bytes = sizeof address;
    if (::inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1 ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
        return {};
    std::array<char, INET_ADDRSTRLEN> own{};
    ::inet_ntop(AF_INET, &address.sin_addr, own.data(), own.size());
    return own.data();
}

std::string interface_to(const std::string& address) {
    return interface_with(own_address_to(address));
}

std::string interface_text(const std::string& interface) {
    const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    interface.copy(static_cast<char*>(request.ifr_name), IFNAMSIZ - 1);
    ethtool_drvinfo driver{};
    driver.cmd = ETHTOOL_GDRVINFO;
    request.ifr_data = reinterpret_cast<char*>(&driver);
    const bool has_driver = ::ioctl(socket.get(), SIOCETHTOOL, &request) == 0;
    ethtool_cmd link{};
    link.cmd = ETHTOOL_GSET;
    request.ifr_data = reinterpret_cast<char*>(&link);
    const bool has_link = ::ioctl(socket.get(), SIOCETHTOOL, &request) == 0;
    std::string text = interface;
    if (has_driver) text += fmt::format(", {}", static_cast<const char*>(driver.driver));
    if (const std::uint32_t mbps = ::ethtool_cmd_speed(&link); has_link && mbps != 0 && mbps != UINT32_MAX)
        text += fmt::format(", {} Mb/s", mbps);
    if (::ioctl(socket.get(), SIOCGIFMTU, &request) == 0) text += fmt::format(", MTU {}", request.ifr_mtu);
    return text;
}

}  // namespace weir::bench
