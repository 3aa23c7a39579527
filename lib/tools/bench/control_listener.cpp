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

constexpr std::size_t waiting_max = 64;
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

bool is_open(const FileDescriptor& socket) noexcept {
    return heard(socket.get()) != Said::goodbye;
}

ControlListener::ControlListener(const std::string& text, std::uint16_t port, std::chrono::milliseconds turn_away_after)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), turn_away_after_(turn_away_after) {
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
    waiting_.clear();
    leaving_.clear();
}

FileDescriptor ControlListener::accept(double patience_s) {
    const auto give_up = Clock::now() + std::chrono::duration<double>(patience_s);
    while (true) {
        take_new();
        let_go();
        if (const auto found = std::ranges::find_if(waiting_, &Waiting::speaks); found != waiting_.end()) {
            FileDescriptor client = std::move(found->socket);
            waiting_.erase(found);
            return client;
        }
        const std::chrono::duration<double> left = give_up - Clock::now();
        if (left.count() <= 0) return {};
        pollfd one{.fd = socket_.get(), .events = POLLIN, .revents = 0};
        const auto wait = std::min<std::chrono::duration<double>>(left, waiting_.empty() ? left : speaking_every);
        (void)::poll(&one, 1, static_cast<int>(wait.count() * 1000) + 1);
    }
}

void ControlListener::take_new() {
    while (FileDescriptor socket{::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)}) {
        if (waiting_.size() == waiting_max) make_place();
        if (waiting_.size() < waiting_max) waiting_.push_back({std::move(socket), Clock::now()});
    }
}

/// The one that has been silent for longest goes; a client that waits for its turn does not. None, if all are clients.
void ControlListener::make_place() {
    let_go();
    if (waiting_.size() < waiting_max) return;
    const auto silent = std::ranges::find(waiting_, false, &Waiting::speaks);
    if (silent != waiting_.end()) waiting_.erase(silent);
}

/// Lets those go who say nothing, or have been told and have had the time to read it.
void ControlListener::let_go() {
    const auto now = Clock::now();
    for (Waiting& one : waiting_) {
        const Said said = heard(one.socket.get());
        if (said == Said::something && !one.speaks) one = {std::move(one.socket), now, true};
        if (said == Said::goodbye) one.socket.reset();
    }
    waiting_.remove_if(
        [now](const Waiting& one) { return !one.socket || (!one.speaks && now - one.since > silence_max); });
    // Closed while there is something to read, a connection would be reset, and what was said with it.
    leaving_.remove_if(
        [now](const Waiting& one) { return !empties(one.socket.get()) || now - one.since > leaving_max; });
}

void ControlListener::turn_away_others(const std::string& why) {
    take_new();
    let_go();
    const auto now = Clock::now();
    for (auto it = waiting_.begin(); it != waiting_.end();) {
        const auto one = it++;
        if (!one->speaks || now - one->since < turn_away_after_) continue;
        (void)empties(one->socket.get());
        say_left(one->socket, why);
        ::shutdown(one->socket.get(), SHUT_WR);
        one->since = now;
        leaving_.splice(leaving_.end(), waiting_, one);
    }
}

}  // namespace weir::bench
