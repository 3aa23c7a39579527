// The simulator's frames through a kernel socket.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "port/frame_target.hpp"

namespace weir::port {

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
        throw core::RunError(fmt::format(
            "udp:{}: a datagram of {} bytes is too long for the way there; raise the MTU of the interface to at "
            "least {} (ip link set DEV mtu 9000)",
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
    std::uint32_t refusals = 0;
    while (sent < frames.size()) {
        const int count =
            ::sendmmsg(socket_, batch_->messages.data() + sent, static_cast<unsigned>(frames.size() - sent), 0);
        if (count > 0) {
            sent += static_cast<std::uint32_t>(count);
            refusals = 0;
            continue;
        }
        // A full queue, or an answer to an earlier datagram that nobody wanted: the present one is still to be sent.
        constexpr std::uint32_t refusals_max = 10000;
        const bool passing = errno == EINTR || errno == ENOBUFS || errno == EAGAIN || errno == ECONNREFUSED;
        if (!passing || ++refusals > refusals_max) {
            fail(frames[sent].frame, errno);
        }
        if (stop_.load(std::memory_order_relaxed) && errno != EINTR) {
            break;
        }
        if (errno == ENOBUFS) {
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
    }
    return sent;
}

}  // namespace weir::port
