// HTTP on one listening socket, by libmicrohttpd: one thread that never waits for a client.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "web/connections.hpp"
#include "web/gate.hpp"
#include "web/listener.hpp"
#include "web/routes.hpp"

struct MHD_Daemon;

namespace weir::web {

class Daemon {
public:
    struct Limits {
        std::uint32_t connections = 256;
        std::size_t body_bytes = 64U << 10U;
        std::chrono::milliseconds request{30'000};   ///< for a whole request, since the connection or the last answer
        std::chrono::milliseconds response{60'000};  ///< for taking the answer; of a feed, each update
    };

    /// `routes` must outlive it. Its thread gets the CPUs of the one that makes it. Throws core::RunError.
    Daemon(Listener listener, const Routes& routes, TokenGuard* guard, Limits limits);
    /// Ends all connections. Feeds of `routes` have been closed.
    ~Daemon();
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    [[nodiscard]] const Listener& listener() const { return listener_; }
    [[nodiscard]] Connections& connections() { return connections_; }
    [[nodiscard]] std::uint64_t requests() const { return requests_.load(std::memory_order_relaxed); }

private:
    struct Callbacks;  ///< of libmicrohttpd
    friend struct Callbacks;

    [[nodiscard]] Response answer(const Request& request);

    Listener listener_;
    const Routes& routes_;
    Gate gate_;
    const Limits limits_;
    Connections connections_;
    std::atomic<std::uint64_t> requests_ = 0;
    MHD_Daemon* mhd_ = nullptr;
};

}  // namespace weir::web
