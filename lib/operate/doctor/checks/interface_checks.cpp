// Ports on interfaces of the kernel, and arguments of virtual devices.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "config/device_facts.hpp"
#include "doctor/check.hpp"
#include "port/interface_link.hpp"

namespace weir::doctor {

namespace {

struct OnInterface {
    std::uint32_t index = 0;
    const config::PortConfig* port = nullptr;
    const InterfaceFacts* facts = nullptr;
};

/// Ports that sit on an interface of the kernel that others make.
std::vector<OnInterface> ports_on_interfaces(const CheckInput& subject) {
    std::vector<OnInterface> found;
    if (subject.run == nullptr) return found;
    const auto& ports = subject.run->config->ports;
    for (std::uint32_t index = 0; index < ports.size(); ++index) {
        const std::string device = ports[index].devargs();
        const std::size_t comma = device.find(',');
        const std::string name =
            port::interface_of(config::driver_of(device), comma == std::string::npos ? "" : device.substr(comma + 1));
        const auto facts = std::ranges::find(subject.host.interfaces, name, &InterfaceFacts::name);
        if (!name.empty() && facts != subject.host.interfaces.end()) found.push_back({index, &ports[index], &*facts});
    }
    return found;
}

/// The longest packet that a stream of this port is known to send, Ethernet header included; 0: not known.
std::uint32_t longest_frame(const CheckInput& subject, std::uint32_t port) {
    constexpr std::uint32_t udp_ipv4_ethernet = 8 + 20 + 14;
    std::uint32_t longest = 0;
    const PlannedRun& run = *subject.run;
    for (std::size_t s = 0; s < run.config->streams.size() && s < run.header_bytes.size(); ++s) {
        const config::StreamConfig& stream = run.config->streams[s];
        if (stream.port != port || stream.transport != config::Transport::udp ||
            stream.first_source >= run.geometry.size())
            continue;
        const std::uint32_t payload = run.geometry[stream.first_source].packet_payload_bytes;
        if (payload > 0) longest = std::max(longest, payload + run.header_bytes[s] + udp_ipv4_ethernet);
    }
    return longest;
}

std::string about_port(const config::PortConfig& port, const std::string& interface) {
    return fmt::format("port {}, {}", port.name, interface);
}

Finding judge_mtu(const CheckInput& subject, const OnInterface& on, Finding finding) {
    const std::uint32_t mtu = *on.facts->mtu;
    constexpr std::uint32_t ethernet_header = 14;
    const std::uint32_t longest = longest_frame(subject, on.index);
    const std::string& name = on.facts->name;
    std::uint32_t wanted = 0;
    if (mtu < on.port->mtu) {
        wanted = on.port->mtu;
        finding.status = Status::error;
        finding.why = "the kernel drops longer frames before weir sees them, so the run does not start";
    } else if (longest > mtu + ethernet_header) {
        wanted = longest - ethernet_header;
        finding.status = Status::warning;
        finding.sure = Sure::likely;
        finding.why = fmt::format(
            "the streams' packets of {} bytes arrive only if the sender cuts them into IP fragments", longest);
    }
    if (wanted == 0) return finding;
    finding.wanted = fmt::format("an MTU of {}", wanted);
    const std::vector<Step> steps{execute({"ip", "link", "set", name, "mtu", std::to_string(wanted)})};
    finding.mend = shell_text(steps);
    if (on.facts->default_route) return finding;
    return with_fix(std::move(finding), steps, "the next boot");
}

Finding interface_of_port(const CheckInput& subject, const OnInterface& on) {
    Finding finding{.about = about_port(*on.port, on.facts->name),
                    .found = "up",
                    .wanted = fmt::format("up, with an MTU of {} or more", on.port->mtu),
                    .why = "what it does not take never comes to weir"};
    if (!on.facts->exists) {
        finding.status = Status::error;
        finding.found = "no such interface";
        finding.why = "the run does not start";
        finding.mend = "iface=... in the port's device: one of those that ip link shows";
        return finding;
    }
    if (!on.facts->mtu || !on.facts->carrier) {
        finding.status = Status::unknown;
        finding.found = "an interface that does not say its state";
        finding.why = on.facts->mtu ? on.facts->carrier.why : on.facts->mtu.why;
        return finding;
    }
    finding.found = fmt::format("{}, MTU {}", *on.facts->carrier ? "up" : "no carrier", *on.facts->mtu);
    if (!*on.facts->carrier) {
        finding.status = Status::warning;
        finding.why = "nothing can come while there is no link";
        finding = with_fix(std::move(finding), {execute({"ip", "link", "set", on.facts->name, "up"})}, "the next boot");
        finding.mend += " (or look at the cable, and at the other end)";
    }
    return judge_mtu(subject, on, std::move(finding));
}

std::vector<Finding> check_interface(const CheckInput& subject) {
    std::vector<Finding> findings;
    for (const OnInterface& on : ports_on_interfaces(subject)) findings.push_back(interface_of_port(subject, on));
    return findings;
}

/// A port's device has arguments that bound the length of a frame; net_af_packet and net_memif cut or corrupt silently.
/// The configuration is checked against the port's own mtu when it is read; this is about what the streams send.
std::vector<Finding> check_frame_room(const CheckInput& subject) {
    if (subject.run == nullptr) return {};
    std::vector<Finding> findings;
    for (std::uint32_t index = 0; index < subject.run->config->ports.size(); ++index) {
        const config::PortConfig& port = subject.run->config->ports[index];
        const std::uint32_t longest = longest_frame(subject, index);
        const std::string driver = config::driver_of(port.device);
        if (longest == 0 || (driver != "net_af_packet" && driver != "net_memif")) continue;
        constexpr std::uint32_t ethernet_header = 14;
        const std::string device = config::with_frame_room(port.devargs(), port.mtu);
        const std::string problem = config::frame_room_problem(device, longest - ethernet_header);
        Finding finding{.about = "port " + port.name,
                        .found = device,
                        .wanted = fmt::format("room for frames of {} bytes", longest),
                        .why = "the driver cuts or corrupts longer frames without a word"};
        // Where the interface lets no such frame through, they come in IP fragments, which fit.
        const auto on = ports_on_interfaces(subject);
        const auto here = std::ranges::find(on, index, &OnInterface::index);
        const bool fragments = here != on.end() && here->facts->mtu && *here->facts->mtu + ethernet_header < longest;
        if (!problem.empty() && !fragments) {
            finding.status = Status::error;
            finding.why = fmt::format("{}; every packet of the stream would be damaged", problem);
            finding.mend = fmt::format("mtu = {} in [[port]], and without framesz, blocksz or bsize in its device",
                                       std::max<std::uint32_t>(9000, longest - ethernet_header));
        }
        findings.push_back(std::move(finding));
    }
    return findings;
}

std::vector<Finding> check_offloads(const CheckInput& subject) {
    std::vector<Finding> findings;
    for (const OnInterface& on : ports_on_interfaces(subject)) {
        if (!on.facts->exists) continue;
        Finding finding{.about = about_port(*on.port, on.facts->name),
                        .wanted = "gro and lro off",
                        .why = "packets that the kernel merges are no packets of the detector any more"};
        if (!on.facts->merging) {
            finding.status = Status::unknown;
            finding.why = on.facts->merging.why;
        } else if (on.facts->merging->empty()) {
            finding.found = "gro and lro off";
        } else {
            finding.status = Status::warning;
            finding.sure = Sure::possible;
            finding.found = fmt::format("{} on", fmt::join(*on.facts->merging, " and "));
            finding.why =
                "what the kernel merges, or another interface of this machine sends unsegmented, arrives as frames of up to "
                "64 KiB, which are cut or dropped, and datagrams below the MTU as one that no decoder reads; on a veth or tap switch tso, gso and tx off at the sending end, too";
            std::vector<std::string> command{"ethtool", "-K", on.facts->name};
            for (const std::string& word : *on.facts->merging) command.insert(command.end(), {word, "off"});
            finding = with_fix(std::move(finding), {execute(std::move(command))}, "the next boot");
        }
        findings.push_back(std::move(finding));
    }
    return findings;
}

std::vector<Finding> check_kernel_backlog(const CheckInput& subject) {
    constexpr std::uint64_t backlog_wanted = 10000;
    if (ports_on_interfaces(subject).empty()) return {};
    const HostFacts& host = subject.host;
    Finding finding{
        .wanted = fmt::format("net.core.netdev_max_backlog of {} or more", backlog_wanted),
        .why = "packets of virtual interfaces wait there for the kernel, and what finds no room is dropped"};
    if (!host.backlog_max) {
        finding.status = Status::unknown;
        finding.why = host.backlog_max.why;
        return {finding};
    }
    finding.found = fmt::format("{}", *host.backlog_max);
    if (host.backlog_dropped && *host.backlog_dropped > 0)
        finding.found += fmt::format("; {} packets dropped since boot", *host.backlog_dropped);
    if (*host.backlog_max >= backlog_wanted) return {finding};
    finding.status = Status::warning;
    finding.sure = host.backlog_dropped && *host.backlog_dropped > 0 ? Sure::likely : Sure::possible;
    return {with_fix(std::move(finding),
                     {write_to("/proc/sys/net/core/netdev_max_backlog", std::to_string(backlog_wanted))},
                     "the next boot")};
}

/// weir has no kernel socket on the way of the data; programs that people compare it with do.
std::vector<Finding> check_socket_buffer(const CheckInput& subject) {
    constexpr std::uint64_t wanted = std::uint64_t{32} << 20U;
    if (subject.run != nullptr) return {};
    const auto& most = subject.host.receive_buffer_max;
    Finding finding{.wanted = fmt::format("net.core.rmem_max of {} or more", wanted),
                    .why = "receivers on kernel sockets, as weir bench's udp-socket, lose packets at every pause"};
    if (!most) {
        finding.status = Status::unknown;
        finding.why = most.why;
        return {finding};
    }
    finding.found = fmt::format("{}", *most);
    if (*most >= wanted) return {finding};
    finding.status = Status::warning;
    finding.sure = Sure::likely;
    return {with_fix(std::move(finding), {write_to("/proc/sys/net/core/rmem_max", std::to_string(wanted))},
                     "the next boot")};
}

}  // namespace

std::vector<Check> interface_checks() {
    return {
        {"interface", "interface",
         "kernel interfaces that ports sit on: there, up, and with the MTU that port and streams need", false,
         check_interface},
        {"frame_room", "interface",
         "arguments of af_packet and memif that cut frames, against the packets of the streams", true,
         check_frame_room},
        {"offloads", "interface", "whether the kernel merges packets before weir sees them (gro, lro)", false,
         check_offloads},
        {"kernel_backlog", "interface", "the kernel's backlog in front of virtual interfaces, and what it dropped",
         false, check_kernel_backlog},
        {"socket_buffer", "interface",
         "the largest buffer of a kernel socket (without a configuration: for weir bench and others)", false,
         check_socket_buffer},
    };
}

}  // namespace weir::doctor
