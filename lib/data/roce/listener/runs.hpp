// Packets with consecutive PSNs become runs, and runs that meet become one, until a run has FIRST and LAST. Which PSN
// is in which run is written in the ring of its connection.
#pragma once

#include <cstdint>
#include <vector>

#include "assemble/message_table.hpp"
#include "roce/listener/connections.hpp"
#include "roce/listener/run.hpp"
#include "wire/roce.hpp"

namespace weir::roce {

class Runs {
public:
    /// `max` at once.
    Runs(std::uint32_t max, Connections& connections, assemble::MessageTable& table);
    Runs(const Runs&) = delete;
    Runs& operator=(const Runs&) = delete;

    [[nodiscard]] Run& operator[](std::uint32_t run) noexcept { return runs_[run]; }
    [[nodiscard]] const Run& operator[](std::uint32_t run) const noexcept { return runs_[run]; }
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
    void prefetch(std::uint32_t run) const noexcept {
        __builtin_prefetch(&runs_[run].message, 1);
        __builtin_prefetch(&runs_[run].of_connection, 1);  // may be in the next line
    }
    /// The one that was opened first, or no_run.
    [[nodiscard]] std::uint32_t oldest() const noexcept { return by_age_.first(); }

    /// Whether the cell says that a run of the connection begins at `begin`; or ends before `end`.
    [[nodiscard]] bool is_at(const Connection& connection, PsnCell cell, Psn begin) const noexcept {
        return cell.in_run() && is_of(connection, cell.run()) && runs_[cell.run()].begin == begin;
    }
    [[nodiscard]] bool is_before(const Connection& connection, PsnCell cell, Psn end) const noexcept {
        return cell.in_run() && is_of(connection, cell.run()) && runs_[cell.run()].end == end;
    }

    /// The runs that one packet joins.
    struct Neighbours {
        std::uint32_t left = no_run;
        std::uint32_t right = no_run;
        wire::Verdict verdict = wire::ok;
    };
    [[nodiscard]] Neighbours neighbours(const Connection& connection, Psn psn,
                                        const wire::RocePacket& packet) const noexcept;
    /// Takes a packet whose PSN has not been before into the run that it belongs to, which `run` then says. Anything
    /// but ok: nothing has changed.
    [[nodiscard]] wire::Verdict place(Connection& connection, Psn psn, const wire::RocePacket& packet, void* buffer,
                                      TimeNs now, std::uint32_t& run) noexcept;
    /// The run that a packet with this PSN goes on with, where it is the next MIDDLE or LAST of a message whose
    /// beginning is here, and nothing speaks against it; else no_run. `place` would put it there.
    [[nodiscard]] std::uint32_t continued(const Connection& connection, Psn psn,
                                          const wire::RocePacket& packet) const noexcept;
    /// Whether the connection has this run and no other.
    [[nodiscard]] bool is_alone(const Connection& connection, std::uint32_t run) const noexcept {
        return connection.runs.first() == run && runs_[run].of_connection.next == no_run;
    }
    /// Takes such a packet, for which the table has room.
    void go_on(std::uint32_t run, Connection& connection, Psn psn, const wire::RocePacket& packet, void* buffer,
               TimeNs now) noexcept;
    /// Gives up a run; its message is the caller's.
    void release(std::uint32_t run) noexcept;

    /// Until the start of a message is known, PSNs stand for the offsets of its references.
    static void set_offsets(assemble::Message& message, Psn start, std::uint32_t pmtu) noexcept;

private:
    [[nodiscard]] bool is_of(const Connection& connection, std::uint32_t run) const noexcept {
        return runs_[run].message != nullptr && runs_[run].connection == connection.slot;
    }
    [[nodiscard]] std::uint32_t open(Connection& connection, Psn psn, const wire::RocePacket& packet, void* buffer,
                                     TimeNs now) noexcept;
    void extend(std::uint32_t run, Psn psn, const wire::RocePacket& packet) noexcept;
    [[nodiscard]] std::uint32_t join(std::uint32_t left, std::uint32_t right) noexcept;

    Connections& connections_;
    assemble::MessageTable& table_;
    std::vector<Run> runs_;
    std::vector<std::uint32_t> free_;
    RunList<&Run::by_age> by_age_;
    std::uint32_t count_ = 0;
    std::uint64_t opened_ = 0;
};

}  // namespace weir::roce
