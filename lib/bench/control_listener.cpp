#include "bench/control_listener.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t silent_max = 64;
constexpr auto silence_max = std::chrono::seconds(10);
constexpr auto leaving_max = std::chrono::seconds(2);
constexpr auto speaking_every = std::chrono::milliseconds(5);

enum class Said { nothing, something, goodbye };

/// Whether a line has come, or more than a first line may be; it is left where it is.
Said heard(int socket) noexcept {
    std::array<char, 4096> bytes;
    const ssize_t count = ::recv(socket, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EINTR ? Said::nothing : Said::goodbye;
    if (count == 0) return Said::goodbye;
    const std::string_view text(bytes.data(), static_cast<std::size_t>(count));
    return text.size() == bytes.size() || text.find('\n') != text.npos ? Said::something : Said::nothing;
}

/// False: the other side has closed it. Who sends without end is not read without end.
bool empties(int socket) noexcept {
    constexpr int reads_max = 256;
    std::array<char, 4096> bytes;
    ssize_t count = 1;
    for (int i = 0; i < reads_max && count > 0; ++i) count = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

void say_left(const FileDescriptor& socket, const std::string& why) {
    const std::string line = nlohmann::json({{"type", "left"}, {"what", why}}).dump() + '\n';
    (void)::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

ControlListener::ControlListener(const std::string& text, std::uint16_t port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    const int yes = 1;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    socklen_t bytes = sizeof address;
    if (::inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1)
        throw core::UsageError(fmt::format("{}: no IPv4 address", text));
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket_.get(), 16) != 0 ||
        ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
        throw core::RunError(fmt::format("cannot listen on {}:{}: {}", text, port, std::strerror(errno)));
    port_ = ntohs(address.sin_port);
}

void ControlListener::close() noexcept {
    socket_.reset();
    silent_.clear();
    leaving_.clear();
}

FileDescriptor ControlListener::accept(double patience_s) {
    const auto give_up = Clock::now() + std::chrono::duration<double>(patience_s);
    while (true) {
        take_new();
        let_go();
        if (FileDescriptor client = take_speaking()) return client;
        const std::chrono::duration<double> left = give_up - Clock::now();
        if (left.count() <= 0) return {};
        pollfd one{.fd = socket_.get(), .events = POLLIN, .revents = 0};
        const auto wait = std::min<std::chrono::duration<double>>(left, silent_.empty() ? left : speaking_every);
        (void)::poll(&one, 1, static_cast<int>(wait.count() * 1000) + 1);
    }
}

void ControlListener::take_new() {
    while (FileDescriptor socket{::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)}) {
        if (silent_.size() == silent_max) silent_.pop_front();
        silent_.push_back({std::move(socket), Clock::now() + silence_max});
    }
}

FileDescriptor ControlListener::take_speaking() {
    for (auto it = silent_.begin(); it != silent_.end();) {
        const Said said = heard(it->socket.get());
        if (said == Said::something) {
            FileDescriptor client = std::move(it->socket);
            silent_.erase(it);
            return client;
        }
        it = said == Said::goodbye || Clock::now() > it->until ? silent_.erase(it) : std::next(it);
    }
    return {};
}

void ControlListener::turn_away(FileDescriptor client, const std::string& why) {
    (void)empties(client.get());
    say_left(client, why);
    ::shutdown(client.get(), SHUT_WR);
    leaving_.push_back({std::move(client), Clock::now() + leaving_max});
}

/// Closed while there is something to read, a connection would be reset, and what was said with it.
void ControlListener::let_go() {
    leaving_.remove_if([](const Waiting& one) { return !empties(one.socket.get()) || Clock::now() > one.until; });
}

}  // namespace weir::bench
