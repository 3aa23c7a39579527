// The numbers of messages, and with NumberBy::count the order in which they get them: of a connection's messages, each
// has its number when everything before it is known, or at once where all have one size.
#pragma once

#include <cstdint>
#include <optional>

#include "roce/listener/connections.hpp"
#include "roce/listener/groups.hpp"
#include "roce/listener/runs.hpp"

namespace weir::roce {

class MessageNumbers {
public:
    static constexpr std::uint32_t count_hold = 32;

    MessageNumbers(Connections& connections, const Runs& runs, TimeNs timeout_ns)
        : connections_(connections), runs_(runs), timeout_ns_(timeout_ns) {}

    /// The number of a whole message; nothing where it has none. With NumberBy::format the header says it.
    [[nodiscard]] std::optional<std::uint64_t> of_whole(const Run& run) noexcept;
    /// Likewise of one that ends incomplete, whose start is known.
    [[nodiscard]] std::optional<std::uint64_t> of_group(Connection& connection, const Group& group) noexcept;

    /// With NumberBy::count, two connections would give the same numbers to different messages. So only one is counted,
    /// until it has been silent for a time-out.
    [[nodiscard]] bool counts(Connection& connection, TimeNs now) noexcept;
    /// Whether a number is PSN arithmetic.
    [[nodiscard]] static bool by_psn(const Connection& connection) noexcept {
        return connection.config->message_bytes != 0 || connection.is_datagrams;
    }
    /// The connection is the one that was announced: its message 0 begins here, whether it comes or not.
    void count_from(Connection& connection, std::uint32_t first_psn) noexcept;
    /// One more message is whole. True: it is time to begin, if the start can be told.
    [[nodiscard]] static bool is_time_to_start(Connection& connection) noexcept {
        return ++connection.count.whole >= (connection.config->in_order ? 1 : count_hold);
    }
    /// Message 0 is the first of which the FIRST packet was seen. False: there is none.
    [[nodiscard]] bool start(Connection& connection) noexcept;
    /// The run of the message that is to be numbered next, if it is whole; or no_run.
    [[nodiscard]] std::uint32_t next_whole(Connection& connection) noexcept;
    /// A single PSN between a message end and a message start was a whole message that is lost, so the count goes on
    /// after it. Not on a reliable connection, where it may as well have been a READ. True: it went on.
    [[nodiscard]] bool step_over_lost(Connection& connection) noexcept;

private:
    /// The event number of a counted connection's message `local`.
    [[nodiscard]] std::uint64_t counted(const Connection& connection, std::uint64_t local) noexcept;
    [[nodiscard]] std::optional<std::uint64_t> by_distance(Connection& connection, Psn begin, Psn end) noexcept;

    Connections& connections_;
    const Runs& runs_;
    TimeNs timeout_ns_;
};

}  // namespace weir::roce
