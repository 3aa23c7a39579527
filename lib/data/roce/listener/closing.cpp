#include "roce/listener/closing.hpp"

#include <algorithm>

namespace weir::roce {

using assemble::Message;
using assemble::RangeResult;
using wire::PacketCounter;
using wire::Verdict;

namespace {

/// Where later packets of an abandoned message are counted.
PacketCounter fate_after(PacketCounter counter) noexcept {
    return counter == PacketCounter::no_room || counter == PacketCounter::malformed_message_size ? counter
                                                                                                 : PacketCounter::late;
}

}  // namespace

// Of a message that was whole, every cell between its ends is taken and says duplicate already.
void Closing::mark_ends(Connection& connection, const Run& run) noexcept {
    const bool single = run.end - run.begin == 1;
    connection.ring.set(run.begin, PsnCell::closed(PacketCounter::duplicate, true, single));
    if (!single) connection.ring.set(run.end - 1, PsnCell::closed(PacketCounter::duplicate, false, true));
}

void Closing::abandon(std::uint32_t index, PacketCounter counter) noexcept {
    const Run& run = runs_[index];
    Connection& connection = connections_[run.connection];
    if (run.complete()) {
        mark_ends(connection, run);
    } else {
        const PacketCounter fate = fate_after(counter);
        connection.ring.fill(run.begin, run.end, PsnCell::closed(fate, false, false));
        if (run.has_first) connection.ring.set(run.begin, PsnCell::closed(fate, true, false));
        if (run.has_last) connection.ring.set(run.end - 1, PsnCell::closed(fate, false, true));
    }
    Message& message = *run.message;
    runs_.release(index);
    table_.abandon(message, counter);
}

void Closing::completed(std::uint32_t index, TimeNs now) noexcept {
    Connection& connection = connections_[runs_[index].connection];
    if (connection.config->number_by != NumberBy::count) return deliver_whole(index, now);
    if (!numbers_.counts(connection, now) || connection.count.lost ||
        (connection.count.begun && runs_[index].begin < connection.count.origin))
        return abandon(index, PacketCounter::unbound);
    if (!connection.count.begun) {
        if (MessageNumbers::is_time_to_start(connection)) start_counting(connection, now);
    } else if (MessageNumbers::by_psn(connection)) {
        deliver_whole(index, now);
    } else {
        count_on(connection, now);
    }
}

void Closing::deliver_whole(std::uint32_t index, TimeNs now) noexcept {
    const Run& run = runs_[index];
    Connection& connection = connections_[run.connection];
    const std::optional<std::uint64_t> given = numbers_.of_whole(run);
    if (!given) return abandon(index, PacketCounter::unbound);
    std::uint64_t number = *given;
    const std::uint64_t total = run.bytes();
    const std::uint32_t expected = connection.config->message_bytes;
    if ((run.is_write && total != run.dma_length) || (expected != 0 && total != expected))
        return abandon(index, PacketCounter::conflict);
    Message& message = *run.message;
    std::uint32_t header_bytes = 0;
    if (connection.config->number_by == NumberBy::format) {
        const Verdict verdict = header_.strip(*connection.config, message, total, number, header_bytes);
        if (verdict != wire::ok) return abandon(index, verdict);
    }
    mark_ends(connection, run);
    runs_.release(index);
    message.total = static_cast<std::uint32_t>(total) - header_bytes;
    message.total_known = message.complete = true;
    if (message.total > 0) static_cast<void>(table_.add_range(message, 0, message.total));
    table_.bind_and_deliver(message, number, now);
}

void Closing::start_counting(Connection& connection, TimeNs now) noexcept {
    if (!numbers_.start(connection)) return;
    if (!MessageNumbers::by_psn(connection)) return count_on(connection, now);
    for (std::uint32_t run = connection.runs.first(); run != no_run;) {
        const std::uint32_t next = runs_[run].of_connection.next;
        if (runs_[run].complete()) deliver_whole(run, now);
        run = next;
    }
}

void Closing::count_on(Connection& connection, TimeNs now) noexcept {
    for (std::uint32_t run = numbers_.next_whole(connection); run != no_run; run = numbers_.next_whole(connection))
        deliver_whole(run, now);
}

void Closing::lose_count(Connection& connection) noexcept {
    connection.count.lost = true;
    for (std::uint32_t run = connection.runs.first(); run != no_run;) {
        const std::uint32_t next = runs_[run].of_connection.next;
        if (runs_[run].complete()) abandon(run, PacketCounter::unbound);
        run = next;
    }
}

void Closing::close(std::uint32_t index, TimeNs now) noexcept {
    Connection& connection = connections_[runs_[index].connection];
    if (connection.config->number_by == NumberBy::count && numbers_.counts(connection, now)) {
        if (!connection.count.begun) start_counting(connection, now);
        while (numbers_.step_over_lost(connection)) count_on(connection, now);
        if (runs_[index].message == nullptr) return;
    }
    if (runs_[index].complete()) return lose_count(connection);  // it waited for something before it that never came
    close_group(connection, groups_.gather(connection, index), now);
}

void Closing::close_group(Connection& connection, const Group& group, TimeNs now) noexcept {
    const std::uint64_t total = groups_.total(connection, group);
    const bool total_known = total != GroupFinder::unknown;
    const std::uint32_t expected = connection.config->message_bytes;
    const bool wrong_total = group.start_known && total_known &&
                             ((expected != 0 && total != expected) ||
                              (group.is_write && group.head != no_run && total != runs_[group.head].dma_length));
    if (group.contradiction || wrong_total) {
        abandon_group(connection, group, PacketCounter::conflict);
    } else if (group.start_known && group.pmtu != 0) {
        const std::uint64_t span = static_cast<std::uint64_t>(group.end - group.start) * group.pmtu;
        if ((total_known ? total : span) > connection.config->max_message_bytes)
            abandon_group(connection, group, PacketCounter::malformed_message_size);
        else if (const auto number = numbers_.of_group(connection, group))
            deliver_group(connection, group, *number, now);
        else
            abandon_group(connection, group, PacketCounter::unbound);
    } else {
        abandon_group(connection, group, group.continues_closed ? PacketCounter::late : PacketCounter::unbound);
    }
    if (connection.config->number_by != NumberBy::count || expected != 0 || !connection.count.goes_on()) return;
    // Without a proven place in the order, how many messages lie before the next one can no longer be told.
    if (group.end > connection.count.next)
        lose_count(connection);
    else
        count_on(connection, now);
}

void Closing::abandon_group(Connection& connection, const Group& group, PacketCounter counter) noexcept {
    if (group.start_known && !group.contradiction) {
        Message& message = merge_members(connection, group);
        return table_.abandon(message, counter);
    }
    for (const std::uint32_t member : groups_.members()) abandon(member, counter);
}

void Closing::deliver_group(Connection& connection, const Group& group, std::uint64_t number, TimeNs now) noexcept {
    const std::uint64_t total = groups_.total(connection, group);
    const bool total_known = total != GroupFinder::unknown;
    // Ranges before the runs are gone; offsets are those before a header is stripped.
    Message& first = *runs_[groups_.members()[0]].message;
    bool fragmented = false;
    for (const std::uint32_t member : groups_.members()) {
        const Run& run = runs_[member];
        const auto begin = static_cast<std::uint32_t>(run.begin - group.start) * group.pmtu;
        auto end = static_cast<std::uint32_t>(run.end - group.start) * group.pmtu;
        if (run.has_last) end += run.last_bytes - group.pmtu;
        fragmented = fragmented || table_.add_range(first, begin, end) != RangeResult::added;
    }
    Message& message = merge_members(connection, group);
    if (fragmented) return table_.abandon(message, PacketCounter::too_fragmented);
    std::uint32_t header_bytes = 0;
    if (connection.config->number_by == NumberBy::format) {
        if (!total_known) return table_.abandon(message, PacketCounter::unbound);
        const Verdict verdict = header_.strip(*connection.config, message, total, number, header_bytes);
        if (verdict != wire::ok) return table_.abandon(message, verdict);
        MessageHeader::shift_ranges(message, header_bytes);
    }
    message.total_known = total_known;
    message.total = total_known ? static_cast<std::uint32_t>(total) - header_bytes : 0;
    message.complete = false;
    table_.bind_and_deliver(message, number, now);
}

/// The runs of the group become one message with final offsets, and their PSNs are closed. Only with a known start.
Message& Closing::merge_members(Connection& connection, const Group& group) noexcept {
    Message& into = *runs_[groups_.members()[0]].message;
    Psn end = group.end;
    for (const std::uint32_t member : groups_.members()) {
        const Run& run = runs_[member];
        Message& message = *run.message;
        if (!run.has_first) Runs::set_offsets(message, group.start, group.pmtu);
        end = std::max(end, run.end);
        runs_.release(member);
        if (&message != &into) table_.splice(into, message);
    }
    connection.ring.fill(group.start, end, PsnCell::closed(PacketCounter::late, false, false));
    connection.ring.set(group.start,
                        PsnCell::closed(PacketCounter::late, true, group.end_known && end - group.start == 1));
    if (group.end_known && end - group.start > 1)
        connection.ring.set(end - 1, PsnCell::closed(PacketCounter::late, false, true));
    return into;
}

void Closing::close_all(Connection& connection, TimeNs now) noexcept {
    while (connection.runs.first() != no_run) close(connection.runs.first(), now);
}

}  // namespace weir::roce
