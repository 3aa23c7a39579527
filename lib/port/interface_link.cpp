#include "port/interface_link.hpp"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port/interface_drops.hpp"

namespace weir::port {

std::optional<bool> interface_running(const std::string& interface) noexcept {
    if (interface.empty()) return std::nullopt;
    ifreq request{};
    interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return std::nullopt;
    const bool known = ::ioctl(socket, SIOCGIFFLAGS, &request) == 0;
    ::close(socket);
    if (!known) return std::nullopt;
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
