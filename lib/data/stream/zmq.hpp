// ZeroMQ's C API with owners: contexts and sockets that close themselves, and errors in words.
#pragma once

#include <string>

namespace weir::stream {

/// Destroyed after all of its sockets. Its end waits for nothing: sockets are closed without lingering.
class ZmqContext {
public:
    ZmqContext();
    ~ZmqContext();
    ZmqContext(const ZmqContext&) = delete;
    ZmqContext& operator=(const ZmqContext&) = delete;
    [[nodiscard]] void* get() const noexcept { return context_; }

private:
    void* context_;
};

/// For one thread at a time. Throws core::RunError where nothing else is said.
class ZmqSocket {
public:
    /// `type`: ZMQ_PUSH and so on.
    ZmqSocket(const ZmqContext& context, int type);
    ~ZmqSocket();
    ZmqSocket(ZmqSocket&& other) noexcept;
    ZmqSocket& operator=(ZmqSocket&&) = delete;
    ZmqSocket(const ZmqSocket&) = delete;
    ZmqSocket& operator=(const ZmqSocket&) = delete;

    void set(int option, int value);
    /// Where it listens then: with the port that the kernel gave, if it was asked for any ("tcp://127.0.0.1:*").
    [[nodiscard]] std::string bind(const std::string& address);
    void connect(const std::string& address);
    /// Before its owner goes. Nothing may be done with it after this.
    void close() noexcept;
    [[nodiscard]] void* get() const noexcept { return socket_; }

private:
    void choose_family(const std::string& address);

    void* socket_;
};

}  // namespace weir::stream
