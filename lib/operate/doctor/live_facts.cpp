#include "doctor/live_facts.hpp"

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "port/interface_drops.hpp"
#include "port/interface_link.hpp"

namespace weir::doctor {

namespace {

class Ethtool {
public:
    Ethtool() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
    ~Ethtool() {
        if (socket_ >= 0) ::close(socket_);
    }
    Ethtool(const Ethtool&) = delete;
    Ethtool& operator=(const Ethtool&) = delete;

    /// `request` begins with the number of the command. 0, or why not.
    [[nodiscard]] int ask(const std::string& interface, void* request) const {
        ifreq call{};
        interface.copy(call.ifr_name, IFNAMSIZ - 1);
        call.ifr_data = static_cast<char*>(request);
        return ::ioctl(socket_, SIOCETHTOOL, &call) == 0 ? 0 : errno;
    }

private:
    int socket_;
};

std::string ethtool_refusal(int error) {
    return fmt::format("ethtool: {}", std::strerror(error));
}

void ask_interface(const Ethtool& ethtool, InterfaceFacts& facts) {
    ethtool_ringparam ring{};
    ring.cmd = ETHTOOL_GRINGPARAM;
    if (const int error = ethtool.ask(facts.name, &ring); error == 0)
        facts.ring = std::pair{ring.rx_pending, ring.rx_max_pending};
    else
        facts.ring = Known<std::pair<std::uint32_t, std::uint32_t>>::no(ethtool_refusal(error));

    ethtool_value gro{};
    gro.cmd = ETHTOOL_GGRO;
    ethtool_value flags{};
    flags.cmd = ETHTOOL_GFLAGS;
    const int error = ethtool.ask(facts.name, &gro);
    if (error == 0) {
        std::vector<std::string> on;
        if (gro.data != 0) on.emplace_back("gro");
        if (ethtool.ask(facts.name, &flags) == 0 && (flags.data & ETH_FLAG_LRO) != 0) on.emplace_back("lro");
        facts.merging = on;
    } else {
        facts.merging = Known<std::vector<std::string>>::no(ethtool_refusal(error));
    }

    ethtool_drvinfo driver{};
    driver.cmd = ETHTOOL_GDRVINFO;
    if (ethtool.ask(facts.name, &driver) == 0) facts.firmware = std::string(driver.fw_version);
}

/// sysfs may be that of another network namespace.
void ask_state(InterfaceFacts& facts) {
    const std::optional<std::uint32_t> mtu = port::interface_mtu(facts.name);
    facts.exists = mtu.has_value();
    if (!facts.exists) return;
    facts.mtu = *mtu;
    facts.carrier = port::interface_running(facts.name).value_or(false);
}

}  // namespace

void ask_kernel(HostFacts& host) {
    const Ethtool ethtool;
    for (InterfaceFacts& facts : host.interfaces) {
        ask_state(facts);
        if (facts.exists) ask_interface(ethtool, facts);
    }
    timex time{};
    const int state = ::adjtimex(&time);
    if (state < 0)
        host.clock_sync = Known<ClockSync>::no(fmt::format("adjtimex: {}", std::strerror(errno)));
    else
        host.clock_sync = ClockSync{state != TIME_ERROR && (time.status & STA_UNSYNC) == 0, time.esterror};
}

void not_recorded(HostFacts& host) {
    const std::string why = fmt::format("only a live system says it, and {} is a recorded one", host.root.string());
    host.clock_sync = Known<ClockSync>::no(why);
    host.devices = Known<std::vector<DeviceFacts>>::no(why);
    for (InterfaceFacts& facts : host.interfaces) {
        facts.ring = Known<std::pair<std::uint32_t, std::uint32_t>>::no(why);
        facts.merging = Known<std::vector<std::string>>::no(why);
        facts.firmware = Known<std::string>::no(why);
    }
}

}  // namespace weir::doctor
