// Who sends to a queue pair: connections are told apart, restart, and use PSNs for what carries no data.
#include <algorithm>

#include "roce/listener.hpp"

namespace weir::roce {

using core::PacketCounter;
using wire::RocePacket;
using wire::RoceTransport;

Listener::Connection& Listener::connection_of(Source& source, const RocePacket& packet, TimeNs now) noexcept {
    const auto slot = static_cast<std::uint32_t>(&source - sources_.data());
    std::uint32_t found = source.recent;
    if (!peers_[found].is(slot, packet)) {
        const auto at = std::ranges::find_if(peers_, [&](const Peer& peer) { return peer.is(slot, packet); });
        found = at != peers_.end() ? static_cast<std::uint32_t>(at - peers_.begin()) : connect(slot, packet, now);
        source.recent = found;
    }
    peers_[found].last_ns = now;
    return connections_[found];
}

std::uint32_t Listener::connect(std::uint32_t source, const RocePacket& packet, TimeNs now) noexcept {
    // The source's own place, one that is free, or else the one that has been silent for longest.
    const auto spare = static_cast<std::uint32_t>(sources_.size());
    std::uint32_t found = source;
    for (std::uint32_t at = spare; peers_[found].used && at < peers_.size(); ++at)
        if (!peers_[at].used || peers_[at].last_ns < peers_[found].last_ns) found = at;
    Connection& connection = connections_[found];
    if (peers_[found].used) {
        end_runs(connection, now);
        drop_held(connection);
        Source& before = sources_[connection.source];
        if (before.counted == found) before.counted = no_run;
    }
    peers_[found] = {packet.address_pair, packet.source_qp, packet.transport, true, source, now};
    psn_counts_[source].note_sender(
        packet, static_cast<std::uint32_t>(
                    std::ranges::count_if(peers_, [&](const Peer& at) { return at.used && at.source == source; })));
    connection.config = &sources_[source].config;
    connection.source = source;
    connection.is_datagrams = packet.transport == RoceTransport::ud;
    connection.seen = false;
    connection.account.begin_anew();
    connection.pmtu = 0;
    connection.pmtu_varies = false;
    connection.ends = 0;
    return found;
}

/// With NumberBy::count, two connections would give the same numbers to different messages. So only one is counted,
/// until it has been silent for a time-out.
bool Listener::counts(Connection& connection, TimeNs now) noexcept {
    std::uint32_t& counted = sources_[connection.source].counted;
    const std::uint32_t slot = slot_of(connection);
    if (counted == slot) return true;
    if (counted != no_run && now - peers_[counted].last_ns < config_.timeout_ns) return false;
    counted = slot;
    forget_count(connection);
    return true;
}

/// The connection is the one that was announced: its message 0 begins here, whether it comes or not.
void Listener::count_from(Connection& connection, std::uint32_t first_psn) noexcept {
    sources_[connection.source].counted = slot_of(connection);
    forget_count(connection);
    connection.counting = true;
    connection.count_origin = connection.count_next = connection.ring.extend(first_psn);
}

/// PSNs are counted anew from this one: either the first of a connection, or so far from the last that what lies
/// between was a loss or a new beginning, which cannot be told.
void Listener::begin_account(Connection& connection, std::uint32_t psn) noexcept {
    PsnCounts& counts = counts_of(connection);
    const std::int64_t ahead = connection.account.ahead(psn);
    if (ahead > 0) {
        PsnCounts::add(counts.jumps);
        PsnCounts::add(counts.jump_psns, static_cast<std::uint64_t>(ahead - 1));
    } else if (ahead < 0) {
        PsnCounts::add(counts.restarts);
    }
    connection.account.begin_anew();
}

void Listener::end_runs(Connection& connection, TimeNs now) noexcept {
    while (connection.runs.first() != no_run) close(connection.runs.first(), now);
}

void Listener::hold(Connection& connection, const Held& held) noexcept {
    if (held_total_ == held_max(sources_.size())) {  // the plan has no buffers for more
        drop_held(connection);
        return table_.reject(held.buffer, held.fate);
    }
    ++held_total_;
    if (connection.held_count == 0) ++holding_;
    connection.held[connection.held_count++] = held;
    packets_.add(PacketCounter::in_flight);
}

void Listener::drop_held(Connection& connection) noexcept {
    if (connection.held_count == 0) return;
    packets_.subtract(PacketCounter::in_flight, connection.held_count);
    for (std::uint32_t i = 0; i < connection.held_count; ++i)
        table_.reject(connection.held[i].buffer, connection.held[i].fate);
    held_total_ -= connection.held_count;
    connection.held_count = 0;
    --holding_;
}

void Listener::restart(Connection& connection, Psn first, TimeNs now) noexcept {
    const std::uint32_t count = connection.held_count;
    // Held because they had been before, they were counted as repeated; now they are of a new numbering.
    if (!connection.held_far) PsnCounts::subtract(counts_of(connection).repeated, count);
    packets_.subtract(PacketCounter::in_flight, count);
    held_total_ -= connection.held_count;
    connection.held_count = 0;
    --holding_;
    start_era(connection, first, now);
    begin_account(connection, static_cast<std::uint32_t>(first) & 0xffffff);
    for (std::uint32_t i = 0; i < count; ++i) {
        const Held held = connection.held[i];
        add_near(connection, held.psn, held.packet, held.buffer, held.time_ns);
    }
}

void Listener::start_era(Connection& connection, Psn psn, TimeNs now) noexcept {
    end_runs(connection, now);
    connection.ring.restart(psn - 1);
    forget_count(connection);
}

void Listener::note(std::uint32_t source_id, const RocePacket& packet, TimeNs now) noexcept {
    Connection& connection = connection_of(sources_[slot_by_source_[source_id]], packet, now);
    connection.account.add(packet.psn, counts_of(connection));
}

/// A READ uses one PSN per packet of its response. Without a path MTU seen, nobody knows how many, and so nothing is
/// said of what lies between it and what comes next.
void Listener::count_used(Connection& connection, const RocePacket& packet) noexcept {
    const std::uint32_t length = packet.dma_length;
    if (length > 256 && connection.pmtu == 0) return connection.account.begin_anew();
    const std::uint32_t used = length > 256 ? (length + connection.pmtu - 1) / connection.pmtu : 1;
    if (used > config_.psn_window / 2) return connection.account.begin_anew();
    for (std::uint32_t i = 0; i < used; ++i) connection.account.add((packet.psn + i) & 0xffffff, counts_of(connection));
}

void Listener::skip(std::uint32_t source_id, const RocePacket& packet, TimeNs now) noexcept {
    expire_runs(table_.due_by(now));
    Connection& connection = connection_of(sources_[slot_by_source_[source_id]], packet, now);
    count_used(connection, packet);
    if (!connection.seen) return;
    const Psn first = connection.ring.extend(packet.psn);
    const Psn size = connection.ring.size();
    const Psn distance = first - connection.ring.newest();
    if (distance > size / 2 || -distance >= size || !connection.ring.at(first).unknown()) return;
    // A READ uses one PSN per packet of its response. Without a path MTU seen, only the first is sure.
    const std::uint32_t length = packet.dma_length;
    const Psn count =
        connection.pmtu == 0 ? 1 : std::max<Psn>(1, (Psn{length} + connection.pmtu - 1) / connection.pmtu);
    const Psn end = first + count;
    if (connection.config->message_bytes != 0) lose_count(connection);  // PSNs count messages no more
    if (end - connection.ring.newest() > size / 2) {
        // More than the ring is to be moved at once, so everything before it ends.
        end_runs(connection, now);
        if (connection.counting && connection.count_next == first)
            connection.count_next = end;
        else
            lose_count(connection);
        connection.ring.restart(end - 1);
        return connection.ring.set(end - 1, PsnCell::skipped());
    }
    for (Psn psn = first; psn < end; ++psn) {
        if (psn > connection.ring.newest()) advance(connection, psn, now);
        if (connection.ring.at(psn).unknown()) connection.ring.set(psn, PsnCell::skipped());
    }
    if (connection.counting) count_on(connection, now);
}

}  // namespace weir::roce
