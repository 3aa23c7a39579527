#include "roce/listener/groups.hpp"

#include <algorithm>

namespace weir::roce {

namespace {

std::uint64_t packets_of(std::uint64_t bytes, std::uint32_t pmtu) noexcept {
    return std::max<std::uint64_t>(1, (bytes + pmtu - 1) / pmtu);
}

}  // namespace

Group GroupFinder::gather(const Connection& connection, std::uint32_t index) noexcept {
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
bool GroupFinder::place_by_count(const Connection& connection, Group& group) noexcept {
    const Run& run = runs_[members_[0]];
    if (!connection.count.begun || connection.count.lost || connection.config->message_bytes == 0 || run.has_first ||
        group.pmtu == 0 || run.begin < connection.count.origin)
        return false;
    const auto packets = static_cast<Psn>(packets_of(connection.config->message_bytes, group.pmtu));
    group.start = run.begin - (run.begin - connection.count.origin) % packets;
    group.start_known = true;
    return true;
}

/// Packets of the message, if something tells; else 0.
std::uint64_t GroupFinder::extent(const Connection& connection, const Group& group) const noexcept {
    if (group.pmtu == 0) return 0;
    if (connection.config->message_bytes != 0) return packets_of(connection.config->message_bytes, group.pmtu);
    return group.is_write && group.head != no_run ? packets_of(runs_[group.head].dma_length, group.pmtu) : 0;
}

void GroupFinder::gather_left(const Connection& connection, std::uint32_t index, Group& group) noexcept {
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
        const bool open = runs_.is_before(connection, cell, psn + 1);
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
Psn GroupFinder::end_of_write(const Connection& connection, std::uint32_t index, Psn limit) const noexcept {
    const Psn end = runs_[index].end;
    while (runs_[index].is_write && !runs_[index].has_first) {
        Psn psn = runs_[index].begin - 1;
        while (psn >= limit && connection.ring.at(psn).unknown()) --psn;
        const PsnCell cell = connection.ring.at(psn);
        if (psn < limit || !runs_.is_before(connection, cell, psn + 1) || runs_[cell.run()].has_last) return no_psn;
        index = cell.run();
    }
    const Run& head = runs_[index];
    if (!head.is_write || head.pmtu == 0) return no_psn;
    const Psn after = head.begin + static_cast<Psn>(packets_of(head.dma_length, head.pmtu));
    return after >= end ? after : no_psn;
}

void GroupFinder::gather_right(const Connection& connection, std::uint32_t index, Group& group) noexcept {
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
        const bool open = runs_.is_at(connection, cell, run.end + 1);
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
void GroupFinder::gather_extent(const Connection& connection, Group& group) noexcept {
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
    const Psn after = std::min(group.end, connection.ring.newest() + 1);
    for (Psn psn = std::max(group.start, connection.ring.oldest()); psn < after && !group.contradiction;) {
        const PsnCell cell = connection.ring.at(psn);
        if (!runs_.is_at(connection, cell, psn)) {
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

std::uint64_t GroupFinder::total(const Connection& connection, const Group& group) const noexcept {
    if (group.tail != no_run)
        return static_cast<std::uint64_t>(group.end - 1 - group.start) * group.pmtu + runs_[group.tail].last_bytes;
    if (connection.config->message_bytes != 0) return connection.config->message_bytes;
    if (group.is_write && group.head != no_run) return runs_[group.head].dma_length;
    return unknown;
}

}  // namespace weir::roce
