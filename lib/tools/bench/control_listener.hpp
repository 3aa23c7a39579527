// Where a server of a benchmark waits for clients, and what it tells those whose turn it is not.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <string>

#include "bench/file_descriptor.hpp"

namespace weir::bench {

/// For who holds the same socket in another process: why nobody will answer any more.
void say_left(const FileDescriptor& socket, const std::string& why);

/// The other side has not hung up. For who holds the same socket in another process, which reads it.
[[nodiscard]] bool is_open(const FileDescriptor& socket) noexcept;

/// A client is who has said something: others may be connected and silent without holding anybody up. They are let go
/// after ten seconds, or when there are too many.
class ControlListener {
public:
    /// Port 0: any. `turn_away_after`: see turn_away_others(). Throws core::RunError with what the system said.
    ControlListener(const std::string& address, std::uint16_t port,
                    std::chrono::milliseconds turn_away_after = std::chrono::seconds(1));
    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// For a process that has inherited it.
    void close() noexcept;
    /// The socket of the next client; none when none came for `patience_s`.
    [[nodiscard]] FileDescriptor accept(double patience_s);
    /// Somebody else is served. Who has been a client for a while is told why it comes in vain; until then it may be
    /// the same one, which has hung up and comes with its next measurement.
    void turn_away_others(const std::string& why);

private:
    using Clock = std::chrono::steady_clock;
    struct Waiting {
        FileDescriptor socket;
        Clock::time_point since;
        bool speaks = false;  ///< since then
    };
    void take_new();
    void make_place();
    void let_go();

    FileDescriptor socket_;
    std::uint16_t port_ = 0;
    std::chrono::milliseconds turn_away_after_;
    std::list<Waiting> waiting_;
    std::list<Waiting> leaving_;  ///< have been told, and may not have read it
};

}  // namespace weir::bench
