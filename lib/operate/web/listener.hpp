// Sockets that are listened at.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::web {

/// Of a UNIX socket the file goes with it.
class Listener {
public:
    /// "HOST:PORT", "[V6]:PORT" (port 0: one that is free) or "unix:/path". Throws core::UsageError for another text,
    /// and core::RunError if nothing can be listened at there.
    [[nodiscard]] static Listener open(std::string_view text);
    /// Who may write to its file, its owner and group, may connect. A file that a dead process left is replaced; one
    /// that somebody listens at is not. Its folder is made, if only that is missing.
    [[nodiscard]] static Listener open_unix(const std::string& path);

    Listener(Listener&& other) noexcept;
    Listener& operator=(Listener&&) = delete;
    ~Listener();

    /// The socket, which the caller closes from now on.
    [[nodiscard]] int release();
    [[nodiscard]] bool is_unix() const { return !path_.empty(); }
    [[nodiscard]] const std::string& path() const { return path_; }  ///< of a UNIX socket
    [[nodiscard]] const std::string& host() const { return host_; }  ///< as it was written, without brackets
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] bool loopback() const { return loopback_; }  ///< nobody else can reach it
    /// "http://127.0.0.1:9321", "unix:/run/weir/run.sock".
    [[nodiscard]] std::string url() const;

private:
    explicit Listener(int fd) : fd_(fd) {}

    int fd_ = -1;
    std::string path_;
    dev_t device_ = 0;  ///< of the file that we made, which another process may have replaced since
    ino_t inode_ = 0;
    std::string host_;
    std::uint16_t port_ = 0;
    bool loopback_ = false;
};

}  // namespace weir::web
