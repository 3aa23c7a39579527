#include "roce/listener/connections.hpp"

#include "core/one_writer.hpp"
#include "roce/message_header.hpp"

namespace weir::roce {

using wire::PacketCounter;
using wire::RocePacket;
using wire::RoceTransport;

Connections::Connections(const std::vector<MessageSource>& sources, std::uint32_t more, std::uint32_t psn_window,
                         bool touch, assemble::MessageTable& table, wire::PacketTally& packets)
    : table_(table), packets_(packets) {
    sources_.reserve(sources.size());
    for (const MessageSource& from : sources) {
        MessageHeader::check(from);
        if (from.source >= slot_by_source_.size()) slot_by_source_.resize(from.source + 1, no_run);
        const auto slot = static_cast<std::uint32_t>(sources_.size());
        slot_by_source_[from.source] = slot;
        sources_.emplace_back(from).recent = slot;
    }
    psn_counts_.resize(sources_.size());
    const auto places = static_cast<std::uint32_t>(sources_.size() + more);
    connections_.reserve(places);
    for (std::uint32_t slot = 0; slot < places; ++slot) connections_.emplace_back(slot, psn_window, touch);
    peers_.resize(places);
}

Connection* Connections::find(std::uint32_t source, const RocePacket& packet, TimeNs now) noexcept {
    std::uint32_t slot = sources_[source].recent;
    if (!peers_[slot].is(source, packet)) {
        const auto at = std::ranges::find_if(peers_, [&](const Peer& peer) { return peer.is(source, packet); });
        if (at == peers_.end()) return nullptr;
        slot = static_cast<std::uint32_t>(at - peers_.begin());
    }
    heard_of(connections_[slot], now);
    return &connections_[slot];
}

Connection& Connections::place_for(std::uint32_t source) noexcept {
    // The source's own place, one that is free, or else the one that has been silent for longest.
    const auto spare = static_cast<std::uint32_t>(sources_.size());
    std::uint32_t found = source;
    for (std::uint32_t at = spare; peers_[found].used && at < peers_.size(); ++at)
        if (!peers_[at].used || peers_[at].last_ns < peers_[found].last_ns) found = at;
    return connections_[found];
}

void Connections::connect(Connection& connection, std::uint32_t source, const RocePacket& packet, TimeNs now) noexcept {
    Peer& peer = peers_[connection.slot];
    if (peer.used) {
        drop_held(connection);
        ListenedSource& before = source_of(connection);
        if (before.counted == connection.slot) before.counted = no_run;
    }
    peer = {packet.address_pair, packet.source_qp, packet.transport, true, source, now};
    sources_[source].recent = connection.slot;
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
}

void Connections::disconnect(Connection& connection) noexcept {
    drop_held(connection);
    peers_[connection.slot] = Peer{};
}

void Connections::begin_anew(std::uint32_t source, std::optional<std::uint32_t> first_psn) noexcept {
    ListenedSource& from = sources_[source];
    from.recent = source;
    from.counted = no_run;
    from.count_base = from.count_end;
    from.first_psn = first_psn;
}

void Connections::disconnect_all() noexcept {
    for (Connection& connection : connections_) drop_held(connection);
    std::ranges::fill(peers_, Peer{});
    for (std::uint32_t slot = 0; slot < sources_.size(); ++slot) {
        sources_[slot].recent = slot;
        sources_[slot].counted = no_run;
        sources_[slot].next_arrival = 0;
        sources_[slot].count_base = sources_[slot].count_end = 0;
    }
}

/// Either the first of a connection, or so far from the last that what lies between was a loss or a new beginning,
/// which cannot be told.
void Connections::begin_account(Connection& connection, std::uint32_t psn) noexcept {
    PsnCounts& counts = counts_of(connection);
    const std::int64_t ahead = connection.account.ahead(psn);
    if (ahead > 0) {
        core::add(counts.jumps);
        core::add(counts.jump_psns, static_cast<std::uint64_t>(ahead - 1));
    } else if (ahead < 0) {
        core::add(counts.restarts);
    }
    connection.account.begin_anew();
}

void Connections::hold(Connection& connection, const HeldPacket& held) noexcept {
    if (held_total_ == held_max(sources_.size())) {  // the plan has no buffers for more
        drop_held(connection);
        return table_.reject(held.buffer, held.fate);
    }
    ++held_total_;
    if (connection.held_count == 0) ++holding_;
    connection.held[connection.held_count++] = held;
    packets_.add(PacketCounter::in_flight);
}

void Connections::drop_held(Connection& connection) noexcept {
    const std::uint32_t count = take_held(connection);
    for (std::uint32_t i = 0; i < count; ++i) table_.reject(connection.held[i].buffer, connection.held[i].fate);
}

std::uint32_t Connections::take_held(Connection& connection) noexcept {
    const std::uint32_t count = connection.held_count;
    if (count == 0) return 0;
    packets_.subtract(PacketCounter::in_flight, count);
    held_total_ -= count;
    connection.held_count = 0;
    --holding_;
    return count;
}

}  // namespace weir::roce
