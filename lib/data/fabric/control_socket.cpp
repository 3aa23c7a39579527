#include "fabric/control_socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace weir::fabric {

namespace {

constexpr int control_backlog = 1024;
/// What is kept for a node that takes nothing; it will count as gone soon.
constexpr std::size_t out_bytes_max = 1U << 18;
/// At a time, so that who sends without end is looked at in between.
constexpr int reads_max = 16;

/// `reason` is set where there are none.
std::vector<SocketAddress> look_up(const std::string& host, const std::string& port, int flags, std::string& reason) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | flags;
    addrinfo* list = nullptr;
    const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
    std::vector<SocketAddress> found;
    if (error != 0) {
        reason = error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error);
        return found;
    }
    for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
        SocketAddress address;
        std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
        address.bytes = entry->ai_addrlen;
        found.push_back(address);
    }
    ::freeaddrinfo(list);
    return found;
}

/// The program's signals are not for it.
std::future<std::vector<SocketAddress>> look_up_beside(std::string host, std::string port) {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    auto found = std::async(std::launch::async, [host = std::move(host), port = std::move(port)] {
        std::string reason;
        return look_up(host, port, 0, reason);
    });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return found;
}

void send_at_once(int socket) noexcept {
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

store::Descriptor control_socket(int family) {
    return store::Descriptor(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

bool would_wait(int error) noexcept {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

HostAddress::HostAddress(std::string text) : text_(std::move(text)) {
    const auto colon = text_.rfind(':');
    const bool brackets = text_.starts_with('[');
    const bool is_whole = colon != std::string::npos && colon > 0 && colon + 1 < text_.size() &&
                          (brackets ? text_[colon - 1] == ']' : text_.find(':') == colon) &&
                          text_.find_first_not_of("0123456789", colon + 1) == std::string::npos;
    if (!is_whole)
        throw core::RunError(fmt::format("{} is no address of a node: HOST:PORT, for IPv6 [HOST]:PORT", text_));
    host_ = brackets ? text_.substr(1, colon - 2) : text_.substr(0, colon);
    port_ = text_.substr(colon + 1);
}

std::vector<SocketAddress> HostAddress::resolve_now() const {
    std::string reason;
    auto found = look_up(host_, port_, 0, reason);
    if (found.empty()) throw core::RunError(fmt::format("there is no host {}: {}", host_, reason));
    return found;
}

std::optional<SocketAddress> HostAddress::next() {
    if (left_.empty()) {
        std::string reason;
        if (lookup_.valid()) {
            if (lookup_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
            left_ = lookup_.get();
        } else if (left_ = look_up(host_, port_, AI_NUMERICHOST, reason); left_.empty()) {
            lookup_ = look_up_beside(host_, port_);
        }
    }
    if (left_.empty()) return std::nullopt;
    const SocketAddress address = left_.front();
    left_.erase(left_.begin());
    return address;
}

store::Descriptor listen_at(const HostAddress& address) {
    int error = 0;
    for (const SocketAddress& place : address.resolve_now()) {
        auto socket = control_socket(place.storage.ss_family);
        const int yes = 1;
        ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (socket.is_open() && ::bind(socket.get(), place.get(), place.bytes) == 0 &&
            ::listen(socket.get(), control_backlog) == 0)
            return socket;
        error = errno;
    }
    throw core::RunError(fmt::format("cannot listen at {}: {}", address.text(), std::strerror(error)));
}

Connection::Connection(store::Descriptor socket) : socket_(std::move(socket)) {
    send_at_once(socket_.get());
}

std::optional<Connection> Connection::to(const SocketAddress& address) {
    auto socket = control_socket(address.storage.ss_family);
    if (!socket.is_open()) return std::nullopt;
    if (::connect(socket.get(), address.get(), address.bytes) != 0 && errno != EINPROGRESS) return std::nullopt;
    Connection connection(std::move(socket));
    connection.connecting_ = true;
    return connection;
}

bool Connection::finish_connecting() {
    socklen_t bytes = sizeof error_;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error_, &bytes);
    if (error_ != 0) return false;
    connecting_ = false;
    return true;
}

bool Connection::read() {
    std::array<std::byte, 4096> bytes;
    for (int i = 0; i < reads_max; ++i) {
        const auto count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
        if (count > 0) {
            reader_.add(std::span(bytes).first(static_cast<std::size_t>(count)));
            continue;
        }
        if (count < 0 && (would_wait(errno) || connecting_)) return true;
        error_ = count < 0 ? errno : 0;
        return false;
    }
    return true;
}

bool Connection::write() {
    if (connecting_ && !finish_connecting()) return false;
    while (!out_.empty()) {
        const auto count = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
        if (count < 0) {
            error_ = errno;
            return would_wait(errno);
        }
        out_.erase(out_.begin(), out_.begin() + count);
    }
    return true;
}

void Connection::post(const Frame& frame) {
    if (out_.size() > out_bytes_max) return;
    append_frame(out_, frame);
    if (!connecting_) static_cast<void>(write());  // that it is over is seen by who reads
}

}  // namespace weir::fabric
