#include "roce/listener/runs.hpp"

#include <algorithm>

namespace weir::roce {

using assemble::Message;
using assemble::MessageTable;
using wire::PacketCounter;
using wire::RocePacket;
using wire::RocePlace;
using wire::Verdict;

Runs::Runs(std::uint32_t max, Connections& connections, MessageTable& table)
    : connections_(connections), table_(table), runs_(max) {
    free_.reserve(max);
    for (std::uint32_t i = max; i-- > 0;) free_.push_back(i);
}

Runs::Neighbours Runs::neighbours(const Connection& connection, Psn psn, const RocePacket& packet) const noexcept {
    Neighbours out;
    if (!packet.starts()) {
        const PsnCell cell = connection.ring.at(psn - 1);
        if (cell.is_closed() && !cell.ends()) {
            out.verdict = cell.fate();  // the message that this packet continues has ended
        } else if (is_before(connection, cell, psn)) {
            const Run& left = runs_[cell.run()];
            if (!left.has_last && left.is_write == packet.is_write) {
                const bool fits =
                    packet.place == RocePlace::middle ? packet.bytes == left.pmtu : packet.bytes <= left.pmtu;
                if (!fits) out.verdict = Verdict::conflict;
                out.left = cell.run();
            }
        }
    }
    if (!packet.ends()) {
        const PsnCell cell = connection.ring.at(psn + 1);
        if (cell.is_closed() && !cell.starts()) {
            if (out.verdict == wire::ok) out.verdict = cell.fate();
        } else if (is_at(connection, cell, psn + 1)) {
            const Run& right = runs_[cell.run()];
            const bool fits = right.pmtu != 0 ? packet.bytes == right.pmtu : packet.bytes >= right.last_bytes;
            if (!right.has_first && right.is_write == packet.is_write && fits) out.right = cell.run();
        }
    }
    return out;
}

Verdict Runs::place(Connection& connection, Psn psn, const RocePacket& packet, void* buffer, TimeNs now,
                    std::uint32_t& run) noexcept {
    // Everything that can refuse the packet comes first.
    const Neighbours near = neighbours(connection, psn, packet);
    if (near.verdict != wire::ok) return near.verdict;
    std::uint64_t bytes = packet.bytes;
    if (near.left != no_run) bytes += runs_[near.left].message->received_bytes;
    if (near.right != no_run) bytes += runs_[near.right].message->received_bytes;
    if (packet.is_write && packet.starts()) bytes = std::max<std::uint64_t>(bytes, packet.dma_length);
    if (bytes > connection.config->max_message_bytes) return Verdict::malformed_message_size;

    run = near.left != no_run ? near.left : near.right;
    if (run == no_run) {
        run = open(connection, psn, packet, buffer, now);
        if (run == no_run) return Verdict::no_room;
    } else {
        const Run& into = runs_[run];
        // Until the start is known the PSN itself stands for the offset.
        const std::uint32_t offset =
            into.has_first ? static_cast<std::uint32_t>(psn - into.begin) * into.pmtu : static_cast<std::uint32_t>(psn);
        if (!table_.append(*into.message, buffer, packet.payload, offset, packet.bytes, now)) return Verdict::no_room;
        extend(run, psn, packet);
        if (near.left != no_run && near.right != no_run) run = join(near.left, near.right);
    }
    const Run& grown = runs_[run];
    connection.ring.set(psn, PsnCell::of_run(run));
    connection.ring.set(grown.begin, PsnCell::of_run(run));
    connection.ring.set(grown.end - 1, PsnCell::of_run(run));
    if (packet.ends())
        ++connection.ends;
    else
        connection.note_pmtu(packet.bytes);
    return wire::ok;
}

std::uint32_t Runs::continued(const Connection& connection, Psn psn, const RocePacket& packet) const noexcept {
    if (packet.starts() || packet.bytes == 0) return no_run;
    const PsnCell before = connection.ring.at(psn - 1);
    if (!is_before(connection, before, psn) || !connection.ring.at(psn).unknown()) return no_run;
    if (!packet.ends() && !connection.ring.at(psn + 1).unknown()) return no_run;
    const Run& left = runs_[before.run()];
    const bool fits = packet.ends() ? packet.bytes <= left.pmtu : packet.bytes == left.pmtu;
    if (!left.has_first || left.has_last || left.is_write != packet.is_write || !fits) return no_run;
    const std::uint64_t bytes = std::uint64_t{left.message->received_bytes} + packet.bytes;
    return bytes <= connection.config->max_message_bytes ? before.run() : no_run;
}

void Runs::go_on(std::uint32_t run, Connection& connection, Psn psn, const RocePacket& packet, void* buffer,
                 TimeNs now) noexcept {
    Run& into = runs_[run];
    static_cast<void>(table_.append(*into.message, buffer, packet.payload,
                                    static_cast<std::uint32_t>(psn - into.begin) * into.pmtu, packet.bytes, now));
    into.end = psn + 1;
    connection.ring.set(psn, PsnCell::of_run(run));  // that of its begin says so already
    if (!packet.ends()) return connection.note_pmtu(packet.bytes);
    into.set_last(packet);
    ++connection.ends;
}

std::uint32_t Runs::open(Connection& connection, Psn psn, const RocePacket& packet, void* buffer, TimeNs now) noexcept {
    if (free_.empty() || table_.buffers_held() >= table_.buffers_max()) return no_run;
    Message* message = table_.open_unbound(connection.config->source, now);
    if (message == nullptr) return no_run;
    const std::uint32_t offset = packet.starts() ? 0 : static_cast<std::uint32_t>(psn);
    if (!table_.append(*message, buffer, packet.payload, offset, packet.bytes, now)) {
        table_.abandon(*message, PacketCounter::no_room);
        return no_run;
    }
    const std::uint32_t run = free_.back();
    free_.pop_back();
    ++count_;
    runs_[run] = Run{};
    Run& fresh = runs_[run];
    fresh.message = message;
    fresh.begin = psn;
    fresh.end = psn + 1;
    fresh.connection = connection.slot;
    fresh.is_write = packet.is_write;
    fresh.has_first = packet.starts();
    fresh.first_ns = now;
    fresh.opened = opened_++;
    fresh.ends_before = connection.ends;
    if (packet.place != RocePlace::last) fresh.pmtu = packet.bytes;
    if (fresh.has_first) fresh.dma_length = packet.dma_length;
    if (packet.ends()) fresh.set_last(packet);
    by_age_.push_back(runs_, run);
    connection.runs.push_back(runs_, run);
    return run;
}

void Runs::extend(std::uint32_t index, Psn psn, const RocePacket& packet) noexcept {
    Run& run = runs_[index];
    (psn < run.begin ? run.begin : run.end) = psn < run.begin ? psn : psn + 1;
    if (packet.place == RocePlace::last) {
        run.set_last(packet);
        return;
    }
    run.pmtu = packet.bytes;
    if (packet.place == RocePlace::first) {
        run.has_first = true;
        run.dma_length = packet.dma_length;
        set_offsets(*run.message, psn, run.pmtu);
    }
}

std::uint32_t Runs::join(std::uint32_t left_index, std::uint32_t right_index) noexcept {
    const Run& left = runs_[left_index];
    const Run& right = runs_[right_index];
    if (left.has_first) set_offsets(*right.message, left.begin, left.pmtu);
    Run joined = left.opened < right.opened ? left : right;  // its age and its place in the lists
    joined.begin = left.begin;
    joined.end = right.end;
    joined.pmtu = left.pmtu;
    joined.has_first = left.has_first;
    joined.dma_length = left.dma_length;
    joined.has_last = right.has_last;
    joined.last_bytes = right.last_bytes;
    joined.has_immediate = right.has_immediate;
    joined.immediate = right.immediate;
    const bool left_is_larger = left.message->packets >= right.message->packets;
    joined.message = left_is_larger ? left.message : right.message;
    table_.splice(*joined.message, left_is_larger ? *right.message : *left.message);
    const std::uint32_t keep = left.opened < right.opened ? left_index : right_index;
    release(keep == left_index ? right_index : left_index);
    // The links of the one that stays may have changed while the other left.
    joined.by_age = runs_[keep].by_age;
    joined.of_connection = runs_[keep].of_connection;
    runs_[keep] = joined;
    return keep;
}

void Runs::set_offsets(Message& message, Psn start, std::uint32_t pmtu) noexcept {
    MessageTable::for_each_ref(message, [&](assemble::FragmentRef& ref) {
        ref.offset = (ref.offset - static_cast<std::uint32_t>(start)) * pmtu;
    });
}

void Runs::release(std::uint32_t run) noexcept {
    by_age_.remove(runs_, run);
    connections_[runs_[run].connection].runs.remove(runs_, run);
    runs_[run].message = nullptr;
    free_.push_back(run);
    --count_;
}

}  // namespace weir::roce
