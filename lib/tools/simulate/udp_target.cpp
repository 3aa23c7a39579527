// The simulator's frames through a kernel socket.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/errqueue.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "simulate/arp_table.hpp"
#include "simulate/frame_target.hpp"

namespace weir::simulate {

namespace {

constexpr int send_buffer_bytes = 8 << 20;

std::uint32_t resolve(const std::string& host) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    if (const int reason = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); reason != 0) {
        throw core::RunError(fmt::format("udp:{}: no IPv4 address: {}", host, ::gai_strerror(reason)));
    }
    sockaddr_in address{};
    std::memcpy(&address, found->ai_addr, sizeof address);
    ::freeaddrinfo(found);
    return ntohl(address.sin_addr.s_addr);
}

sockaddr_in address_of(std::uint32_t ip, std::uint16_t port) noexcept {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(ip);
    address.sin_port = htons(port);
    return address;
}

/// The address that the kernel would send from.
sockaddr_in local_address(int socket) noexcept {
    sockaddr_in address{};
    socklen_t bytes = sizeof address;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes);
    return address;
}

bool connect_to(int socket, const sockaddr_in& address) noexcept {
    return ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// Errors that the socket reports of earlier datagrams: the present one is still to be sent.
bool is_passing(int reason) noexcept {
    switch (reason) {
        case EINTR:
        case ENOBUFS:
        case EAGAIN:
        case ECONNREFUSED:
        case EHOSTUNREACH:
        case ENETUNREACH:
        case EHOSTDOWN:
        case ENOPROTOOPT:
        case EPROTO:
        case EACCES:
            return true;
        default:
            return false;
    }
}

}  // namespace

struct UdpTarget::Batch {
    std::vector<std::byte> memory;
    std::vector<sockaddr_in> destinations;  // per source
    std::array<iovec, slots> parts{};
    std::array<mmsghdr, slots> messages{};
};

UdpTarget::UdpTarget(const std::string& host, std::uint16_t port, SimulatorConfig& config,
                     const std::atomic<bool>& stop)
    : host_(host), stop_(stop), dst_ip_(resolve(host)) {
    const int probe = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe < 0 || !connect_to(probe, address_of(dst_ip_, port != 0 ? port : 9))) {
        const int reason = errno;
        ::close(probe);
        throw core::RunError(fmt::format("udp:{}: no way there: {}", host, std::strerror(reason)));
    }
    sockaddr_in local = local_address(probe);
    ::close(probe);
    // Not connected: then the kernel sends identification 0 with DF set, which is what the iCRC of RoCE was computed
    // for.
    socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    local.sin_port = htons(config.src_port.value_or(0));
    if (socket_ < 0 || ::bind(socket_, reinterpret_cast<const sockaddr*>(&local), sizeof local) != 0) {
        const int reason = errno;
        ::close(socket_);
        throw core::RunError(
            fmt::format("udp:{}: cannot bind source port {}: {}", host, ntohs(local.sin_port), std::strerror(reason)));
    }
    const int never_fragment = IP_PMTUDISC_DO;
    ::setsockopt(socket_, IPPROTO_IP, IP_MTU_DISCOVER, &never_fragment, sizeof never_fragment);
    const int report_errors = 1;
    ::setsockopt(socket_, IPPROTO_IP, IP_RECVERR, &report_errors, sizeof report_errors);
    if (::setsockopt(socket_, SOL_SOCKET, SO_SNDBUFFORCE, &send_buffer_bytes, sizeof send_buffer_bytes) != 0) {
        ::setsockopt(socket_, SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes, sizeof send_buffer_bytes);
    }
    config.dst_ip = dst_ip_;
    config.src_ip = ntohl(local.sin_addr.s_addr);
    config.one_src_ip = true;
    config.src_port = ntohs(local_address(socket_).sin_port);
    config.vlan.reset();
    if (port != 0) {
        config.port = port;
    }
}

UdpTarget::~UdpTarget() {
    ::close(socket_);
}

void UdpTarget::prepare(const Simulator& simulator) {
    const SimulatorConfig& config = simulator.config();
    header_bytes_ = simulator.frame_header_bytes();
    frame_bytes_max_ = simulator.frame_bytes_max();
    batch_ = std::make_unique<Batch>();
    batch_->memory.resize(std::size_t{slots} * frame_bytes_max_);
    for (std::uint32_t source = 0; source < config.sources; ++source) {
        const bool roce = config.transport != SimulatedTransport::udp;
        const std::uint32_t port = roce || config.one_port ? config.port : config.port + source;
        batch_->destinations.push_back(address_of(dst_ip_, static_cast<std::uint16_t>(port)));
    }
}

std::span<std::byte> UdpTarget::slot(std::uint32_t index) noexcept {
    return std::span(batch_->memory).subspan(std::size_t{index} * frame_bytes_max_, frame_bytes_max_);
}

void UdpTarget::fail(const Simulator::Frame& frame, int reason) const {
    if (reason == EMSGSIZE) {
        throw core::RunError(
            fmt::format("udp:{}: a datagram of {} bytes is too long for the way there; "
                        "raise the MTU of the interface to at least {} (ip link set DEV mtu 9000)",
                        host_, frame.bytes - header_bytes_, frame.bytes - header_bytes_ + 28));
    }
    throw core::RunError(fmt::format("udp:{}: cannot send: {}", host_, std::strerror(reason)));
}

std::uint32_t UdpTarget::send(std::uint32_t first, std::span<const OutgoingFrame> frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const Simulator::Frame& frame = frames[i].frame;
        const std::span<std::byte> datagram =
            slot(first + static_cast<std::uint32_t>(i)).subspan(header_bytes_, frame.bytes - header_bytes_);
        batch_->parts[i] = {datagram.data(), datagram.size()};
        msghdr& header = batch_->messages[i].msg_hdr;
        header.msg_name = &batch_->destinations[frame.source];
        header.msg_namelen = sizeof(sockaddr_in);
        header.msg_iov = &batch_->parts[i];
        header.msg_iovlen = 1;
    }
    std::uint32_t sent = 0;
    if (!neighbour_known_) {
        // While ARP is under way the kernel keeps a few packets and drops the others without a word: one is enough.
        sent = send_batch(frames.first(1), 0);
        wait_for_neighbour();
        if (sent == 0) return 0;
    }
    return send_batch(frames, sent);
}

/// From the frame at `sent` on; returns how many of all have been sent then.
std::uint32_t UdpTarget::send_batch(std::span<const OutgoingFrame> frames, std::uint32_t sent) {
    std::uint32_t refusals = 0;
    while (sent < frames.size()) {
        const int count =
            ::sendmmsg(socket_, batch_->messages.data() + sent, static_cast<unsigned>(frames.size() - sent), 0);
        if (count > 0) {
            sent += static_cast<std::uint32_t>(count);
            refusals = 0;
            continue;
        }
        const int reason = errno;
        constexpr std::uint32_t refusals_max = 10000;
        if (!is_passing(reason) || ++refusals > refusals_max) {
            fail(frames[sent].frame, reason);
        }
        take_errors();
        if (stop_.load(std::memory_order_relaxed) && reason != EINTR) {
            break;
        }
        if (reason == ENOBUFS) {
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
    }
    return sent;
}

void UdpTarget::take_errors() {
    std::array<std::byte, 512> control{};
    for (;;) {
        std::byte ignored{};
        iovec part{&ignored, sizeof ignored};
        msghdr header{};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        if (::recvmsg(socket_, &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
        for (cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, at)) {
            if (at->cmsg_level != IPPROTO_IP || at->cmsg_type != IP_RECVERR) continue;
            struct {
                sock_extended_err error;
                sockaddr_in by;
            } said{};
            std::memcpy(&said, CMSG_DATA(at), std::min(sizeof said, at->cmsg_len - CMSG_LEN(0)));
            if (said.error.ee_origin != SO_EE_ORIGIN_ICMP || said.error.ee_type != ICMP_UNREACH) continue;
            ++(said.error.ee_code == ICMP_UNREACH_PORT ? errors_.port : errors_.host);
            if (errors_.by.empty()) errors_.by = ip_text(ntohl(said.by.sin_addr.s_addr));
        }
    }
}

/// The kernel gives up after about 3 s, and says so for the packets that it kept.
void UdpTarget::wait_for_neighbour() {
    constexpr auto patience = std::chrono::seconds(4);
    const auto until = std::chrono::steady_clock::now() + patience;
    neighbour_known_ = true;
    while (is_asked_for(dst_ip_) && !stop_.load(std::memory_order_relaxed)) {
        take_errors();
        if (errors_.host > 0 || std::chrono::steady_clock::now() > until)
            throw core::RunError(fmt::format(
                "udp:{}: nobody there: no answer to ARP for {}. Is the receiver's port up, with this as its `address`?",
                host_, ip_text(dst_ip_)));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void UdpTarget::finish() {
    constexpr int answer_ms = 50;  // there and back on any network that a detector is on
    pollfd errors{socket_, 0, 0};
    static_cast<void>(::poll(&errors, 1, answer_ms));
    take_errors();
}

}  // namespace weir::simulate
