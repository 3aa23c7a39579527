#include "bench/control_connection.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/error.hpp"
#include "core/foreign_json.hpp"

namespace weir::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto alive_every = std::chrono::seconds(1);
// Silence counts while this side is awake: a machine that was held up for longer as a whole has heard nothing either.
constexpr int listen_ms = 100;
constexpr int silent_times_max = 100;
constexpr auto last_words_s = std::chrono::seconds(1);
constexpr int connect_ms = 3000;
constexpr auto try_again_every = std::chrono::milliseconds(50);
constexpr std::size_t line_bytes_max = 1U << 20;

bool ready(int socket, short events, int milliseconds) noexcept {
    pollfd one{.fd = socket, .events = events, .revents = 0};
    return ::poll(&one, 1, milliseconds) > 0;
}

void at_once(int socket) noexcept {
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

std::string address_text(const sockaddr_in& address) {
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
    return text.data();
}

/// In a program that goes before others (SCHED_FIFO) a sender that never sleeps would silence this thread.
void go_before_the_sender() noexcept {
    int policy = SCHED_OTHER;
    sched_param priority{};
    if (::pthread_getschedparam(::pthread_self(), &policy, &priority) != 0 || policy == SCHED_OTHER) return;
    priority.sched_priority = std::min(priority.sched_priority + 1, ::sched_get_priority_max(policy));
    ::pthread_setschedparam(::pthread_self(), policy, &priority);
}

/// 0, or the error number.
int connect_within(int socket, const addrinfo& address) {
    if (::connect(socket, address.ai_addr, address.ai_addrlen) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    if (!ready(socket, POLLOUT, connect_ms)) return ETIMEDOUT;
    int error = 0;
    socklen_t bytes = sizeof error;
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes);
    return error;
}

}  // namespace

ControlConnection::ControlConnection(FileDescriptor socket) : socket_(std::move(socket)) {
    at_once(socket_.get());
    // Somebody who does not read must not hold up who writes.
    const timeval patience{.tv_sec = 4, .tv_usec = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    thread_ = std::thread([this] { listen(); });
}

ControlConnection::~ControlConnection() {
    stop_.store(true);
    ::shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
}

std::unique_ptr<ControlConnection> ControlConnection::connect(const std::string& host, std::uint16_t port,
                                                              double patience_s) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); code != 0)
        throw core::RunError(fmt::format("{}: {}", host, ::gai_strerror(code)));
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
    const auto give_up = Clock::now() + std::chrono::duration<double>(patience_s);
    int error = 0;
    do {
        for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
            FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
            error = connect_within(socket.get(), *at);
            if (error == 0) return std::make_unique<ControlConnection>(std::move(socket));
        }
        std::this_thread::sleep_for(try_again_every);
    } while (error == ECONNREFUSED && Clock::now() < give_up);
    throw core::RunError(fmt::format("{}:{}: {}{}", host, port, std::strerror(error),
                                     error == ECONNREFUSED ? " (is `weir bench --server` running there?)" : ""));
}

void ControlConnection::end(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (!gone_.exchange(true)) why_gone_ = why;
    arrived_.notify_all();
}

void ControlConnection::listen() {
    go_before_the_sender();
    std::string rest;
    int silent_times = 0;
    auto said = Clock::now() - alive_every;
    while (!stop_.load() && !gone_.load()) {
        if (const auto now = Clock::now(); now - said >= alive_every) {
            said = now;
            (void)write("{\"type\":\"alive\"}\n");  // if that fails, what is read says why
        }
        if (ready(socket_.get(), POLLIN, listen_ms)) {
            if (!read_lines(rest)) return;
            silent_times = 0;
        } else if (++silent_times == silent_times_max) {
            end("the other side has not been heard for ten seconds");
        }
    }
}

bool ControlConnection::read_lines(std::string& rest) {
    std::array<char, 65536> bytes;
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (count <= 0) {
        end(count == 0 ? "the other side has hung up" : std::strerror(errno));
        return false;
    }
    rest.append(bytes.data(), static_cast<std::size_t>(count));
    for (std::size_t line = rest.find('\n'); line != std::string::npos; line = rest.find('\n')) {
        std::optional<nlohmann::json> message = core::read_json(std::string_view(rest).substr(0, line));
        rest.erase(0, line + 1);
        const std::string type = message && message->is_object() ? core::text_member(*message, "type", "") : "";
        if (type.empty()) {
            end("the other side does not speak the protocol of weir bench");
            return false;
        }
        if (type == "alive") continue;
        if (type == "left") {
            end(core::text_member(*message, "what", "the other side has left"));
            return false;
        }
        const std::lock_guard lock(mutex_);
        messages_.push_back(*std::move(message));
        arrived_.notify_all();
    }
    if (rest.size() <= line_bytes_max) return true;
    end("the other side does not speak the protocol of weir bench");
    return false;
}

int ControlConnection::write(const std::string& line) noexcept {
    const std::lock_guard lock(sending_);
    std::size_t done = 0;
    while (done < line.size()) {
        const ssize_t count = ::send(socket_.get(), line.data() + done, line.size() - done, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && errno == EAGAIN && ready(socket_.get(), POLLOUT, 4000)) continue;
        if (count < 0) return errno;
        done += static_cast<std::size_t>(count);
    }
    return 0;
}

void ControlConnection::send(const nlohmann::json& message) {
    const int error = write(message.dump() + '\n');
    if (error == 0) return;
    const bool hung_up = error == EPIPE || error == ECONNRESET;
    std::unique_lock lock(mutex_);
    // What it said before it left may still be read.
    if (hung_up) arrived_.wait_for(lock, last_words_s, [this] { return gone_.load(); });
    if (!gone_.exchange(true)) why_gone_ = hung_up ? "the other side has hung up" : std::strerror(error);
    throw core::RunError(why_gone_);
}

nlohmann::json ControlConnection::receive(double patience_s) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, std::chrono::duration<double>(patience_s),
                      [this] { return !messages_.empty() || gone_.load(); });
    if (messages_.empty())
        throw core::RunError(gone_.load() ? why_gone_
                                          : fmt::format("the other side gave no answer for {:g} s", patience_s));
    nlohmann::json message = std::move(messages_.front());
    messages_.pop_front();
    if (message["type"] == "error") throw RefusedError(core::text_member(message, "what", "the other side failed"));
    return message;
}

nlohmann::json ControlConnection::receive(const std::string& type, double patience_s) {
    nlohmann::json message = receive(patience_s);
    if (message["type"] != type)
        throw core::RunError(
            fmt::format("the other side said \"{}\", not \"{}\"", message["type"].get<std::string>(), type));
    return message;
}

std::string ControlConnection::own_address() const {
    sockaddr_in address{};
    socklen_t bytes = sizeof address;
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
    return address_text(address);
}

std::string ControlConnection::other_address() const {
    sockaddr_in address{};
    socklen_t bytes = sizeof address;
    ::getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
    return address_text(address);
}

}  // namespace weir::bench
