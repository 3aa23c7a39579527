#include "web/connections.hpp"

#include <sys/socket.h>

namespace weir::web {

bool Connections::admits() {
    const std::lock_guard lock(mutex_);
    if (connections_.size() < limit_) return true;
    ++counts_.turned_away;
    return false;
}

Connections::Connection* Connections::opened(int fd, Clock::time_point until) {
    const std::lock_guard lock(mutex_);
    ++counts_.accepted;
    return &connections_.emplace_back(Connection{fd, until});
}

void Connections::closed(Connection* connection) {
    const std::lock_guard lock(mutex_);
    connections_.remove_if([&](const Connection& other) { return &other == connection; });
}

void Connections::expect(Connection* connection, std::optional<Clock::time_point> until) {
    const std::lock_guard lock(mutex_);
    connection->until = until;
}

void Connections::shut_down_slow(Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    for (Connection& connection : connections_) {
        if (!connection.until || *connection.until > now) continue;
        connection.until.reset();
        ++counts_.too_slow;
        shutdown(connection.fd, SHUT_RDWR);
    }
}

Connections::Counts Connections::counts() const {
    const std::lock_guard lock(mutex_);
    Counts out = counts_;
    out.open = connections_.size();
    return out;
}

}  // namespace weir::web
