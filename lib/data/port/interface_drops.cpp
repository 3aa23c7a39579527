#include "port/interface_drops.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <string_view>

#include "port/interface_link.hpp"

namespace weir::port {

namespace {

/// Does one ioctl about an interface.
bool ask(const std::string& interface, unsigned long request, ifreq& data) noexcept {
    interface.copy(data.ifr_name, sizeof data.ifr_name - 1);
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return false;
    const bool ok = ::ioctl(socket, request, &data) == 0;
    ::close(socket);
    return ok;
}

/// The sum of some columns of an interface in /proc/net/dev, which shows the process's own network namespace.
std::optional<std::uint64_t> columns_of(const std::string& interface, std::initializer_list<int> wanted) {
    std::ifstream file("/proc/self/net/dev");
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(':');
        const std::size_t begin = line.find_first_not_of(' ');
        if (colon == std::string::npos || line.substr(begin, colon - begin) != interface) continue;
        std::istringstream columns(line.substr(colon + 1));
        std::uint64_t sum = 0;
        std::uint64_t value = 0;
        for (int i = 0; i <= *std::max_element(wanted.begin(), wanted.end()); ++i) {
            if (!(columns >> value)) return std::nullopt;
            if (std::find(wanted.begin(), wanted.end(), i) != wanted.end()) sum += value;
        }
        return sum;
    }
    return std::nullopt;
}

/// What the kernel could not put into the queue of a TAP interface.
std::optional<std::uint64_t> transmit_drops(const std::string& interface) {
    return columns_of(interface, {11});  // 8 of receiving, then bytes, packets, errors, dropped
}

/// What an interface received and gave to nobody: bad or too long frames, and those without room in the card or in the
/// processor's backlog. A packet socket has not seen them.
std::optional<std::uint64_t> receive_drops(const std::string& interface) {
    return columns_of(interface, {2, 3});  // bytes, packets, errors, dropped
}

/// The sum of rx_queue_N_drops among the interface's own statistics, as `ethtool -S` shows them: veth has them.
std::optional<std::uint64_t> queue_drops(const std::string& interface) {
    ifreq request{};
    ethtool_drvinfo information{};
    information.cmd = ETHTOOL_GDRVINFO;
    request.ifr_data = reinterpret_cast<char*>(&information);
    if (!ask(interface, SIOCETHTOOL, request) || information.n_stats == 0) return std::nullopt;
    const std::uint32_t count = information.n_stats;
    const auto names_bytes = sizeof(ethtool_gstrings) + std::size_t{count} * ETH_GSTRING_LEN;
    const auto names_memory = std::make_unique<std::byte[]>(names_bytes);
    auto* names = new (names_memory.get()) ethtool_gstrings{ETHTOOL_GSTRINGS, ETH_SS_STATS, count};
    request = {};
    request.ifr_data = reinterpret_cast<char*>(names);
    if (!ask(interface, SIOCETHTOOL, request)) return std::nullopt;
    const auto values_memory = std::make_unique<std::byte[]>(sizeof(ethtool_stats) + count * sizeof(std::uint64_t));
    auto* values = new (values_memory.get()) ethtool_stats{ETHTOOL_GSTATS, count};
    request = {};
    request.ifr_data = reinterpret_cast<char*>(values);
    if (!ask(interface, SIOCETHTOOL, request)) return std::nullopt;
    std::optional<std::uint64_t> sum;
    for (std::uint32_t i = 0; i < std::min(names->len, values->n_stats); ++i) {
        const auto* text = reinterpret_cast<const char*>(names->data) + std::size_t{i} * ETH_GSTRING_LEN;
        const std::string_view name(text, ::strnlen(text, ETH_GSTRING_LEN));
        if (!name.starts_with("rx_queue_") || !name.ends_with("_drops") || name.find("xdp") != name.npos) continue;
        std::uint64_t value = 0;
        std::memcpy(&value, values_memory.get() + sizeof(ethtool_stats) + i * sizeof value, sizeof value);
        sum = sum.value_or(0) + value;
    }
    return sum;
}

}  // namespace

std::string argument(const std::string& args, const std::string& key) {
    const std::string all = "," + args;
    const std::size_t at = all.find("," + key + "=");
    if (at == std::string::npos) return {};
    const std::size_t begin = at + key.size() + 2;
    return all.substr(begin, all.find(',', begin) - begin);
}

bool set_interface_mtu(const std::string& interface, std::uint32_t mtu) noexcept {
    ifreq request{};
    request.ifr_mtu = static_cast<int>(mtu);
    return ask(interface, SIOCSIFMTU, request);
}

std::optional<std::uint32_t> interface_mtu(const std::string& interface) noexcept {
    ifreq request{};
    if (interface.empty() || !ask(interface, SIOCGIFMTU, request)) return std::nullopt;
    return static_cast<std::uint32_t>(request.ifr_mtu);
}

std::optional<std::array<std::uint8_t, 6>> interface_mac(const std::string& interface) noexcept {
    ifreq request{};
    if (interface.empty() || !ask(interface, SIOCGIFHWADDR, request)) return std::nullopt;
    if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER) return std::nullopt;
    std::array<std::uint8_t, 6> mac{};
    std::memcpy(mac.data(), request.ifr_hwaddr.sa_data, mac.size());
    return mac;
}

InterfaceDrops InterfaceDrops::find(const std::string& driver, const std::string& args) {
    InterfaceDrops found;
    found.interface_ = interface_of(driver, args);
    if (driver == "net_af_packet" || driver == "kernel") {
        found.kind_ = Kind::packet_sockets;
        found.sockets_ = PacketSockets::find(args);
    } else if (driver == "net_tap") {
        found.kind_ = Kind::tap;
    } else if (driver == "net_af_xdp") {
        found.kind_ = Kind::xdp;
    } else if (driver == "net_pcap" && !found.interface_.empty()) {
        found.kind_ = Kind::driver_counts;
    }
    found.before_ = found.total();
    return found;
}

InterfaceDrops::Total InterfaceDrops::total() noexcept {
    try {
        if (kind_ == Kind::packet_sockets) return {sockets_.dropped(), receive_drops(interface_)};
        if (kind_ == Kind::tap) return {transmit_drops(interface_), 0};
        if (kind_ == Kind::xdp) return {queue_drops(interface_), receive_drops(interface_)};
        if (kind_ == Kind::driver_counts) return {0, receive_drops(interface_)};
    } catch (const std::exception&) {  // no memory, no file: not known
    }
    return {};
}

InterfaceDrops::Dropped InterfaceDrops::dropped() noexcept {
    const Total now = total();
    const auto since = [](std::optional<std::uint64_t> value, std::optional<std::uint64_t> start) {
        // Counters that were not there at the start, or have gone, say nothing of the time between.
        return value.has_value() && start.has_value() ? std::optional(*value - std::min(*value, *start)) : std::nullopt;
    };
    const std::optional<std::uint64_t> queue = since(now.queue, before_.queue);
    const std::optional<std::uint64_t> interface = since(now.interface, before_.interface);
    Dropped dropped;
    dropped.by_interface = interface.value_or(0);
    if (kind_ == Kind::xdp) {
        // What its queues dropped is in the interface's sum as well, where there is one.
        dropped.by_interface -= std::min(dropped.by_interface, queue.value_or(0));
        const std::uint64_t all = queue.value_or(0) + dropped.by_interface;
        if (queue.has_value() || all > 0) dropped.all = all;
    } else if (queue.has_value() && interface.has_value()) {
        dropped.all = *queue + *interface;
    } else if (queue.value_or(0) + dropped.by_interface > 0) {
        dropped.all = queue.value_or(0) + dropped.by_interface;
    }
    return dropped;
}

}  // namespace weir::port
