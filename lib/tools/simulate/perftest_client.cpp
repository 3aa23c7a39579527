#include "simulate/perftest_client.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace weir::simulate {

namespace {

// Learnt from perftest 4.5 (src/perftest_communication.c), like what roce/perftest.hpp says.
constexpr std::string_view version = "6.06";
constexpr std::size_t version_bytes = 16;
constexpr std::string_view perftest_port = "18515";
constexpr std::string_view cycle_buffer{"\0\0\x10\0", 4};  // a page, as perftest has it
constexpr std::string_view cache_line{"\0\0\0\x40", 4};
constexpr std::string_view done_text{"done\0", 5};  // the zero is sent, too

/// Waits until the socket is ready for `events`; false when the time is over.
bool ready(int socket, short events, double seconds) {
    pollfd one{.fd = socket, .events = events, .revents = 0};
    int count = 0;
    do count = ::poll(&one, 1, static_cast<int>(seconds * 1000));
    while (count < 0 && errno == EINTR);
    return count > 0;
}

int connect_to(const addrinfo& address, double seconds) {
    const int socket = ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket < 0) return -1;
    int error = ::connect(socket, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
        socklen_t size = sizeof error;
        if (!ready(socket, POLLOUT, seconds))
            error = ETIMEDOUT;
        else
            ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) return socket;
    ::close(socket);
    errno = error;
    return -1;
}

}  // namespace

PerftestClient::PerftestClient(const std::string& server, double patience_s) : name_(server), patience_s_(patience_s) {
    const std::size_t colon = server.rfind(':');
    const std::string host = server.substr(0, colon);
    const std::string port = colon == std::string::npos ? std::string(perftest_port) : server.substr(colon + 1);
    const bool number =
        !port.empty() && port.size() <= 5 && std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
    if (host.empty() || !number)
        throw core::UsageError(fmt::format("--connect {}: HOST or HOST:PORT is accepted", server));
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int code = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); code != 0)
        throw core::RunError(fmt::format("--connect {}: {}", server, ::gai_strerror(code)));
    for (const addrinfo* at = found; at != nullptr && socket_ < 0; at = at->ai_next)
        socket_ = connect_to(*at, patience_s);
    const int reason = errno;
    ::freeaddrinfo(found);
    if (socket_ < 0) throw core::RunError(fmt::format("--connect {}: {}", server, std::strerror(reason)));
}

PerftestClient::PerftestClient(int socket, std::string name, double patience_s)
    : socket_(socket), name_(std::move(name)), patience_s_(patience_s) {}

PerftestClient::~PerftestClient() {
    ::close(socket_);
}

void PerftestClient::fail(std::string_view what) const {
    throw core::RunError(fmt::format("--connect {}: {}", name_, what));
}

void PerftestClient::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(count));
        } else if (errno == EAGAIN) {
            if (!ready(socket_, POLLOUT, patience_s_)) fail("takes nothing any more");
        } else if (errno != EINTR) {
            fail(std::strerror(errno));
        }
    }
}

std::string PerftestClient::read(std::size_t bytes) {
    std::string text(bytes, '\0');
    for (std::size_t got = 0; got < bytes;) {
        if (!ready(socket_, POLLIN, patience_s_)) fail(fmt::format("no answer within {:g} s", patience_s_));
        const ssize_t count = ::recv(socket_, text.data() + got, bytes - got, MSG_DONTWAIT);
        if (count > 0)
            got += static_cast<std::size_t>(count);
        else if (count == 0)
            fail("hung up; has it as many queue pairs to give as are asked for (--sources)?");
        else if (errno != EAGAIN && errno != EINTR)
            fail(std::strerror(errno));
    }
    return text;
}

std::uint32_t PerftestClient::greet(std::uint32_t path_mtu) {
    std::string text(version);
    text.resize(version_bytes, '\0');
    write(text);
    if (const std::string theirs = read(version_bytes); theirs[0] < '0' || theirs[0] > '9')
        fail("does not speak perftest's exchange");
    for (const std::string_view number : {cycle_buffer, cache_line}) {
        write(number);
        static_cast<void>(read(number.size()));  // what buffers of theirs are like is their business
    }
    write(std::string{static_cast<char>('0' + roce::mtu_number(path_mtu)), '\0'});
    const std::string theirs = read(2);
    if (theirs[0] < '1' || theirs[0] > '5' || theirs[1] != '\0') fail("names no path MTU");
    return std::min(path_mtu, 128U << static_cast<std::uint32_t>(theirs[0] - '0'));
}

roce::PerftestEnd PerftestClient::answer_to(const roce::PerftestEnd& ours) {
    const std::string text = ours.text();
    write(text);
    const auto theirs = roce::PerftestEnd::parse(read(text.size()));
    if (!theirs) fail("describes a queue pair in a way that cannot be read");
    return *theirs;
}

std::vector<roce::PerftestEnd> PerftestClient::exchange(std::span<const roce::PerftestEnd> ours) {
    std::vector<roce::PerftestEnd> theirs;
    for (const roce::PerftestEnd& end : ours) theirs.push_back(answer_to(end));
    return theirs;
}

void PerftestClient::meet(const roce::PerftestEnd& ours) {
    static_cast<void>(answer_to(ours));
}

void PerftestClient::done() noexcept {
    try {
        write(done_text);
        static_cast<void>(read(done_text.size()));
    } catch (const core::RunError&) {
        // The other side has gone before; everything that had to be said was said.
    }
}

}  // namespace weir::simulate
