// The open connections of a server, and until when each has to have got on.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>

namespace weir::web {

/// One that gets on too slowly is shut down, which the thread that serves it sees as the end of what it sends. Any
/// thread.
class Connections {
public:
    using Clock = std::chrono::steady_clock;

    struct Connection {
        int fd;
        std::optional<Clock::time_point> until;
    };
    struct Counts {
        std::uint64_t open = 0;
        std::uint64_t accepted = 0;
        std::uint64_t turned_away = 0;  ///< because there were too many
        std::uint64_t too_slow = 0;     ///< shut down
    };

    explicit Connections(std::uint32_t limit) : limit_(limit) {}

    /// Whether there is room for another one; counts it as turned away if not.
    [[nodiscard]] bool admits();
    [[nodiscard]] Connection* opened(int fd, Clock::time_point until);
    /// Before its descriptor is closed.
    void closed(Connection* connection);
    /// It has to get on until then; nothing: it may take its time.
    void expect(Connection* connection, std::optional<Clock::time_point> until);
    void shut_down_slow(Clock::time_point now);
    [[nodiscard]] Counts counts() const;

private:
    const std::uint32_t limit_;
    mutable std::mutex mutex_;
    std::list<Connection> connections_;
    Counts counts_;
};

}  // namespace weir::web
