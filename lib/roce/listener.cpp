// Packets come in: where a PSN belongs, which runs it joins, and restarts of the peer. How messages leave: close.cpp.
#include "roce/listener.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"

namespace weir::roce {

using assemble::Message;
using assemble::MessageTable;
using core::PacketCounter;
using wire::RocePacket;
using wire::RocePlace;
using wire::Verdict;

namespace {

/// Two packets that far apart at most show that a peer has restarted: a little reordering is allowed between them.
constexpr Psn restart_distance = 64;
/// After so many good packets, one that was far away was a stray.
constexpr std::uint32_t stray_after_packets = 64;

/// What chapter 9.7.4.1.6 of the specification has a responder reject.
bool has_wrong_length(const RocePacket& packet) noexcept {
    if (packet.place != RocePlace::only && packet.bytes == 0) return true;
    if (!packet.is_write) return false;
    if (packet.place == RocePlace::only) return packet.dma_length != packet.bytes;
    return packet.place == RocePlace::first && packet.dma_length <= packet.bytes;
}

}  // namespace

Listener::Listener(const Config& config, MessageTable& table, core::PacketTally& packets)
    : config_(config), table_(table), packets_(packets), runs_(config.runs_max) {
    sources_.reserve(config.sources.size());
    for (const SourceConfig& from : config.sources) {
        if (from.number_by == NumberBy::format && (from.format == nullptr || !from.context.carries_number))
            throw core::UsageError("event = \"format\": the stream's format carries no event number");
        if (from.source >= slot_by_source_.size()) slot_by_source_.resize(from.source + 1, no_run);
        const auto slot = static_cast<std::uint32_t>(sources_.size());
        slot_by_source_[from.source] = slot;
        sources_.emplace_back(from).recent = slot;
    }
    psn_counts_.resize(sources_.size());
    const std::size_t connections = sources_.size() + config.more_connections;
    connections_.reserve(connections);
    for (std::size_t i = 0; i < connections; ++i) connections_.emplace_back(config.psn_window, config.touch);
    peers_.resize(connections);
    free_runs_.reserve(config.runs_max);
    for (std::uint32_t i = config.runs_max; i-- > 0;) free_runs_.push_back(i);
    members_.reserve(config.runs_max);
}

void Listener::add(std::uint32_t source_id, const RocePacket& packet, void* buffer, TimeNs now) noexcept {
    if (has_wrong_length(packet)) return table_.reject(buffer, PacketCounter::malformed_roce_length);
    expire_runs(table_.due_by(now));
    Connection& connection = connection_of(sources_[slot_by_source_[source_id]], packet, now);
    expire_held(connection, table_.due_by(now));
    if (!connection.seen) {
        connection.seen = true;
        // Room below, so that extended PSNs stay positive whatever the peer does.
        start_era(connection, (Psn{1} << 40) + packet.psn, now);
        if (const auto first = sources_[connection.source].first_psn) {
            count_from(connection, *first);
            connection.account.expect_from(*first, packet.psn);
        }
    }
    const Psn psn = connection.ring.extend(packet.psn);
    const Psn ahead = psn - connection.ring.newest();
    const Psn size = connection.ring.size();
    if (-ahead < size && ahead <= size / 2) return add_near(connection, psn, packet, buffer, now);
    // A UD queue pair may send to many others: however far ahead, what has been between was not for us.
    if (!connection.is_datagrams || ahead < 0) return add_far(connection, psn, packet, buffer, now);
    if (ahead >= size) {
        end_runs(connection, now);
        connection.ring.restart(psn - 1);
        begin_account(connection, packet.psn);
    }
    add_near(connection, psn, packet, buffer, now);
}

void Listener::add_near(Connection& connection, Psn psn, const RocePacket& packet, void* buffer, TimeNs now) noexcept {
    connection.account.add(packet.psn, counts_of(connection));
    if (psn > connection.ring.newest()) advance(connection, psn, now);
    const PsnCell cell = connection.ring.at(psn);
    if (!cell.vacant()) return repeated(connection, psn, cell, packet, buffer, now);
    if (connection.held_count > 0 && (!connection.held_far || ++connection.packets_since_held > stray_after_packets))
        drop_held(connection);  // the stream goes on, so there was no restart
    Verdict verdict = place(connection, psn, packet, buffer, now);
    if (verdict == Verdict::no_room && evict_oldest(now)) {
        // What was evicted may have been this very message.
        const PsnCell after = connection.ring.at(psn);
        verdict = after.vacant() ? place(connection, psn, packet, buffer, now) : after.fate();
    }
    if (verdict != wire::ok) {
        refuse(connection, psn, packet, verdict);
        return table_.reject(buffer, verdict);
    }
    if (config_.window != 0 && packet.ends()) close_beyond_window(connection, now);
}

void Listener::close_beyond_window(Connection& connection, TimeNs now) noexcept {
    for (std::uint32_t run = connection.runs.first();
         run != no_run && connection.ends - runs_[run].ends_before > config_.window; run = connection.runs.first())
        close(run, now);
}

Listener::Neighbours Listener::neighbours(const Connection& connection, Psn psn,
                                          const RocePacket& packet) const noexcept {
    Neighbours out;
    if (!packet.starts()) {
        const PsnCell cell = connection.ring.at(psn - 1);
        if (cell.is_closed() && !cell.ends()) {
            out.verdict = cell.fate();  // the message that this packet continues has ended
        } else if (is_run_before(connection, cell, psn)) {
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
        } else if (is_run_at(connection, cell, psn + 1)) {
            const Run& right = runs_[cell.run()];
            const bool fits = right.pmtu != 0 ? packet.bytes == right.pmtu : packet.bytes >= right.last_bytes;
            if (!right.has_first && right.is_write == packet.is_write && fits) out.right = cell.run();
        }
    }
    return out;
}

Verdict Listener::place(Connection& connection, Psn psn, const RocePacket& packet, void* buffer, TimeNs now) noexcept {
    // Everything that can refuse the packet comes first.
    const Neighbours near = neighbours(connection, psn, packet);
    if (near.verdict != wire::ok) return near.verdict;
    std::uint64_t bytes = packet.bytes;
    if (near.left != no_run) bytes += runs_[near.left].message->received_bytes;
    if (near.right != no_run) bytes += runs_[near.right].message->received_bytes;
    if (packet.is_write && packet.starts()) bytes = std::max<std::uint64_t>(bytes, packet.dma_length);
    if (bytes > connection.config->max_message_bytes) return Verdict::malformed_message_size;

    std::uint32_t run = near.left != no_run ? near.left : near.right;
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
        note_pmtu(connection, packet.bytes);
    if (grown.complete()) completed(run, now);
    return wire::ok;
}

void Listener::refuse(Connection& connection, Psn psn, const RocePacket& packet, Verdict verdict) noexcept {
    // A packet that contradicts its message is not that PSN's packet: the right one may still come.
    if (verdict == Verdict::conflict) return;
    // Any other refusal is that of the whole message: what has been taken of it goes too, and so does what still comes.
    const Neighbours near = neighbours(connection, psn, packet);
    if (near.left != no_run) abandon(near.left, verdict);
    if (near.right != no_run) abandon(near.right, verdict);
    connection.ring.set(psn, PsnCell::closed(verdict, packet.starts(), packet.ends()));
}

std::uint32_t Listener::open(Connection& connection, Psn psn, const RocePacket& packet, void* buffer,
                             TimeNs now) noexcept {
    if (free_runs_.empty() || table_.buffers_held() >= table_.buffers_max()) return no_run;
    Message* message = table_.open_unbound(connection.config->source, now);
    if (message == nullptr) return no_run;
    const std::uint32_t offset = packet.starts() ? 0 : static_cast<std::uint32_t>(psn);
    if (!table_.append(*message, buffer, packet.payload, offset, packet.bytes, now)) {
        table_.abandon(*message, PacketCounter::no_room);
        return no_run;
    }
    const std::uint32_t run = free_runs_.back();
    free_runs_.pop_back();
    ++run_count_;
    runs_[run] = Run{};
    Run& fresh = runs_[run];
    fresh.message = message;
    fresh.begin = psn;
    fresh.end = psn + 1;
    fresh.connection = slot_of(connection);
    fresh.is_write = packet.is_write;
    fresh.has_first = packet.starts();
    fresh.has_last = packet.ends();
    fresh.first_ns = now;
    fresh.opened = opened_++;
    fresh.ends_before = connection.ends;
    if (packet.place != RocePlace::last) fresh.pmtu = packet.bytes;
    if (fresh.has_first) fresh.dma_length = packet.dma_length;
    if (fresh.has_last) {
        fresh.last_bytes = packet.bytes;
        fresh.has_immediate = packet.has_immediate;
        fresh.immediate = packet.immediate;
    }
    by_age_.push_back(runs_, run);
    connection.runs.push_back(runs_, run);
    return run;
}

void Listener::extend(std::uint32_t index, Psn psn, const RocePacket& packet) noexcept {
    Run& run = runs_[index];
    (psn < run.begin ? run.begin : run.end) = psn < run.begin ? psn : psn + 1;
    if (packet.place == RocePlace::last) {
        run.has_last = true;
        run.last_bytes = packet.bytes;
        run.has_immediate = packet.has_immediate;
        run.immediate = packet.immediate;
        return;
    }
    run.pmtu = packet.bytes;
    if (packet.place == RocePlace::first) {
        run.has_first = true;
        run.dma_length = packet.dma_length;
        set_offsets(*run.message, psn, run.pmtu);
    }
}

std::uint32_t Listener::join(std::uint32_t left_index, std::uint32_t right_index) noexcept {
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

void Listener::set_offsets(Message& message, Psn start, std::uint32_t pmtu) noexcept {
    MessageTable::for_each_ref(message, [&](assemble::FragmentRef& ref) {
        ref.offset = (ref.offset - static_cast<std::uint32_t>(start)) * pmtu;
    });
}

void Listener::release(std::uint32_t run) noexcept {
    by_age_.remove(runs_, run);
    connections_[runs_[run].connection].runs.remove(runs_, run);
    runs_[run].message = nullptr;
    free_runs_.push_back(run);
    --run_count_;
}

void Listener::advance(Connection& connection, Psn psn, TimeNs now) noexcept {
    while (connection.ring.newest() < psn) {
        // A run of which nothing is left in the ring can never join anything again.
        const PsnCell leaving = connection.ring.leaving();
        if (is_run_before(connection, leaving, connection.ring.oldest() + 1)) close(leaving.run(), now);
        connection.ring.advance();
    }
}

void Listener::repeated(Connection& connection, Psn psn, PsnCell cell, const RocePacket& packet, void* buffer,
                        TimeNs now) noexcept {
    const PacketCounter fate = cell.is_closed() ? cell.fate() : PacketCounter::duplicate;
    if (packet.transport == wire::RoceTransport::rc || (connection.held_count > 0 && connection.held_far))
        return table_.reject(buffer, fate);
    const bool continues = connection.held_count > 0 && connection.held[connection.held_count - 1].psn + 1 == psn;
    if (!continues) {
        drop_held(connection);
        if (!packet.starts()) return table_.reject(buffer, fate);
        connection.held_far = false;
    }
    hold(connection, {packet, buffer, psn, now, fate});
    if (connection.held_count == restart_packets) restart(connection, connection.held[0].psn, now);
}

void Listener::add_far(Connection& connection, Psn psn, const RocePacket& packet, void* buffer, TimeNs now) noexcept {
    if (connection.held_count > 0 && connection.held_far) {
        const Psn distance = psn - connection.held[0].psn;
        if (distance == 0) return table_.reject(buffer, PacketCounter::duplicate);
        if (distance <= restart_distance && distance >= -restart_distance) {
            restart(connection, std::min(psn, connection.held[0].psn), now);
            return add_near(connection, psn, packet, buffer, now);
        }
    }
    drop_held(connection);
    connection.held_far = true;
    connection.packets_since_held = 0;
    hold(connection, {packet, buffer, psn, now, PacketCounter::unbound});
}

void Listener::expire_runs(TimeNs now) noexcept {
    while (by_age_.first() != no_run && now - runs_[by_age_.first()].first_ns >= config_.timeout_ns)
        close(by_age_.first(), now);
}

void Listener::expire_held(Connection& connection, TimeNs now) noexcept {
    if (connection.held_count > 0 && now - connection.held[0].time_ns >= config_.timeout_ns) drop_held(connection);
}

void Listener::expire(TimeNs now) noexcept {
    expire_runs(now);
    if (holding_ == 0) return;
    for (Connection& connection : connections_) expire_held(connection, now);
}

void Listener::finish(TimeNs now) noexcept {
    while (by_age_.first() != no_run) close(by_age_.first(), now);
    for (Connection& connection : connections_) drop_held(connection);
}

void Listener::begin_pass(TimeNs now) noexcept {
    finish(now);
    std::ranges::fill(peers_, Peer{});  // the next packet of each is of a new connection
    for (std::uint32_t slot = 0; slot < sources_.size(); ++slot) {
        sources_[slot].recent = slot;
        sources_[slot].counted = no_run;
        sources_[slot].next_arrival = 0;
        sources_[slot].count_base = sources_[slot].count_end = 0;
    }
}

void Listener::forget(std::uint32_t source_id, TimeNs now, std::optional<std::uint32_t> first_psn) noexcept {
    const std::uint32_t slot = slot_by_source_[source_id];
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        if (!peers_[i].used || peers_[i].source != slot) continue;
        end_runs(connections_[i], now);
        drop_held(connections_[i]);
        peers_[i] = Peer{};  // the next packet is of a new connection
    }
    sources_[slot].recent = slot;
    sources_[slot].counted = no_run;
    sources_[slot].count_base = sources_[slot].count_end;
    sources_[slot].first_psn = first_psn;
}

bool Listener::evict_oldest(TimeNs now) noexcept {
    if (by_age_.first() == no_run) return false;
    close(by_age_.first(), now);
    return true;
}

}  // namespace weir::roce
