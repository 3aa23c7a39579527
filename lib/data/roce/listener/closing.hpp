// What becomes of runs that end: whole messages are delivered with their number, the others as far as it is proven
// where their packets belong, and what is neither is abandoned. The ring then says what later packets of them are.
#pragma once

#include <cstdint>

#include "assemble/message_table.hpp"
#include "roce/listener/connections.hpp"
#include "roce/listener/groups.hpp"
#include "roce/listener/message_numbers.hpp"
#include "roce/listener/runs.hpp"
#include "roce/message_header.hpp"

namespace weir::roce {

class Closing {
public:
    Closing(Connections& connections, Runs& runs, MessageNumbers& numbers, std::uint32_t runs_max,
            assemble::MessageTable& table)
        : connections_(connections), runs_(runs), numbers_(numbers), groups_(runs, runs_max), table_(table) {}

    /// The run has become a whole message: it is delivered, or waits for its number.
    void completed(std::uint32_t run, TimeNs now) noexcept;
    /// Nothing more is waited for: the message that the run belongs to ends.
    void close(std::uint32_t run, TimeNs now) noexcept;
    void close_all(Connection& connection, TimeNs now) noexcept;
    /// Its packets end in `counter`.
    void abandon(std::uint32_t run, wire::PacketCounter counter) noexcept;

    /// Numbers what has its turn now.
    void count_on(Connection& connection, TimeNs now) noexcept;
    /// How many messages lie before the next one can no longer be told: what waits for its number gets none.
    void lose_count(Connection& connection) noexcept;

private:
    void deliver_whole(std::uint32_t run, TimeNs now) noexcept;
    void start_counting(Connection& connection, TimeNs now) noexcept;
    void close_group(Connection& connection, const Group& group, TimeNs now) noexcept;
    void abandon_group(Connection& connection, const Group& group, wire::PacketCounter counter) noexcept;
    void deliver_group(Connection& connection, const Group& group, std::uint64_t number, TimeNs now) noexcept;
    [[nodiscard]] assemble::Message& merge_members(Connection& connection, const Group& group) noexcept;
    static void mark_ends(Connection& connection, const Run& run) noexcept;

    Connections& connections_;
    Runs& runs_;
    MessageNumbers& numbers_;
    GroupFinder groups_;
    assemble::MessageTable& table_;
    MessageHeader header_;
};

}  // namespace weir::roce
