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
void Listener::mark_ends(Source& source, const Run& run) noexcept {
    const bool single = run.end - run.begin == 1;
    source.ring.set(run.begin, PsnCell::closed(PacketCounter::duplicate, true, single));
    if (!single) source.ring.set(run.end - 1, PsnCell::closed(PacketCounter::duplicate, false, true));
}

void Listener::abandon(std::uint32_t index, PacketCounter counter) noexcept {
    const Run& run = runs_[index];
    Source& source = sources_[run.source];
    if (run.complete()) {
        mark_ends(source, run);
    } else {
        const PacketCounter fate = fate_after(counter);
        source.ring.fill(run.begin, run.end, PsnCell::closed(fate, false, false));
        if (run.has_first) source.ring.set(run.begin, PsnCell::closed(fate, true, false));
        if (run.has_last) source.ring.set(run.end - 1, PsnCell::closed(fate, false, true));
    }
    Message& message = *run.message;
    release(index);
    table_.abandon(message, counter);
}

void Listener::completed(std::uint32_t index, TimeNs now) noexcept {
    Source& source = sources_[runs_[index].source];
    if (source.config.number_by != NumberBy::count) return number_complete(index, now);
    if (source.count_lost || (source.counting && runs_[index].begin < source.count_origin))
        return abandon(index, PacketCounter::unbound);
    if (!source.counting) {
        if (++source.whole >= count_hold) start_counting(source, now);
    } else if (source.config.message_bytes != 0) {
        number_complete(index, now);
    } else {
        count_on(source, now);
    }
}

void Listener::number_complete(std::uint32_t index, TimeNs now) noexcept {
    const Run& run = runs_[index];
    Source& source = sources_[run.source];
    switch (source.config.number_by) {
        case NumberBy::immediate:
            if (!run.has_immediate) return abandon(index, PacketCounter::unbound);
            return deliver_complete(index, run.immediate, now);
        case NumberBy::format:
            return deliver_complete(index, 0, now);
        case NumberBy::arrival:
            return deliver_complete(index, source.next_number++, now);
        case NumberBy::count:
            break;
    }
    if (source.config.message_bytes == 0) {
        source.count_next = run.end;
        return deliver_complete(index, source.next_number++, now);
    }
    const Psn distance = run.begin - source.count_origin;
    const Psn packets = run.end - run.begin;
    if (distance < 0 || distance % packets != 0) return abandon(index, PacketCounter::unbound);
    deliver_complete(index, static_cast<std::uint64_t>(distance / packets), now);
}

void Listener::deliver_complete(std::uint32_t index, std::uint64_t number, TimeNs now) noexcept {
    const Run& run = runs_[index];
    Source& source = sources_[run.source];
    const std::uint64_t total = run.bytes();
    const std::uint32_t expected = source.config.message_bytes;
    if ((run.is_write && total != run.dma_length) || (expected != 0 && total != expected))
        return abandon(index, PacketCounter::conflict);
    Message& message = *run.message;
    std::uint32_t header_bytes = 0;
    if (source.config.number_by == NumberBy::format) {
        const Verdict verdict = strip_header(source, message, total, number, header_bytes);
        if (verdict != wire::ok) return abandon(index, verdict);
    }
    mark_ends(source, run);
    release(index);
    message.total = static_cast<std::uint32_t>(total) - header_bytes;
    message.total_known = message.complete = true;
    if (message.total > 0) static_cast<void>(table_.add_range(message, 0, message.total));
    table_.bind_and_deliver(message, number, now);
}

void Listener::start_counting(Source& source, TimeNs now) noexcept {
    bool found = false;
    for (std::uint32_t run = source.runs.first(); run != no_run; run = runs_[run].of_source.next) {
        if (!runs_[run].has_first || (found && runs_[run].begin >= source.count_origin)) continue;
        source.count_origin = runs_[run].begin;
        found = true;
    }
    if (!found) return;
    source.counting = true;
    source.count_next = source.count_origin;
    if (source.config.message_bytes == 0) return count_on(source, now);
    for (std::uint32_t run = source.runs.first(); run != no_run;) {
        const std::uint32_t next = runs_[run].of_source.next;
        if (runs_[run].complete()) number_complete(run, now);
        run = next;
    }
}

void Listener::count_on(Source& source, TimeNs now) noexcept {
    if (source.config.message_bytes != 0 || source.count_lost) return;
    for (;;) {
        const PsnCell cell = source.ring.at(source.count_next);
        if (cell.is_skipped())
            ++source.count_next;
        else if (is_run_at(source, cell, source.count_next) && runs_[cell.run()].complete())
            number_complete(cell.run(), now);
        else
            return;
    }
}

void Listener::lose_count(Source& source) noexcept {
    source.count_lost = true;
    for (std::uint32_t run = source.runs.first(); run != no_run;) {
        const std::uint32_t next = runs_[run].of_source.next;
        if (runs_[run].complete()) abandon(run, PacketCounter::unbound);
        run = next;
    }
}

void Listener::close(std::uint32_t index, TimeNs now) noexcept {
    Source& source = sources_[runs_[index].source];
    if (source.config.number_by == NumberBy::count && !source.counting) {
        start_counting(source, now);
        if (runs_[index].message == nullptr) return;
    }
    if (runs_[index].complete()) return lose_count(source);  // it waited for something before it that never came
    close_group(source, gather(source, index), now);
}

Listener::Group Listener::gather(const Source& source, std::uint32_t index) noexcept {
    Group group;
    const Run& run = runs_[index];
    group.is_write = run.is_write;
    group.pmtu = run.pmtu;
    members_.clear();
    members_.push_back(index);
    gather_left(source, index, group);
    if (!group.start_known || extent(source, group) == 0) gather_right(source, index, group);
    if (!group.start_known && group.tail != no_run && group.pmtu != 0 && source.config.message_bytes != 0) {
        group.start_known = true;
        group.start = group.end - static_cast<Psn>(packets_of(source.config.message_bytes, group.pmtu));
    }
    if (group.start_known && extent(source, group) != 0) gather_extent(source, group);
    return group;
}

/// Packets of the message, if something tells; else 0.
std::uint64_t Listener::extent(const Source& source, const Group& group) const noexcept {
    if (group.pmtu == 0) return 0;
    if (source.config.message_bytes != 0) return packets_of(source.config.message_bytes, group.pmtu);
    return group.is_write && group.head != no_run ? packets_of(runs_[group.head].dma_length, group.pmtu) : 0;
}

void Listener::gather_left(const Source& source, std::uint32_t index, Group& group) noexcept {
    const Psn limit = std::max(source.ring.oldest(),
                               runs_[index].begin - static_cast<Psn>(packets_of(source.config.max_message_bytes, 256)));
    std::size_t proven = 1;  // members that belong together whatever the extent is
    bool by_extent = false;  // the others do if the extent says so
    for (std::uint32_t at = index;;) {
        if (runs_[at].has_first) {
            group.start_known = true;
            group.start = runs_[at].begin;
            group.head = at;
            break;
        }
        Psn psn = runs_[at].begin - 1;
        while (psn >= limit && source.ring.at(psn).unknown()) --psn;
        const Psn gap = runs_[at].begin - 1 - psn;
        const PsnCell cell = source.ring.at(psn);
        const bool open = is_run_before(source, cell, psn + 1);
        if (psn < limit || gap == 0 || (!open && !cell.is_closed())) break;
        if (open ? runs_[cell.run()].has_last : cell.ends()) {
            // A message ends there, so the one packet between was the FIRST of this one.
            group.start_known = gap == 1;
            group.start = psn + 1;
            break;
        }
        if (!open) break;
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
    if (group.start_known && group.start + static_cast<Psn>(extent(source, group)) >= runs_[index].end) return;
    members_.resize(proven);
    group.start_known = false;
    group.head = no_run;
    group.pmtu = runs_[members_.back()].pmtu;
}

void Listener::gather_right(const Source& source, std::uint32_t index, Group& group) noexcept {
    for (std::uint32_t at = index;;) {
        const Run& run = runs_[at];
        group.end = run.end;
        if (run.has_last) {
            group.end_known = true;
            group.tail = at;
            return;
        }
        if (!source.ring.at(run.end).unknown()) return;
        const PsnCell cell = source.ring.at(run.end + 1);
        const bool open = is_run_at(source, cell, run.end + 1);
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
void Listener::gather_extent(const Source& source, Group& group) noexcept {
    group.end = group.start + static_cast<Psn>(extent(source, group));
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
    const Psn behind = std::min(group.end, source.ring.newest() + 1);
    for (Psn psn = std::max(group.start, source.ring.oldest()); psn < behind && !group.contradiction;) {
        const PsnCell cell = source.ring.at(psn);
        if (!is_run_at(source, cell, psn)) {
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
std::uint64_t Listener::group_total(const Source& source, const Group& group) const noexcept {
    if (group.tail != no_run)
        return static_cast<std::uint64_t>(group.end - 1 - group.start) * group.pmtu + runs_[group.tail].last_bytes;
    if (source.config.message_bytes != 0) return source.config.message_bytes;
    if (group.is_write && group.head != no_run) return runs_[group.head].dma_length;
    return ~std::uint64_t{0};
}

bool Listener::group_number(Source& source, const Group& group, std::uint64_t& number) noexcept {
    switch (source.config.number_by) {
        case NumberBy::immediate:
            if (group.tail == no_run || !runs_[group.tail].has_immediate) return false;
            number = runs_[group.tail].immediate;
            return true;
        case NumberBy::format:
            return group.head != no_run;
        case NumberBy::arrival:
            number = source.next_number++;
            return true;
        case NumberBy::count:
            break;
    }
    if (!source.counting || source.count_lost) return false;
    if (source.config.message_bytes != 0) {
        const Psn distance = group.start - source.count_origin;
        const Psn packets = group.end - group.start;
        number = static_cast<std::uint64_t>(distance / packets);
        return distance >= 0 && distance % packets == 0;
    }
    if (group.start != source.count_next || !group.end_known) return false;
    number = source.next_number++;
    source.count_next = group.end;
    return true;
}

void Listener::close_group(Source& source, const Group& group, TimeNs now) noexcept {
    const std::uint64_t total = group_total(source, group);
    const bool total_known = total != ~std::uint64_t{0};
    const std::uint32_t expected = source.config.message_bytes;
    const bool wrong_total = group.start_known && total_known &&
                             ((expected != 0 && total != expected) ||
                              (group.is_write && group.head != no_run && total != runs_[group.head].dma_length));
    std::uint64_t number = 0;
    if (group.contradiction || wrong_total) {
        abandon_group(source, group, PacketCounter::conflict);
    } else if (group.start_known && group.pmtu != 0) {
        const std::uint64_t span = static_cast<std::uint64_t>(group.end - group.start) * group.pmtu;
        if ((total_known ? total : span) > source.config.max_message_bytes)
            abandon_group(source, group, PacketCounter::malformed_message_size);
        else if (group_number(source, group, number))
            deliver_group(source, group, number, now);
        else
            abandon_group(source, group, PacketCounter::unbound);
    } else {
        abandon_group(source, group, PacketCounter::unbound);
    }
    if (source.config.number_by != NumberBy::count || expected != 0 || !source.counting || source.count_lost) return;
    // Without a proven place in the order, how many messages lie before the next one can no longer be told.
    if (group.end > source.count_next)
        lose_count(source);
    else
        count_on(source, now);
}

void Listener::abandon_group(Source& source, const Group& group, PacketCounter counter) noexcept {
    if (group.start_known && !group.contradiction) {
        Message& message = merge_members(source, group);
        return table_.abandon(message, counter);
    }
    for (const std::uint32_t member : members_) abandon(member, counter);
}

void Listener::deliver_group(Source& source, const Group& group, std::uint64_t number, TimeNs now) noexcept {
    const std::uint64_t total = group_total(source, group);
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
    Message& message = merge_members(source, group);
    if (fragmented) return table_.abandon(message, PacketCounter::too_fragmented);
    std::uint32_t header_bytes = 0;
    if (source.config.number_by == NumberBy::format) {
        if (!total_known) return table_.abandon(message, PacketCounter::unbound);
        const Verdict verdict = strip_header(source, message, total, number, header_bytes);
        if (verdict != wire::ok) return table_.abandon(message, verdict);
        shift_ranges(message, header_bytes);
    }
    message.total_known = total_known;
    message.total = total_known ? static_cast<std::uint32_t>(total) - header_bytes : 0;
    message.complete = false;
    table_.bind_and_deliver(message, number, now);
}

/// The runs of the group become one message with final offsets, and their PSNs are closed. Only with a known start.
Message& Listener::merge_members(Source& source, const Group& group) noexcept {
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
    source.ring.fill(group.start, end, PsnCell::closed(PacketCounter::late, false, false));
    source.ring.set(group.start, PsnCell::closed(PacketCounter::late, true, group.end_known && end - group.start == 1));
    if (group.end_known && end - group.start > 1)
        source.ring.set(end - 1, PsnCell::closed(PacketCounter::late, false, true));
    return into;
}

/// Reads the detector header at the start of a message of `total` bytes and takes it out of references and ranges.
Verdict Listener::strip_header(const Source& source, Message& message, std::uint64_t total, std::uint64_t& number,
                               std::uint32_t& header_bytes) noexcept {
    const wire::FormatContext& context = source.config.context;
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
    source.config.format->decode_burst(context, {&datagram, 1}, &fragment, &verdict);
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
