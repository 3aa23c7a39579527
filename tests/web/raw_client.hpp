// A client that sends any bytes, and may be as slow and as rude as it likes.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace weir::web::test {

class RawClient {
public:
    /// To a port of this host. Throws std::system_error.
    explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address);
    }
    /// To a UNIX socket.
    explicit RawClient(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address);
    }
    RawClient(RawClient&& other) noexcept : fd_(other.fd_), text_(std::move(other.text_)) { other.fd_ = -1; }
    ~RawClient() {
        if (fd_ >= 0) ::close(fd_);
    }
    RawClient(const RawClient&) = delete;
    RawClient& operator=(const RawClient&) = delete;

    /// False if the other side has left.
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }
    /// Everything up to and with `mark`, or to the end of the connection; nothing comes twice.
    std::string read_until(std::string_view mark) {
        std::size_t found = text_.find(mark);
        while (found == std::string::npos && more()) found = text_.find(mark);
        const std::size_t size = found == std::string::npos ? text_.size() : found + mark.size();
        std::string out = text_.substr(0, size);
        text_.erase(0, size);
        return out;
    }
    /// To the end of the connection.
    std::string read_all() {
        while (more()) {
        }
        return std::move(text_);
    }
    /// Whether the other side has closed; waits for it.
    bool ended() {
        while (more()) {
        }
        return ended_;
    }
    void finish() { ::shutdown(fd_, SHUT_WR); }

private:
    void connect_to(const sockaddr* address, socklen_t size) {
        if (fd_ < 0 || ::connect(fd_, address, size) != 0) {
            const int error = errno;
            if (fd_ >= 0) ::close(fd_);
            throw std::system_error(error, std::generic_category(), "connect");
        }
    }
    bool more() {
        constexpr int patience_ms = 20'000;
        pollfd wait{fd_, POLLIN, 0};
        if (::poll(&wait, 1, patience_ms) != 1) return false;
        char bytes[65536];
        const ssize_t size = ::recv(fd_, bytes, sizeof bytes, 0);
        if (size <= 0) {
            ended_ = true;
            return false;
        }
        text_.append(bytes, static_cast<std::size_t>(size));
        return true;
    }

    int fd_;
    std::string text_;
    bool ended_ = false;
};

}  // namespace weir::web::test
