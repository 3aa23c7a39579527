#include "roce/listener/message_numbers.hpp"

#include <algorithm>

#include "core/one_writer.hpp"

namespace weir::roce {

using wire::PacketCounter;

bool MessageNumbers::counts(Connection& connection, TimeNs now) noexcept {
    std::uint32_t& counted = connections_.source_of(connection).counted;
    if (counted == connection.slot) return true;
    if (counted != no_run && now - connections_.last_ns(counted) < timeout_ns_) return false;
    counted = connection.slot;
    connection.forget_count();
    return true;
}

void MessageNumbers::count_from(Connection& connection, std::uint32_t first_psn) noexcept {
    connections_.source_of(connection).counted = connection.slot;
    connection.forget_count();
    connection.count.begun = true;
    connection.count.origin = connection.count.next = connection.ring.extend(first_psn);
}

std::uint64_t MessageNumbers::counted(const Connection& connection, std::uint64_t local) noexcept {
    ListenedSource& source = connections_.source_of(connection);
    source.count_end = std::max(source.count_end, source.count_base + local + 1);
    return source.count_base + local;
}

/// Messages of one size lie a whole number of messages after the first.
std::optional<std::uint64_t> MessageNumbers::by_distance(Connection& connection, Psn begin, Psn end) noexcept {
    const Psn distance = begin - connection.count.origin;
    const Psn packets = end - begin;
    if (distance < 0 || distance % packets != 0) return std::nullopt;
    return counted(connection, static_cast<std::uint64_t>(distance / packets));
}

std::optional<std::uint64_t> MessageNumbers::of_whole(const Run& run) noexcept {
    Connection& connection = connections_[run.connection];
    switch (connection.config->number_by) {
        case NumberBy::immediate:
            if (run.has_immediate) return run.immediate;
            core::add(connections_.counts_of(connection).unnumbered, run.message->packets);
            return std::nullopt;
        case NumberBy::format:
            return 0;
        case NumberBy::arrival:
            return connections_.source_of(connection).next_arrival++;
        case NumberBy::count:
            break;
    }
    if (by_psn(connection)) return by_distance(connection, run.begin, run.end);
    connection.count.next = run.end;
    return counted(connection, connection.count.next_number++);
}

std::optional<std::uint64_t> MessageNumbers::of_group(Connection& connection, const Group& group) noexcept {
    switch (connection.config->number_by) {
        case NumberBy::immediate:
            if (group.tail == no_run || !runs_[group.tail].has_immediate) return std::nullopt;
            return runs_[group.tail].immediate;
        case NumberBy::format:
            return group.head != no_run ? std::optional<std::uint64_t>(0) : std::nullopt;
        case NumberBy::arrival:
            return connections_.source_of(connection).next_arrival++;
        case NumberBy::count:
            break;
    }
    if (!connection.count.goes_on()) return std::nullopt;
    if (connection.config->message_bytes != 0) return by_distance(connection, group.start, group.end);
    if (group.start != connection.count.next || !group.end_known) return std::nullopt;
    connection.count.next = group.end;
    return counted(connection, connection.count.next_number++);
}

bool MessageNumbers::start(Connection& connection) noexcept {
    Connection::Count& count = connection.count;
    bool found = false;
    for (std::uint32_t run = connection.runs.first(); run != no_run; run = runs_[run].of_connection.next) {
        if (!runs_[run].has_first || (found && runs_[run].begin >= count.origin)) continue;
        count.origin = runs_[run].begin;
        found = true;
    }
    if (!found) return false;
    count.begun = true;
    count.next = count.origin;
    return true;
}

std::uint32_t MessageNumbers::next_whole(Connection& connection) noexcept {
    Connection::Count& count = connection.count;
    if (by_psn(connection) || count.lost) return no_run;
    PsnCell cell = connection.ring.at(count.next);
    while (cell.is_skipped()) cell = connection.ring.at(++count.next);
    return runs_.is_at(connection, cell, count.next) && runs_[cell.run()].complete() ? cell.run() : no_run;
}

bool MessageNumbers::step_over_lost(Connection& connection) noexcept {
    Connection::Count& count = connection.count;
    if (by_psn(connection) || !count.goes_on()) return false;
    if (connections_.transport_of(connection) != wire::RoceTransport::uc) return false;
    const Psn lost = count.next;
    if (lost < connection.ring.oldest() || !connection.ring.at(lost).unknown()) return false;
    const PsnCell next = connection.ring.at(lost + 1);
    const bool starts =
        runs_.is_at(connection, next, lost + 1) ? runs_[next.run()].has_first : next.is_closed() && next.starts();
    if (!starts) return false;
    connection.ring.set(lost, PsnCell::closed(PacketCounter::late, true, true));
    ++count.next;
    ++count.next_number;
    return true;
}

}  // namespace weir::roce
