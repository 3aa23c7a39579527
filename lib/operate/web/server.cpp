#include "web/server.hpp"

#include <algorithm>
#include <utility>

namespace weir::web {

Server::Server(Options options, Routes routes) : options_(std::move(options)), routes_(std::move(routes)) {
    std::vector<Listener> listeners;
    if (!options_.listen.empty()) listeners.push_back(Listener::open(options_.listen));
    for (const std::string& path : options_.sockets) listeners.push_back(Listener::open_unix(path));
    for (Listener& listener : listeners)
        daemons_.push_back(std::make_unique<Daemon>(std::move(listener), routes_, options_.guard, options_.limits));
    watching_ = std::thread([this] { watch(); });
}

Server::~Server() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    ends_.notify_all();
    watching_.join();
    for (EventFeed* feed : options_.feeds) feed->close();
    daemons_.clear();
}

/// Nothing of libmicrohttpd's tells a client that sends a byte now and then from one that gets on.
void Server::watch() {
    const auto often = std::min<std::chrono::milliseconds>(
        {std::chrono::milliseconds(1000), options_.limits.request / 4, options_.limits.response / 4});
    std::unique_lock lock(mutex_);
    while (!ends_.wait_for(lock, often, [&] { return ending_; }))
        for (const auto& daemon : daemons_) daemon->connections().shut_down_slow(Connections::Clock::now());
}

std::uint16_t Server::port() const {
    for (const auto& daemon : daemons_)
        if (daemon->listener().port() != 0) return daemon->listener().port();
    return 0;
}

std::vector<std::string> Server::urls() const {
    std::vector<std::string> out;
    for (const auto& daemon : daemons_) out.push_back(daemon->listener().url());
    return out;
}

Server::Counts Server::counts() const {
    Counts out;
    for (const auto& daemon : daemons_) {
        const Connections::Counts counts = daemon->connections().counts();
        out.connections.open += counts.open;
        out.connections.accepted += counts.accepted;
        out.connections.turned_away += counts.turned_away;
        out.connections.too_slow += counts.too_slow;
        out.requests += daemon->requests();
    }
    return out;
}

}  // namespace weir::web
