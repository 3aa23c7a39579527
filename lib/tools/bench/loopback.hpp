// Both sides of a benchmark on one machine: two network namespaces that a pair of virtual Ethernet devices joins, or
// two processes that share memory.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "bench/pipeline.hpp"

namespace weir::bench {

/// Why this process may not make network namespaces; empty if it may.
[[nodiscard]] std::string namespaces_problem();

/// A process that serves, and ends with this one or with its owner.
class ServingChild {
public:
    ServingChild() = default;
    ~ServingChild() { end(); }
    ServingChild(const ServingChild&) = delete;
    ServingChild& operator=(const ServingChild&) = delete;

    /// To be called before any thread is started. In the child `serve` runs, and then it ends.
    void start(const std::function<void()>& serve);
    [[nodiscard]] pid_t id() const noexcept { return id_; }
    void end() noexcept;

private:
    pid_t id_ = -1;
};

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
    Loopback(const Loopback&) = delete;
    Loopback& operator=(const Loopback&) = delete;

private:
    void join_namespaces(unsigned mtu) const;

    ServingChild child_;
};

/// The same without namespaces, and so without rights: DPDK's devices at both ends of memory that two processes share
/// (net_memif), and nothing of the kernel's between them.
class MemifLoopback {
public:
    static constexpr const char* server_address = "10.99.0.2";   ///< of packets; no kernel has it
    static constexpr const char* control_address = "127.0.0.1";  ///< of the server, for the control connection

    /// For the side that receives, and the one that sends. In a folder of its own, which is gone with its owner.
    [[nodiscard]] std::string server_device() const { return device("server"); }
    [[nodiscard]] std::string client_device() const { return device("client"); }
    /// As Loopback's constructor does it.
    void start(const std::function<void()>& serve) { child_.start(serve); }

private:
    [[nodiscard]] std::string device(const char* role) const;

    ScratchFolder folder_;
    ServingChild child_;
};

}  // namespace weir::bench
