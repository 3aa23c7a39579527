// Payloads through a kernel socket, which puts its own headers in front.
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
#include "resend/wire_target.hpp"
#include "simulate/arp_table.hpp"

namespace weir::resend {

namespace {

constexpr int socket_buffer_bytes = 8 << 20;
constexpr std::size_t payload_bytes_max = 65535;

/// Says of an earlier packet what became of it, or that there is no room: the one in hand can still go.
bool is_of_the_moment(int reason) noexcept {
    constexpr std::array reasons{EINTR,       ENOBUFS,   EAGAIN,      ECONNREFUSED, EHOSTUNREACH,
                                 ENETUNREACH, EHOSTDOWN, ENOPROTOOPT, EPROTO,       EACCES};
    return std::ranges::find(reasons, reason) != reasons.end();
}

class SocketTarget : public WireTarget {
public:
    explicit SocketTarget(const std::string& host);
    ~SocketTarget() override { ::close(socket_); }
    SocketTarget(const SocketTarget&) = delete;
    SocketTarget& operator=(const SocketTarget&) = delete;

    void load(std::uint32_t slot, std::span<const std::byte> packet, std::uint16_t port) noexcept override;
    Taken send(std::uint32_t first, std::uint32_t count) noexcept override;
    void wait_until_reachable() override;
    void finish() override;
    std::uint64_t lost() noexcept override { return host_unreachable_; }
    simulate::NetworkErrors network_errors() const override {
        return {host_unreachable_, port_unreachable_, host_unreachable_ + port_unreachable_ > 0 ? "the network" : ""};
    }
    std::string failure() const override {
        return fmt::format("udp:{}: cannot send: {}", host_, std::strerror(reason_));
    }

private:
    void resolve();
    void take_errors() noexcept;

    std::string host_;
    sockaddr_storage address_{};
    socklen_t address_bytes_ = 0;
    int socket_ = -1;
    int reason_ = 0;
    std::uint64_t host_unreachable_ = 0;
    std::uint64_t port_unreachable_ = 0;
    std::vector<std::byte> memory_;
    std::array<sockaddr_storage, slots> destinations_{};
    std::array<iovec, slots> parts_{};
    std::array<mmsghdr, slots> messages_{};
};

void SocketTarget::resolve() {
    addrinfo hints{};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    if (const int reason = ::getaddrinfo(host_.c_str(), nullptr, &hints, &found); reason != 0)
        throw core::RunError(fmt::format("udp:{}: no address: {}", host_, ::gai_strerror(reason)));
    address_bytes_ = found->ai_addrlen;
    std::memcpy(&address_, found->ai_addr, found->ai_addrlen);
    ::freeaddrinfo(found);
}

SocketTarget::SocketTarget(const std::string& host) : host_(host), memory_(slots * payload_bytes_max) {
    resolve();
    const bool ipv6 = address_.ss_family == AF_INET6;
    // Not connected: then the kernel sends IPv4 with identification 0, as most detectors do.
    socket_ = ::socket(address_.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket_ < 0) throw core::RunError(fmt::format("udp:{}: no socket: {}", host, std::strerror(errno)));
    const int level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
    // A packet that is too long is counted, instead of going out in fragments; a queue that is full says so.
    static_assert(IP_PMTUDISC_DO == IPV6_PMTUDISC_DO);
    const int never_fragment = IP_PMTUDISC_DO;
    ::setsockopt(socket_, level, ipv6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &never_fragment, sizeof never_fragment);
    const int report_errors = 1;
    ::setsockopt(socket_, level, ipv6 ? IPV6_RECVERR : IP_RECVERR, &report_errors, sizeof report_errors);
    if (::setsockopt(socket_, SOL_SOCKET, SO_SNDBUFFORCE, &socket_buffer_bytes, sizeof socket_buffer_bytes) != 0)
        ::setsockopt(socket_, SOL_SOCKET, SO_SNDBUF, &socket_buffer_bytes, sizeof socket_buffer_bytes);
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
        destinations_[slot] = address_;
        msghdr& header = messages_[slot].msg_hdr;
        header.msg_name = &destinations_[slot];
        header.msg_namelen = address_bytes_;
        header.msg_iov = &parts_[slot];
        header.msg_iovlen = 1;
    }
}

void SocketTarget::load(std::uint32_t slot, std::span<const std::byte> packet, std::uint16_t port) noexcept {
    std::byte* const place = memory_.data() + slot * payload_bytes_max;
    if (!packet.empty()) std::memcpy(place, packet.data(), packet.size());
    parts_[slot] = {place, packet.size()};
    const in_port_t number = htons(port);
    const std::size_t at =
        address_.ss_family == AF_INET6 ? offsetof(sockaddr_in6, sin6_port) : offsetof(sockaddr_in, sin_port);
    std::memcpy(reinterpret_cast<std::byte*>(&destinations_[slot]) + at, &number, sizeof number);
}

WireTarget::Taken SocketTarget::send(std::uint32_t first, std::uint32_t count) noexcept {
    const int sent = ::sendmmsg(socket_, messages_.data() + first, count, 0);
    if (sent > 0) return {static_cast<std::uint32_t>(sent), false, false};
    reason_ = errno;
    take_errors();
    if (reason_ == EMSGSIZE) return {1, true, false};
    return {0, false, !is_of_the_moment(reason_)};
}

void SocketTarget::take_errors() noexcept {
    for (;;) {
        std::array<std::byte, 512> control{};
        std::byte ignored{};
        iovec part{&ignored, sizeof ignored};
        msghdr header{};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        if (::recvmsg(socket_, &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
        for (cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, at)) {
            sock_extended_err error{};
            if (at->cmsg_len < CMSG_LEN(sizeof error)) continue;
            std::memcpy(&error, CMSG_DATA(at), sizeof error);
            if (error.ee_origin != SO_EE_ORIGIN_ICMP && error.ee_origin != SO_EE_ORIGIN_ICMP6) continue;
            ++(error.ee_errno == ECONNREFUSED ? port_unreachable_ : host_unreachable_);
        }
    }
}

/// The kernel gives up after about 3 s.
void SocketTarget::wait_until_reachable() {
    if (address_.ss_family != AF_INET) return;
    sockaddr_in address{};
    std::memcpy(&address, &address_, sizeof address);
    const std::uint32_t ip = ntohl(address.sin_addr.s_addr);
    constexpr auto patience = std::chrono::seconds(4);
    const auto until = std::chrono::steady_clock::now() + patience;
    while (simulate::is_asked_for(ip)) {
        take_errors();
        if (host_unreachable_ > 0 || std::chrono::steady_clock::now() > until)
            throw core::RunError(fmt::format(
                "udp:{}: nobody there: no answer to ARP for {}. Is the receiver's port up, with this as its `address`?",
                host_, simulate::ip_text(ip)));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void SocketTarget::finish() {
    constexpr int answer_ms = 50;  // there and back on any network that a detector is on
    pollfd errors{socket_, 0, 0};
    static_cast<void>(::poll(&errors, 1, answer_ms));
    take_errors();
}

}  // namespace

std::unique_ptr<WireTarget> open_socket_target(const std::string& host) {
    return std::make_unique<SocketTarget>(host);
}

}  // namespace weir::resend
