#include "bench/reserved_port.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace weir::bench {

ReservedPort::ReservedPort(const std::string& text, std::uint16_t port)
    : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    socklen_t bytes = sizeof address;
    if (::inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1 ||
        ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
        throw core::RunError(fmt::format("a UDP port at {}: {}", text, std::strerror(errno)));
    const int least = 0;  // what the kernel keeps there is read by nobody
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
    endpoint_ = {text, ntohs(address.sin_port)};
}

}  // namespace weir::bench
