#include "bench/sending_socket.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace weir::bench {
namespace {

constexpr int send_buffer_bytes = 4 << 20;
constexpr timeval send_patience{.tv_sec = 0, .tv_usec = 20'000};

}  // namespace

FileDescriptor connected_socket(const Endpoint& to) {
    FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(to.port);
    if (::inet_pton(AF_INET, to.address.c_str(), &address.sin_addr) != 1) throw_not_sent(to, EINVAL);
    if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        throw_not_sent(to, errno);
    limit_waiting(socket);
    return socket;
}

void limit_waiting(const FileDescriptor& socket) noexcept {
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes, sizeof send_buffer_bytes);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &send_patience, sizeof send_patience);
}

void throw_not_sent(const Endpoint& to, int error) {
    throw core::RunError(fmt::format("sending to {}:{}: {}", to.address, to.port, std::strerror(error)));
}

bool may_try_again(int error) noexcept {
    return error == EAGAIN || error == EINTR || error == ENOBUFS || error == ECONNREFUSED;
}

}  // namespace weir::bench
