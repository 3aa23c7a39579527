#include "port/interface_link.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>

#include "port/interface_drops.hpp"

namespace weir::port {

namespace {

/// Does one ioctl about an interface.
bool ask_link(const std::string& interface, unsigned long what, ifreq& request) noexcept {
    if (interface.empty()) return false;
    interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return false;
    const bool known = ::ioctl(socket, what, &request) == 0;
    ::close(socket);
    return known;
}

}  // namespace

bool interface_is_made_up(const std::string& interface) noexcept {
    ifreq request{};
    ethtool_drvinfo information{};
    information.cmd = ETHTOOL_GDRVINFO;
    request.ifr_data = reinterpret_cast<char*>(&information);
    if (!ask_link(interface, SIOCETHTOOL, request)) return false;
    const std::string_view driver(information.driver);
    return driver == "veth" || driver == "tun";
}

std::optional<bool> interface_running(const std::string& interface) noexcept {
    ifreq request{};
    if (!ask_link(interface, SIOCGIFFLAGS, request)) return std::nullopt;
    return (request.ifr_flags & IFF_UP) != 0 && (request.ifr_flags & IFF_RUNNING) != 0;
}

std::string interface_of(const std::string& driver, const std::string& args) {
    if (driver == "net_tap") {
        const std::string name = argument(args, "iface");
        return name.empty() ? "dtap0" : name;  // the driver's own choice for the first one
    }
    if (driver == "kernel" || driver == "net_af_packet" || driver == "net_af_xdp") return argument(args, "iface");
    if (driver == "net_pcap") {
        for (const char* key : {"iface", "rx_iface", "rx_iface_in"})
            if (std::string name = argument(args, key); !name.empty()) return name;
    }
    return {};
}

}  // namespace weir::port
