// Messages leave: whole ones with their number, the others as far as it is proven where their packets belong.
#include <algorithm>
#include <cstring>

#include "roce/listener.hpp"

namespace weir::roce {

using assemble::Message;
using assemble::MessageTable;
using assemble::RangeResult;
using core::PacketCounter;
using wire::Verdict;

namespace {

/// Where later packets of an abandoned message are counted.
PacketCounter fate_after(PacketCounter counter) noexcept {
    return counter == PacketCounter::no_room || counter == PacketCounter::malformed_message_size ? counter
                                                                                                 : PacketCounter::late;
}

std::uint64_t packets_of(std::uint64_t bytes, std::uint32_t pmtu) noexcept {
    return std::max<std::uint64_t>(1, (bytes + pmtu - 1) / pmtu);
}

/// The first `bytes` of the message are not part of it any more; they lie in its first range.
void shift_ranges(Message& message, std::uint32_t bytes) noexcept {
    assemble::ByteRange* ranges =
        message.more_ranges != nullptr ? message.more_ranges->ranges.data() : message.ranges.data();
    for (std::uint32_t i = 0; i < message.range_count; ++i)
        ranges[i] = {ranges[i].begin - std::min(ranges[i].begin, bytes), ranges[i].end - bytes};
    if (message.range_count > 0 && ranges[0].end == 0) {
        std::copy(ranges + 1, ranges + message.range_count, ranges);
        --message.range_count;
    }
}

}  // namespace

// Of a message that was whole, every cell between its ends is taken and says duplicate already.
void Listener::mark_ends(Connection& connection, const Run& run) noexcept {
    const bool single = run.end - run.begin == 1;
    connection.ring.set(run.begin, PsnCell::closed(PacketCounter::duplicate, true, single));
    if (!single) connection.ring.set(run.end - 1, PsnCell::closed(PacketCounter::duplicate, false, true));
}

void Listener::abandon(std::uint32_t index, PacketCounter counter) noexcept {
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
    release(index);
    table_.abandon(message, counter);
}

void Listener::completed(std::uint32_t index, TimeNs now) noexcept {
    Connection& connection = connections_[runs_[index].connection];
    if (connection.config->number_by != NumberBy::count) return number_complete(index, now);
    if (!counts(connection, now) || connection.count_lost ||
        (connection.counting && runs_[index].begin < connection.count_origin))
        return abandon(index, PacketCounter::unbound);
    if (!connection.counting) {
        if (++connection.whole >= (connection.config->in_order ? 1 : count_hold)) start_counting(connection, now);
    } else if (counts_by_psn(connection)) {
        number_complete(index, now);
    } else {
        count_on(connection, now);
    }
}

void Listener::number_complete(std::uint32_t index, TimeNs now) noexcept {
    const Run& run = runs_[index];
    Connection& connection = connections_[run.connection];
    switch (connection.config->number_by) {
        case NumberBy::immediate:
            if (!run.has_immediate) {
                PsnCounts::add(counts_of(connection).unnumbered, run.message->packets);
                return abandon(index, PacketCounter::unbound);
            }
            return deliver_complete(index, run.immediate, now);
        case NumberBy::format:
            return deliver_complete(index, 0, now);
        case NumberBy::arrival:
            return deliver_complete(index, sources_[connection.source].next_arrival++, now);
        case NumberBy::count:
            break;
    }
    if (!counts_by_psn(connection)) {
        connection.count_next = run.end;
        return deliver_complete(index, counted(connection, connection.next_number++), now);
    }
    const Psn distance = run.begin - connection.count_origin;
    const Psn packets = run.end - run.begin;
    if (distance < 0 || distance % packets != 0) return abandon(index, PacketCounter::unbound);
    deliver_complete(index, counted(connection, static_cast<std::uint64_t>(distance / packets)), now);
}

void Listener::deliver_complete(std::uint32_t index, std::uint64_t number, TimeNs now) noexcept {
    const Run& run = runs_[index];
    Connection& connection = connections_[run.connection];
    const std::uint64_t total = run.bytes();
    const std::uint32_t expected = connection.config->message_bytes;
    if ((run.is_write && total != run.dma_length) || (expected != 0 && total != expected))
        return abandon(index, PacketCounter::conflict);
    Message& message = *run.message;
    std::uint32_t header_bytes = 0;
    if (connection.config->number_by == NumberBy::format) {
        const Verdict verdict = strip_header(connection, message, total, number, header_bytes);
        if (verdict != wire::ok) return abandon(index, verdict);
    }
    mark_ends(connection, run);
    release(index);
    message.total = static_cast<std::uint32_t>(total) - header_bytes;
    message.total_known = message.complete = true;
    if (message.total > 0) static_cast<void>(table_.add_range(message, 0, message.total));
    table_.bind_and_deliver(message, number, now);
}

void Listener::start_counting(Connection& connection, TimeNs now) noexcept {
    bool found = false;
    for (std::uint32_t run = connection.runs.first(); run != no_run; run = runs_[run].of_connection.next) {
        if (!runs_[run].has_first || (found && runs_[run].begin >= connection.count_origin)) continue;
        connection.count_origin = runs_[run].begin;
        found = true;
    }
    if (!found) return;
    connection.counting = true;
    connection.count_next = connection.count_origin;
    if (!counts_by_psn(connection)) return count_on(connection, now);
    for (std::uint32_t run = connection.runs.first(); run != no_run;) {
        const std::uint32_t next = runs_[run].of_connection.next;
        if (runs_[run].complete()) number_complete(run, now);
        run = next;
    }
}

void Listener::count_on(Connection& connection, TimeNs now) noexcept {
    if (counts_by_psn(connection) || connection.count_lost) return;
    for (;;) {
        const PsnCell cell = connection.ring.at(connection.count_next);
        if (cell.is_skipped())
            ++connection.count_next;
        else if (is_run_at(connection, cell, connection.count_next) && runs_[cell.run()].complete())
            number_complete(cell.run(), now);
        else
            return;
    }
}

/// A single PSN between a message end and a message start was a whole message that is lost, so the count goes on after
/// it. Not on a reliable connection, where it may as well have been a READ.
void Listener::count_lost_only(Connection& connection, TimeNs now) noexcept {
    if (counts_by_psn(connection) || peers_[slot_of(connection)].transport != wire::RoceTransport::uc) return;
    while (connection.counting && !connection.count_lost) {
        const Psn lost = connection.count_next;
        if (lost < connection.ring.oldest() || !connection.ring.at(lost).unknown()) return;
        const PsnCell next = connection.ring.at(lost + 1);
        const bool starts =
            is_run_at(connection, next, lost + 1) ? runs_[next.run()].has_first : next.is_closed() && next.starts();
        if (!starts) return;
        connection.ring.set(lost, PsnCell::closed(PacketCounter::late, true, true));
        ++connection.count_next;
        ++connection.next_number;
        count_on(connection, now);
    }
}

void Listener::lose_count(Connection& connection) noexcept {
    connection.count_lost = true;
    for (std::uint32_t run = connection.runs.first(); run != no_run;) {
        const std::uint32_t next = runs_[run].of_connection.next;
        if (runs_[run].complete()) abandon(run, PacketCounter::unbound);
        run = next;
    }
}

void Listener::close(std::uint32_t index, TimeNs now) noexcept {
    Connection& connection = connections_[runs_[index].connection];
    if (connection.config->number_by == NumberBy::count && counts(connection, now)) {
        if (!connection.counting) start_counting(connection, now);
        count_lost_only(connection, now);
        if (runs_[index].message == nullptr) return;
    }
    if (runs_[index].complete()) return lose_count(connection);  // it waited for something before it that never came
    close_group(connection, gather(connection, index), now);
}

Listener::Group Listener::gather(const Connection& connection, std::uint32_t index) noexcept {
    Group group;
    const Run& run = runs_[index];
    group.is_write = run.is_write;
    group.pmtu = run.pmtu;
    if (group.pmtu == 0 && !connection.pmtu_varies && run.last_bytes <= connection.pmtu) group.pmtu = connection.pmtu;
    members_.clear();
    members_.push_back(index);
    if (!place_by_count(connection, group)) gather_left(connection, index, group);
    if (!group.start_known || extent(connection, group) == 0) gather_right(connection, index, group);
    if (!group.start_known && group.tail != no_run && group.pmtu != 0 && connection.config->message_bytes != 0) {
        group.start_known = true;
        group.start = group.end - static_cast<Psn>(packets_of(connection.config->message_bytes, group.pmtu));
    }
    if (group.start_known && extent(connection, group) != 0) gather_extent(connection, group);
    return group;
}

/// Where all messages have one size and are counted, every PSN has its place.
bool Listener::place_by_count(const Connection& connection, Group& group) noexcept {
    const Run& run = runs_[members_[0]];
    if (!connection.counting || connection.count_lost || connection.config->message_bytes == 0 || run.has_first ||
        group.pmtu == 0 || run.begin < connection.count_origin)
        return false;
    const auto packets = static_cast<Psn>(packets_of(connection.config->message_bytes, group.pmtu));
    group.start = run.begin - (run.begin - connection.count_origin) % packets;
    group.start_known = true;
    return true;
}

/// Packets of the message, if something tells; else 0.
std::uint64_t Listener::extent(const Connection& connection, const Group& group) const noexcept {
    if (group.pmtu == 0) return 0;
    if (connection.config->message_bytes != 0) return packets_of(connection.config->message_bytes, group.pmtu);
    return group.is_write && group.head != no_run ? packets_of(runs_[group.head].dma_length, group.pmtu) : 0;
}

void Listener::gather_left(const Connection& connection, std::uint32_t index, Group& group) noexcept {
    const Psn limit =
        std::max(connection.ring.oldest(),
                 runs_[index].begin - static_cast<Psn>(packets_of(connection.config->max_message_bytes, 256)));
    std::size_t proven = 1;  // members that belong together whatever the extent is
    bool by_extent = false;  // the others do if the extent says so
    bool asked = false;      // whether a WRITE ends before, which has one answer for all that is further to the left
    for (std::uint32_t at = index;;) {
        if (runs_[at].has_first) {
            group.start_known = true;
            group.start = runs_[at].begin;
            group.head = at;
            break;
        }
        Psn psn = runs_[at].begin - 1;
        while (psn >= limit && connection.ring.at(psn).unknown()) --psn;
        const Psn gap = runs_[at].begin - 1 - psn;
        const PsnCell cell = connection.ring.at(psn);
        const bool open = is_run_before(connection, cell, psn + 1);
        if (psn < limit || gap == 0 || (!open && !cell.is_closed())) break;
        Psn boundary = no_psn;  // the start of a message, not after this run
        if (open ? runs_[cell.run()].has_last : cell.ends())
            boundary = psn + 1;
        else if (open && gap > 1 && !asked)
            boundary = end_of_write(connection, cell.run(), limit);
        asked = asked || gap > 1;
        if (boundary != no_psn && boundary <= runs_[at].begin) {
            // One packet after it is missing, and was the FIRST of this message.
            group.start_known = runs_[at].begin - boundary == 1;
            group.start = boundary;
            break;
        }
        if (!open) {
            group.continues_closed = gap == 1;
            break;
        }
        const Run& left = runs_[cell.run()];
        const bool fits = group.pmtu != 0 ? left.pmtu == group.pmtu : left.pmtu >= runs_[at].last_bytes;
        if (left.is_write != group.is_write || !fits) break;
        group.pmtu = left.pmtu;
        by_extent = by_extent || gap > 1;
        at = cell.run();
        members_.push_back(at);
        if (!by_extent) proven = members_.size();
    }
    if (!by_extent) return;
    if (group.start_known && group.start + static_cast<Psn>(extent(connection, group)) >= runs_[index].end) return;
    members_.resize(proven);
    group.start_known = group.continues_closed = false;
    group.head = no_run;
    group.pmtu = runs_[members_.back()].pmtu;
}

/// One after the end of the WRITE that `index` belongs to, if its FIRST tells; else no_psn.
Psn Listener::end_of_write(const Connection& connection, std::uint32_t index, Psn limit) const noexcept {
    const Psn end = runs_[index].end;
    while (runs_[index].is_write && !runs_[index].has_first) {
        Psn psn = runs_[index].begin - 1;
        while (psn >= limit && connection.ring.at(psn).unknown()) --psn;
        const PsnCell cell = connection.ring.at(psn);
        if (psn < limit || !is_run_before(connection, cell, psn + 1) || runs_[cell.run()].has_last) return no_psn;
        index = cell.run();
    }
    const Run& head = runs_[index];
    if (!head.is_write || head.pmtu == 0) return no_psn;
    const Psn behind = head.begin + static_cast<Psn>(packets_of(head.dma_length, head.pmtu));
    return behind >= end ? behind : no_psn;
}

void Listener::gather_right(const Connection& connection, std::uint32_t index, Group& group) noexcept {
    for (std::uint32_t at = index;;) {
        const Run& run = runs_[at];
        group.end = run.end;
        if (run.has_last) {
            group.end_known = true;
            group.tail = at;
            return;
        }
        if (!connection.ring.at(run.end).unknown()) return;
        const PsnCell cell = connection.ring.at(run.end + 1);
        const bool open = is_run_at(connection, cell, run.end + 1);
        if (open ? runs_[cell.run()].has_first : cell.is_closed() && cell.starts()) {
            group.end = run.end + 1;  // a message starts there, so the one packet between was the LAST of this one
            group.end_known = true;
            return;
        }
        if (!open) return;
        const Run& right = runs_[cell.run()];
        const bool fits = right.pmtu != 0 ? right.pmtu == group.pmtu : right.last_bytes <= group.pmtu;
        if (right.is_write != group.is_write || !fits) return;
        at = cell.run();
        members_.push_back(at);
    }
}

/// Start and extent are known: whatever lies inside belongs to the message, or contradicts it.
void Listener::gather_extent(const Connection& connection, Group& group) noexcept {
    group.end = group.start + static_cast<Psn>(extent(connection, group));
    group.end_known = true;
    const std::uint32_t head = group.head;
    group.head = group.tail = no_run;
    members_.resize(1);
    const auto check = [&](std::uint32_t index) {
        const Run& run = runs_[index];
        if (run.has_first) group.head = index;
        if (run.has_last) group.tail = index;
        const bool fits = run.pmtu != 0 ? run.pmtu == group.pmtu : run.last_bytes <= group.pmtu;
        if (run.begin < group.start || run.end > group.end || run.is_write != group.is_write || !fits ||
            (run.has_first && run.begin != group.start) || run.has_last != (run.end == group.end))
            group.contradiction = true;
    };
    check(members_[0]);
    if (head != no_run && head != members_[0]) {  // its start may have left the ring
        check(head);
        members_.push_back(head);
    }
    const Psn behind = std::min(group.end, connection.ring.newest() + 1);
    for (Psn psn = std::max(group.start, connection.ring.oldest()); psn < behind && !group.contradiction;) {
        const PsnCell cell = connection.ring.at(psn);
        if (!is_run_at(connection, cell, psn)) {
            if (cell.is_closed() && !cell.is_skipped() &&
                ((cell.starts() && psn != group.start) || (cell.ends() && psn != group.end - 1)))
                group.contradiction = true;
            ++psn;
            continue;
        }
        psn = runs_[cell.run()].end;
        if (cell.run() == members_[0] || cell.run() == head) continue;
        check(cell.run());
        // What contradicts has a fate of its own.
        if (!group.contradiction) members_.push_back(cell.run());
    }
}

/// Bytes of the message, or ~0 if nothing tells.
std::uint64_t Listener::group_total(const Connection& connection, const Group& group) const noexcept {
    if (group.tail != no_run)
        return static_cast<std::uint64_t>(group.end - 1 - group.start) * group.pmtu + runs_[group.tail].last_bytes;
    if (connection.config->message_bytes != 0) return connection.config->message_bytes;
    if (group.is_write && group.head != no_run) return runs_[group.head].dma_length;
    return ~std::uint64_t{0};
}

bool Listener::group_number(Connection& connection, const Group& group, std::uint64_t& number) noexcept {
    switch (connection.config->number_by) {
        case NumberBy::immediate:
            if (group.tail == no_run || !runs_[group.tail].has_immediate) return false;
            number = runs_[group.tail].immediate;
            return true;
        case NumberBy::format:
            return group.head != no_run;
        case NumberBy::arrival:
            number = sources_[connection.source].next_arrival++;
            return true;
        case NumberBy::count:
            break;
    }
    if (!connection.counting || connection.count_lost) return false;
    if (connection.config->message_bytes != 0) {
        const Psn distance = group.start - connection.count_origin;
        const Psn packets = group.end - group.start;
        if (distance < 0 || distance % packets != 0) return false;
        number = counted(connection, static_cast<std::uint64_t>(distance / packets));
        return true;
    }
    if (group.start != connection.count_next || !group.end_known) return false;
    number = counted(connection, connection.next_number++);
    connection.count_next = group.end;
    return true;
}

void Listener::close_group(Connection& connection, const Group& group, TimeNs now) noexcept {
    const std::uint64_t total = group_total(connection, group);
    const bool total_known = total != ~std::uint64_t{0};
    const std::uint32_t expected = connection.config->message_bytes;
    const bool wrong_total = group.start_known && total_known &&
                             ((expected != 0 && total != expected) ||
                              (group.is_write && group.head != no_run && total != runs_[group.head].dma_length));
    std::uint64_t number = 0;
    if (group.contradiction || wrong_total) {
        abandon_group(connection, group, PacketCounter::conflict);
    } else if (group.start_known && group.pmtu != 0) {
        const std::uint64_t span = static_cast<std::uint64_t>(group.end - group.start) * group.pmtu;
        if ((total_known ? total : span) > connection.config->max_message_bytes)
            abandon_group(connection, group, PacketCounter::malformed_message_size);
        else if (group_number(connection, group, number))
            deliver_group(connection, group, number, now);
        else
            abandon_group(connection, group, PacketCounter::unbound);
    } else {
        abandon_group(connection, group, group.continues_closed ? PacketCounter::late : PacketCounter::unbound);
    }
    if (connection.config->number_by != NumberBy::count || expected != 0 || !connection.counting ||
        connection.count_lost)
        return;
    // Without a proven place in the order, how many messages lie before the next one can no longer be told.
    if (group.end > connection.count_next)
        lose_count(connection);
    else
        count_on(connection, now);
}

void Listener::abandon_group(Connection& connection, const Group& group, PacketCounter counter) noexcept {
    if (group.start_known && !group.contradiction) {
        Message& message = merge_members(connection, group);
        return table_.abandon(message, counter);
    }
    for (const std::uint32_t member : members_) abandon(member, counter);
}

void Listener::deliver_group(Connection& connection, const Group& group, std::uint64_t number, TimeNs now) noexcept {
    const std::uint64_t total = group_total(connection, group);
    const bool total_known = total != ~std::uint64_t{0};
    // Ranges before the runs are gone; offsets are those before a header is stripped.
    Message& first = *runs_[members_[0]].message;
    bool fragmented = false;
    for (const std::uint32_t member : members_) {
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
        const Verdict verdict = strip_header(connection, message, total, number, header_bytes);
        if (verdict != wire::ok) return table_.abandon(message, verdict);
        shift_ranges(message, header_bytes);
    }
    message.total_known = total_known;
    message.total = total_known ? static_cast<std::uint32_t>(total) - header_bytes : 0;
    message.complete = false;
    table_.bind_and_deliver(message, number, now);
}

/// The runs of the group become one message with final offsets, and their PSNs are closed. Only with a known start.
Message& Listener::merge_members(Connection& connection, const Group& group) noexcept {
    Message& into = *runs_[members_[0]].message;
    Psn end = group.end;
    for (const std::uint32_t member : members_) {
        const Run& run = runs_[member];
        Message& message = *run.message;
        if (!run.has_first) set_offsets(message, group.start, group.pmtu);
        end = std::max(end, run.end);
        release(member);
        if (&message != &into) table_.splice(into, message);
    }
    connection.ring.fill(group.start, end, PsnCell::closed(PacketCounter::late, false, false));
    connection.ring.set(group.start,
                        PsnCell::closed(PacketCounter::late, true, group.end_known && end - group.start == 1));
    if (group.end_known && end - group.start > 1)
        connection.ring.set(end - 1, PsnCell::closed(PacketCounter::late, false, true));
    return into;
}

/// Reads the detector header at the start of a message of `total` bytes and takes it out of references and ranges.
Verdict Listener::strip_header(const Connection& connection, Message& message, std::uint64_t total,
                               std::uint64_t& number, std::uint32_t& header_bytes) noexcept {
    const wire::FormatContext& context = connection.config->context;
    const auto wanted =
        static_cast<std::uint32_t>(std::min<std::uint64_t>({total, context.header_read_bytes, header_.size()}));
    std::uint32_t there = 0;
    MessageTable::for_each_ref(message, [&](const assemble::FragmentRef& ref) {
        if (ref.offset >= wanted) return;
        const std::uint32_t bytes = std::min(ref.bytes, wanted - ref.offset);
        std::memcpy(header_.data() + ref.offset, ref.data, bytes);
        there += bytes;
    });
    if (there != wanted) return Verdict::unbound;
    const wire::Datagram datagram{.payload = header_.data(), .payload_bytes = static_cast<std::uint32_t>(total)};
    wire::Fragment fragment;
    Verdict verdict = Verdict::malformed_header;
    connection.config->format->decode_burst(context, {&datagram, 1}, &fragment, &verdict);
    if (verdict != wire::ok) return verdict;
    // Here an RDMA message is a whole message. One that brings a part of it has no place.
    if (fragment.offset != 0 || (fragment.total_known && fragment.total != fragment.bytes)) return Verdict::unbound;
    number = fragment.number;
    header_bytes = fragment.header_bytes;
    message.meta_bytes = static_cast<std::uint8_t>(std::min<std::uint32_t>(header_bytes, Message::meta_bytes_max));
    std::memcpy(message.meta.data(), header_.data(), message.meta_bytes);
    MessageTable::for_each_ref(message, [&](assemble::FragmentRef& ref) {
        const std::uint32_t cut = ref.offset < header_bytes ? std::min(ref.bytes, header_bytes - ref.offset) : 0;
        ref.data += cut;
        ref.bytes -= cut;
        ref.offset = ref.offset + cut - std::min(ref.offset + cut, header_bytes);
    });
    message.received_bytes -= header_bytes;
    return wire::ok;
}

}  // namespace weir::roce
