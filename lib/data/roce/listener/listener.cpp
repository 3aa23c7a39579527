#include "roce/listener/listener.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/one_writer.hpp"

namespace weir::roce {

using assemble::Message;
using assemble::MessageTable;
using wire::PacketCounter;
using wire::RocePacket;
using wire::RocePlace;
using wire::Verdict;

namespace {

/// Two packets that far apart at most show that a peer has restarted: a little reordering is allowed between them.
constexpr Psn restart_distance = 64;
/// After so many good packets, one that was far away was a stray.
constexpr std::uint32_t stray_after_packets = 64;
/// With fewer runs, the references of their messages are in the second-level cache anyway.
constexpr std::uint32_t look_far_runs = 64;

/// What chapter 9.7.4.1.6 of the specification has a responder reject.
bool has_wrong_length(const RocePacket& packet) noexcept {
    if (packet.place != RocePlace::only && packet.bytes == 0) return true;
    if (!packet.is_write) return false;
    if (packet.place == RocePlace::only) return packet.dma_length != packet.bytes;
    return packet.place == RocePlace::first && packet.dma_length <= packet.bytes;
}

}  // namespace

Listener::Listener(const Config& config, MessageTable& table, wire::PacketTally& packets)
    : psn_window_(config.psn_window),
      window_(config.window),
      timeout_ns_(config.timeout_ns),
      table_(table),
      connections_(config.sources, config.more_connections, config.psn_window, config.touch, table, packets),
      runs_(config.runs_max, connections_, table),
      numbers_(connections_, runs_, config.timeout_ns),
      closing_(connections_, runs_, numbers_, config.runs_max, table),
      stretches_(connections_.sources()) {}

void Listener::add(std::uint32_t source_id, const RocePacket& packet, void* buffer, TimeNs now) noexcept {
    const std::uint32_t source = connections_.slot_of(source_id);
    note_psns(stretches_[source]);
    add_one(source, packet, buffer, now);
}

void Listener::add_one(std::uint32_t source, const RocePacket& packet, void* buffer, TimeNs now) noexcept {
    if (has_wrong_length(packet)) return table_.reject(buffer, PacketCounter::malformed_roce_length);
    expire_runs(table_.due_by(now));
    Connection& connection = connection_of(source, packet, now);
    expire_held(connection, table_.due_by(now));
    if (!connection.seen) {
        connection.seen = true;
        // Room below, so that extended PSNs stay positive whatever the peer does.
        start_era(connection, (Psn{1} << 40) + packet.psn, now);
        if (const auto first = connections_.source_of(connection).first_psn) {
            numbers_.count_from(connection, *first);
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
        closing_.close_all(connection, now);
        connection.ring.restart(psn - 1);
        connections_.begin_account(connection, packet.psn);
    }
    add_near(connection, psn, packet, buffer, now);
}

/// Fetches for each packet what it probably touches. All guesses may be wrong, so that nothing comes of them here.
void Listener::look_ahead(const Arrivals& burst) noexcept {
    const std::size_t count = burst.packets.size();
    std::array<const PsnCell*, burst_max> before;
    std::array<Message*, burst_max> messages;
    std::size_t others = 0;  // than those that go on with a stretch
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t source = connections_.slot_of(burst.sources[i]);
        const Stretch& stretch = stretches_[source];
        before[i] = nullptr;
        messages[i] = stretch.message;
        if (stretch.going_on()) {
            __builtin_prefetch(messages[i], 1);
            continue;
        }
        const PsnRing& ring = connections_.recent(source).ring;
        before[i] = &ring.probable(ring.extend(burst.packets[i].psn) - 1);
        __builtin_prefetch(before[i], 1);
        ++others;
    }
    if (others > 0) {
        for (std::size_t i = 0; i < count; ++i)
            if (before[i] != nullptr && before[i]->in_run()) runs_.prefetch(before[i]->run());
        for (std::size_t i = 0; i < count; ++i) {
            if (before[i] == nullptr) continue;
            messages[i] = before[i]->in_run() ? runs_[before[i]->run()].message : nullptr;
            __builtin_prefetch(messages[i], 1);
        }
    }
    if (runs_.count() < look_far_runs) return;
    for (std::size_t i = 0; i < count; ++i)
        if (messages[i] != nullptr) MessageTable::prefetch_place(*messages[i]);
}

void Listener::add_burst(const Arrivals& burst) noexcept {
    look_ahead(burst);
    const auto count = static_cast<std::uint32_t>(burst.packets.size());
    bool roomy = table_.has_room(count);
    std::uint32_t placed = 0;
    TimeNs oldest = oldest_ns();
    for (std::uint32_t i = 0; i < count; ++i) {
        const RocePacket& packet = burst.packets[i];
        const TimeNs now = burst.times[i];
        const std::uint32_t source = connections_.slot_of(burst.sources[i]);
        Stretch& stretch = stretches_[source];
        if (stretch.goes_on_with(packet) && roomy && table_.due_by(now) - oldest < timeout_ns_) [[likely]] {
            table_.put(*stretch.message, burst.buffers[i], packet.payload, stretch.offset, packet.bytes, now);
            stretch.step(now);
            ++placed;
            continue;
        }
        // Counted before anything can become of them.
        table_.took(std::exchange(placed, 0));
        note_psns(stretch);
        if (!add_regular(source, packet, burst.buffers[i], now)) add_one(source, packet, burst.buffers[i], now);
        begin_stretch(stretch, source, packet);
        roomy = table_.has_room(count - i - 1);
        oldest = oldest_ns();
    }
    table_.took(placed);
    heard_ = unsettled_ = true;
}

/// From this packet on, if nothing speaks against it. No run but the one that grows may be near: PSNs that are noted
/// late push none out of the ring then, and none is in the way.
void Listener::begin_stretch(Stretch& stretch, std::uint32_t source, const RocePacket& packet) noexcept {
    if (packet.ends()) return;
    const Connection& connection = connections_.recent(source);
    const PsnRing& ring = connection.ring;
    const Psn psn = ring.extend(packet.psn);
    if (!connections_.is_of(connection, source, packet) || !connection.seen || connection.held_count > 0) return;
    if (psn != ring.newest() || !runs_.is_before(connection, ring.at(psn), psn + 1)) return;
    const std::uint32_t index = ring.at(psn).run();
    const Run& run = runs_[index];
    if (!run.has_first || run.has_last || !runs_.is_alone(connection, index)) return;
    // Each packet notes its size; these need not, if it is the one that is noted.
    if (connection.pmtu != run.pmtu || !connection.account.ends_with(packet.psn)) return;
    const std::uint32_t room = connection.config->max_message_bytes - run.message->received_bytes;
    const auto left = static_cast<std::uint8_t>(std::min(Stretch::longest, room / run.pmtu));
    if (left == 0) return;
    stretch = {.address_pair = packet.address_pair,
               .source_qp = packet.source_qp,
               .psn = (packet.psn + 1) & psn_mask,
               .bytes = run.pmtu,
               .offset = static_cast<std::uint32_t>(psn + 1 - run.begin) * run.pmtu,
               .connection = connection.slot,
               .run = index,
               .message = run.message,
               .transport = packet.transport,
               .is_write = run.is_write,
               .left = left};
}

/// Its packets are noted as `add_regular` would have done it, and it ends. Whoever looks at a connection, or changes
/// it, does so after this.
void Listener::note_psns(Stretch& stretch) noexcept {
    stretch.psn = Stretch::nobody;
    const std::uint32_t taken = std::exchange(stretch.taken, std::uint8_t{0});
    if (taken == 0) return;
    Connection& connection = connections_[stretch.connection];
    connection.ring.advance(taken, PsnCell::of_run(stretch.run));
    connection.account.add_next(taken, connections_.counts_of(connection));
    runs_[stretch.run].end += taken;
    connections_.heard_of(connection, stretch.last_ns);
}

void Listener::note_all_psns() noexcept {
    for (Stretch& stretch : stretches_) note_psns(stretch);
}

/// The way of the next MIDDLE or LAST of a message whose beginning is here. False: it is odd, or of another connection
/// than the one before, and nothing has been done.
bool Listener::add_regular(std::uint32_t source, const RocePacket& packet, void* buffer, TimeNs now) noexcept {
    Connection& connection = connections_.recent(source);
    PsnRing& ring = connection.ring;
    if (!connections_.is_of(connection, source, packet) || !connection.seen || connection.held_count > 0) return false;
    const Psn psn = ring.extend(packet.psn);
    const std::uint32_t run = runs_.continued(connection, psn, packet);
    if (run == no_run || !table_.has_room(1) || is_due(table_.due_by(now))) return false;
    if (psn > ring.newest()) {
        if (runs_.is_before(connection, ring.leaving(), ring.oldest() + 1)) return false;
        ring.advance();
    }
    connections_.heard_of(connection, now);
    connection.account.add(packet.psn, connections_.counts_of(connection));
    runs_.go_on(run, connection, psn, packet, buffer, now);
    if (!packet.ends()) return true;
    closing_.completed(run, now);
    if (window_ != 0) close_beyond_window(connection, now);
    return true;
}

Connection& Listener::connection_of(std::uint32_t source, const RocePacket& packet, TimeNs now) noexcept {
    if (Connection* known = connections_.find(source, packet, now); known != nullptr) [[likely]]
        return *known;
    note_all_psns();  // who has been silent for longest, and what is to be closed
    Connection& connection = connections_.place_for(source);
    closing_.close_all(connection, now);
    connections_.connect(connection, source, packet, now);
    return connection;
}

void Listener::add_near(Connection& connection, Psn psn, const RocePacket& packet, void* buffer, TimeNs now) noexcept {
    connection.account.add(packet.psn, connections_.counts_of(connection));
    if (psn > connection.ring.newest()) advance(connection, psn, now);
    const PsnCell cell = connection.ring.at(psn);
    if (!cell.vacant()) return repeated(connection, psn, cell, packet, buffer, now);
    if (connection.held_count > 0 && (!connection.held_far || ++connection.packets_since_held > stray_after_packets))
        connections_.drop_held(connection);  // the stream goes on, so there was no restart
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
    if (window_ != 0 && packet.ends()) close_beyond_window(connection, now);
}

Verdict Listener::place(Connection& connection, Psn psn, const RocePacket& packet, void* buffer, TimeNs now) noexcept {
    std::uint32_t run = no_run;
    const Verdict verdict = runs_.place(connection, psn, packet, buffer, now, run);
    if (verdict == wire::ok && runs_[run].complete()) closing_.completed(run, now);
    return verdict;
}

void Listener::close_beyond_window(Connection& connection, TimeNs now) noexcept {
    for (std::uint32_t run = connection.runs.first();
         run != no_run && connection.ends - runs_[run].ends_before > window_; run = connection.runs.first())
        closing_.close(run, now);
}

void Listener::refuse(Connection& connection, Psn psn, const RocePacket& packet, Verdict verdict) noexcept {
    // A packet that contradicts its message is not that PSN's packet: the right one may still come.
    if (verdict == Verdict::conflict) return;
    // Any other refusal is that of the whole message: what has been taken of it goes too, and so does what still comes.
    const Runs::Neighbours near = runs_.neighbours(connection, psn, packet);
    if (near.left != no_run) closing_.abandon(near.left, verdict);
    if (near.right != no_run) closing_.abandon(near.right, verdict);
    connection.ring.set(psn, PsnCell::closed(verdict, packet.starts(), packet.ends()));
}

void Listener::advance(Connection& connection, Psn psn, TimeNs now) noexcept {
    while (connection.ring.newest() < psn) {
        // A run of which nothing is left in the ring can never join anything again.
        const PsnCell leaving = connection.ring.leaving();
        if (runs_.is_before(connection, leaving, connection.ring.oldest() + 1)) closing_.close(leaving.run(), now);
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
        connections_.drop_held(connection);
        if (!packet.starts()) return table_.reject(buffer, fate);
        connection.held_far = false;
    }
    connections_.hold(connection, {packet, buffer, psn, now, fate});
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
    connections_.drop_held(connection);
    connection.held_far = true;
    connection.packets_since_held = 0;
    connections_.hold(connection, {packet, buffer, psn, now, PacketCounter::unbound});
}

void Listener::restart(Connection& connection, Psn first, TimeNs now) noexcept {
    const bool far = connection.held_far;
    const std::uint32_t count = connections_.take_held(connection);
    // Held because they had been before, they were counted as repeated; now they are of a new numbering.
    if (!far) core::subtract(connections_.counts_of(connection).repeated, count);
    start_era(connection, first, now);
    connections_.begin_account(connection, static_cast<std::uint32_t>(first) & psn_mask);
    for (std::uint32_t i = 0; i < count; ++i) {
        const HeldPacket held = connection.held[i];
        add_near(connection, held.psn, held.packet, held.buffer, held.time_ns);
    }
}

void Listener::start_era(Connection& connection, Psn psn, TimeNs now) noexcept {
    closing_.close_all(connection, now);
    connection.ring.restart(psn - 1);
    connection.forget_count();
}

void Listener::note(std::uint32_t source_id, const RocePacket& packet, TimeNs now) noexcept {
    const std::uint32_t source = connections_.slot_of(source_id);
    note_psns(stretches_[source]);
    Connection& connection = connection_of(source, packet, now);
    connection.account.add(packet.psn, connections_.counts_of(connection));
}

/// A READ uses one PSN per packet of its response. Without a path MTU seen, nobody knows how many, and so nothing is
/// said of what lies between it and what comes next.
void Listener::count_used(Connection& connection, const RocePacket& packet) noexcept {
    const std::uint32_t length = packet.dma_length;
    if (length > 256 && connection.pmtu == 0) return connection.account.begin_anew();
    const std::uint32_t used = length > 256 ? (length + connection.pmtu - 1) / connection.pmtu : 1;
    if (used > psn_window_ / 2) return connection.account.begin_anew();
    for (std::uint32_t i = 0; i < used; ++i)
        connection.account.add((packet.psn + i) & 0xffffff, connections_.counts_of(connection));
}

void Listener::skip(std::uint32_t source_id, const RocePacket& packet, TimeNs now) noexcept {
    const std::uint32_t source = connections_.slot_of(source_id);
    note_psns(stretches_[source]);
    expire_runs(table_.due_by(now));
    Connection& connection = connection_of(source, packet, now);
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
    if (connection.config->message_bytes != 0) closing_.lose_count(connection);  // PSNs count messages no more
    if (end - connection.ring.newest() > size / 2) {
        // More than the ring is to be moved at once, so everything before it ends.
        closing_.close_all(connection, now);
        if (connection.count.begun && connection.count.next == first)
            connection.count.next = end;
        else
            closing_.lose_count(connection);
        connection.ring.restart(end - 1);
        return connection.ring.set(end - 1, PsnCell::skipped());
    }
    for (Psn psn = first; psn < end; ++psn) {
        if (psn > connection.ring.newest()) advance(connection, psn, now);
        if (connection.ring.at(psn).unknown()) connection.ring.set(psn, PsnCell::skipped());
    }
    if (connection.count.begun) closing_.count_on(connection, now);
}

void Listener::expire_runs(TimeNs now) noexcept {
    while (is_due(now)) close_oldest(now);
}

void Listener::close_oldest(TimeNs now) noexcept {
    const std::uint32_t run = runs_.oldest();
    note_psns(stretches_[connections_[runs_[run].connection].source]);
    closing_.close(run, now);
}

void Listener::expire_held(Connection& connection, TimeNs now) noexcept {
    if (connection.held_count > 0 && now - connection.held[0].time_ns >= timeout_ns_)
        connections_.drop_held(connection);
}

void Listener::expire(TimeNs now) noexcept {
    if (!std::exchange(heard_, false) && std::exchange(unsettled_, false)) note_all_psns();
    expire_runs(now);
    if (!connections_.any_held()) return;
    for (Connection& connection : connections_.all()) expire_held(connection, now);
}

void Listener::finish(TimeNs now) noexcept {
    note_all_psns();
    while (runs_.oldest() != no_run) closing_.close(runs_.oldest(), now);
    for (Connection& connection : connections_.all()) connections_.drop_held(connection);
}

void Listener::begin_pass(TimeNs now) noexcept {
    finish(now);
    connections_.disconnect_all();
}

void Listener::forget(std::uint32_t source_id, TimeNs now, std::optional<std::uint32_t> first_psn) noexcept {
    const std::uint32_t source = connections_.slot_of(source_id);
    note_psns(stretches_[source]);
    for (Connection& connection : connections_.all()) {
        if (!connections_.is_of(connection, source)) continue;
        closing_.close_all(connection, now);
        connections_.disconnect(connection);
    }
    connections_.begin_anew(source, first_psn);
}

bool Listener::evict_oldest(TimeNs now) noexcept {
    if (runs_.oldest() == no_run) return false;
    close_oldest(now);
    return true;
}

}  // namespace weir::roce
