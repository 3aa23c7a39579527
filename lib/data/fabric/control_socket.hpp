// Sockets of nodes that talk in frames: addresses, listening, and connections, none of which ever waits.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "fabric/control_frame.hpp"
#include "store/file.hpp"

namespace weir::fabric {

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t bytes = 0;
    [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// "HOST:PORT", and what it stands for at the moment. A name is looked up in a thread of its own: that takes seconds
/// when its server does not answer, and others would take this node for gone.
class HostAddress {
public:
    /// Throws core::RunError if it is none.
    explicit HostAddress(std::string text);
    [[nodiscard]] const std::string& text() const noexcept { return text_; }
    /// Waits. Throws core::RunError if there are none.
    [[nodiscard]] std::vector<SocketAddress> resolve_now() const;
    /// The next of those that it stands for; none yet, or none at all.
    [[nodiscard]] std::optional<SocketAddress> next();

private:
    std::string text_;
    std::string host_;
    std::string port_;
    std::future<std::vector<SocketAddress>> lookup_;
    std::vector<SocketAddress> left_;
};

/// Throws core::RunError.
[[nodiscard]] store::Descriptor listen_at(const HostAddress& address);

/// A connection with a node, or with whatever else calls.
class Connection {
public:
    /// One that was accepted.
    explicit Connection(store::Descriptor socket);
    /// Begins to connect; none: it cannot.
    [[nodiscard]] static std::optional<Connection> to(const SocketAddress& address);

    [[nodiscard]] int fd() const noexcept { return socket_.get(); }
    /// Takes what has come. False: it is over; what came before may still be read.
    [[nodiscard]] bool read();
    /// Sends what can be sent. False: it is over.
    [[nodiscard]] bool write();
    /// Sends it sooner or later; not at all if the other side takes nothing.
    void post(const Frame& frame);
    [[nodiscard]] std::optional<Frame> next() { return reader_.next(); }
    [[nodiscard]] bool has_piece() const noexcept { return reader_.has_piece(); }
    [[nodiscard]] bool is_connecting() const noexcept { return connecting_; }
    [[nodiscard]] bool has_to_write() const noexcept { return connecting_ || !out_.empty(); }
    /// Of the last failure.
    [[nodiscard]] int error() const noexcept { return error_; }

private:
    bool finish_connecting();

    store::Descriptor socket_;
    bool connecting_ = false;
    int error_ = 0;
    FrameReader reader_;
    std::vector<std::byte> out_;
};

}  // namespace weir::fabric
