// Both sides of a benchmark on one machine: two network namespaces that a pair of virtual Ethernet devices joins.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace weir::bench {

/// This process moves to a network namespace of its own, and a child to another. All of it is gone when they end. There
/// are two links, so that what the two sides say to each other does not stand in line with the packets.
class Loopback {
public:
    static constexpr const char* server_address = "10.99.0.2";   ///< of the link for packets
    static constexpr const char* control_address = "10.99.1.2";  ///< of the server, for the control connection

    /// `serve` runs in the child, which ends with it, or with this process. To be made before any thread is started.
    /// `mtu` is that of the links. Without root it needs user namespaces. Throws core::RunError that says what is not
    /// allowed, or missing.
    Loopback(unsigned mtu, const std::function<void()>& serve);
    ~Loopback();
    Loopback(const Loopback&) = delete;
    Loopback& operator=(const Loopback&) = delete;

private:
    void join_namespaces(unsigned mtu) const;
    void end_child() noexcept;

    pid_t child_ = -1;
};

}  // namespace weir::bench
