#include "port/interface_drops.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

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

/// What the kernel could not put into the queue of a TAP interface: "dropped" of its transmit side in /proc/net/dev.
std::optional<std::uint64_t> transmit_drops(const std::string& interface) {
    std::ifstream file("/proc/self/net/dev");
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(':');
        const std::size_t begin = line.find_first_not_of(' ');
        if (colon == std::string::npos || line.substr(begin, colon - begin) != interface) continue;
        std::istringstream columns(line.substr(colon + 1));
        constexpr int dropped_column = 11;  // 8 of receiving, then bytes, packets, errors, dropped
        std::uint64_t value = 0;
        for (int i = 0; i <= dropped_column; ++i)
            if (!(columns >> value)) return std::nullopt;
        return value;
    }
    return std::nullopt;
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

InterfaceDrops InterfaceDrops::find(const std::string& driver, const std::string& args) {
    InterfaceDrops found;
    found.interface_ = argument(args, "iface");
    if (driver == "net_af_packet") {
        found.kind_ = Kind::packet_sockets;
        found.sockets_ = PacketSockets::find(args);
        return found;
    }
    if (driver == "net_tap") {
        found.kind_ = Kind::tap;
        if (found.interface_.empty()) found.interface_ = "dtap0";  // the driver's own choice for the first one
    }
    if (driver == "net_af_xdp") found.kind_ = Kind::xdp;
    found.before_ = found.total();
    return found;
}

std::optional<std::uint64_t> InterfaceDrops::total() noexcept {
    try {
        if (kind_ == Kind::packet_sockets) return sockets_.dropped();
        if (kind_ == Kind::tap) return transmit_drops(interface_);
        if (kind_ == Kind::xdp) return queue_drops(interface_);
    } catch (const std::exception&) {  // no memory, no file: not known
    }
    return std::nullopt;
}

std::optional<std::uint64_t> InterfaceDrops::dropped() noexcept {
    const std::optional<std::uint64_t> now = total();
    if (!now.has_value()) return std::nullopt;
    return *now - std::min(*now, before_.value_or(0));
}

}  // namespace weir::port
