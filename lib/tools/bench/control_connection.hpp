// The TCP connection over which the two sides of a benchmark agree: messages as lines of JSON, and signs of life.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "bench/file_descriptor.hpp"
#include "core/error.hpp"

namespace weir::bench {

/// The other side is there, and cannot do what it was asked for.
struct RefusedError : core::RunError {
    using core::RunError::RunError;
};

/// Each side says that it lives once a second, whatever else it does. Of one that has not been heard for ten seconds,
/// or that has hung up, the other side knows: gone() becomes true, and receive() throws. A message of type "left" says
/// why.
class ControlConnection {
public:
    explicit ControlConnection(FileDescriptor socket);
    /// Tries for `patience_s` while nobody listens there yet. Throws core::RunError that says what did not work.
    static std::unique_ptr<ControlConnection> connect(const std::string& host, std::uint16_t port, double patience_s);
    ~ControlConnection();
    ControlConnection(const ControlConnection&) = delete;
    ControlConnection& operator=(const ControlConnection&) = delete;

    /// Throws core::RunError if the other side is gone.
    void send(const nlohmann::json& message);
    /// The next message. Throws core::RunError if the other side is gone, or says nothing for `patience_s`. A message
    /// of type "error" throws what it says as RefusedError.
    [[nodiscard]] nlohmann::json receive(double patience_s);
    /// The same, of this type; another one is an error.
    [[nodiscard]] nlohmann::json receive(const std::string& type, double patience_s);

    /// For threads that send packets: the other side is gone, nothing must be sent any more.
    [[nodiscard]] const std::atomic<bool>& gone() const noexcept { return gone_; }
    /// IPv4 address of this side, and of the other.
    [[nodiscard]] std::string own_address() const;
    [[nodiscard]] std::string other_address() const;

private:
    void listen();
    bool read_lines(std::string& rest);
    /// 0, or the error number.
    int write(const std::string& line) noexcept;
    void end(const std::string& why);

    FileDescriptor socket_;
    std::mutex sending_;
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<nlohmann::json> messages_;
    std::string why_gone_;
    std::atomic<bool> gone_{false};
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace weir::bench
