#include "bench/udp_socket.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace weir::bench {
namespace {

constexpr int large_buffer_bytes = 64 << 20;
constexpr int busy_poll_us = 50;

}  // namespace

UdpSocket::UdpSocket(const std::string& text) : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (::inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1 || !socket_ ||
        ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        throw core::RunError(fmt::format("a UDP socket at {}: {}", text, std::strerror(errno)));
}

Endpoint UdpSocket::endpoint() const {
    sockaddr_in address{};
    socklen_t bytes = sizeof address;
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
    return {text.data(), ntohs(address.sin_port)};
}

std::string UdpSocket::enlarge_buffer() {
    const auto set = [this](int option) {
        return ::setsockopt(get(), SOL_SOCKET, option, &large_buffer_bytes, sizeof large_buffer_bytes) == 0;
    };
    if (set(SO_RCVBUFFORCE)) return {};
    // Without CAP_NET_ADMIN no more than net.core.rmem_max.
    set(SO_RCVBUF);
    int bytes = 0;
    socklen_t size = sizeof bytes;
    ::getsockopt(get(), SOL_SOCKET, SO_RCVBUF, &bytes, &size);
    return fmt::format("receive buffer of {} KiB only: net.core.rmem_max", bytes >> 10);
}

std::string UdpSocket::poll_busily() {
    if (::setsockopt(get(), SOL_SOCKET, SO_BUSY_POLL, &busy_poll_us, sizeof busy_poll_us) == 0) return {};
    return fmt::format("no busy polling: {}", std::strerror(errno));
}

std::uint64_t UdpSocket::dropped() {
    std::array<std::uint32_t, SK_MEMINFO_VARS> memory{};
    socklen_t bytes = sizeof memory;
    if (::getsockopt(get(), SOL_SOCKET, SO_MEMINFO, memory.data(), &bytes) != 0) return dropped_;
    const std::uint32_t now = memory[SK_MEMINFO_DROPS];
    dropped_ += now - last_;
    last_ = now;
    return dropped_;
}

}  // namespace weir::bench
