// Who sends to a queue pair: connections to one queue pair number are told apart, and each has its own PSNs, its own
// runs, and packets that may be the beginning of a restart.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "assemble/message_table.hpp"
#include "core/units.hpp"
#include "roce/listener/psn_ring.hpp"
#include "roce/listener/run.hpp"
#include "roce/message_source.hpp"
#include "roce/psn_account.hpp"
#include "wire/roce.hpp"

namespace weir::roce {

using core::TimeNs;

/// A packet that may be the beginning of a restart.
struct HeldPacket {
    wire::RocePacket packet;
    void* buffer = nullptr;
    Psn psn = 0;
    TimeNs time_ns = 0;
    wire::PacketCounter fate = wire::PacketCounter::unbound;  ///< if it comes to nothing
};

/// One sender's numbering of packets: an RC or UC connection, or one UD queue pair that sends to ours.
struct Connection {
    static constexpr std::uint32_t held_max = 32;

    Connection(std::uint32_t place, std::uint32_t psn_window, bool touch)
        : slot(place), ring(psn_window, touch), account(psn_window) {}

    std::uint32_t slot;  ///< in Connections
    const MessageSource* config = nullptr;
    std::uint32_t source = 0;  ///< index into the sources of Connections
    PsnRing ring;
    PsnAccount account;
    RunList<&Run::of_connection> runs;
    bool seen = false;
    bool is_datagrams = false;  ///< UD: every packet is a message
    std::uint32_t pmtu = 0;     ///< last one seen
    bool pmtu_varies = false;   ///< and not the only one, so it proves nothing
    std::uint64_t ends = 0;     ///< LAST and ONLY packets taken
    /// NumberBy::count, see MessageNumbers.
    struct Count {
        bool begun = false;  ///< `origin` is known
        bool lost = false;
        std::uint64_t next_number = 0;
        Psn origin = 0;           ///< start of message 0
        Psn next = 0;             ///< start of message next_number
        std::uint32_t whole = 0;  ///< complete runs that wait for their number
        [[nodiscard]] bool goes_on() const noexcept { return begun && !lost; }
    } count;
    bool held_far = false;
    std::uint32_t held_count = 0;
    std::uint32_t packets_since_held = 0;
    std::array<HeldPacket, held_max> held;  ///< rarely any, so it is not between what each packet needs

    void note_pmtu(std::uint32_t bytes) noexcept {
        pmtu_varies = pmtu_varies || (pmtu != 0 && pmtu != bytes);
        pmtu = bytes;
    }
    void forget_count() noexcept {
        count.begun = count.lost = false;
        count.whole = 0;
        count.next_number = 0;
    }
};

/// What a source's connections have in common.
struct ListenedSource {
    explicit ListenedSource(const MessageSource& from) : config(from), first_psn(from.first_psn) {}
    MessageSource config;
    std::uint32_t recent = 0;                  ///< connection of the last packet
    std::uint32_t counted = no_run;            ///< the connection whose messages are counted
    std::optional<std::uint32_t> first_psn{};  ///< of its message 0
    std::uint64_t count_base = 0;              ///< number of its message 0
    std::uint64_t count_end = 0;               ///< after the highest number given so far
    std::uint64_t next_arrival = 0;
};

class Connections {
public:
    /// `more`: places beyond one per source.
    Connections(const std::vector<MessageSource>& sources, std::uint32_t more, std::uint32_t psn_window, bool touch,
                assemble::MessageTable& table, wire::PacketTally& packets);
    Connections(const Connections&) = delete;
    Connections& operator=(const Connections&) = delete;

    /// The most buffers that are held outside the table: of so many sources at once as restart together.
    [[nodiscard]] static constexpr std::uint32_t held_max(std::size_t sources) noexcept {
        return static_cast<std::uint32_t>(std::min<std::size_t>(sources, 1024)) * Connection::held_max;
    }
    /// What the connections of so many sources take, if all of it is used.
    [[nodiscard]] static std::uint64_t memory_bytes(std::size_t sources, std::uint32_t more,
                                                    std::uint32_t psn_window) noexcept {
        return (sources + more) * (sizeof(Connection) + sizeof(ListenedSource) + sizeof(Peer) + sizeof(PsnCounts) +
                                   std::uint64_t{psn_window} * sizeof(PsnCell) + psn_window / 8);
    }

    [[nodiscard]] std::size_t sources() const noexcept { return sources_.size(); }
    [[nodiscard]] bool has(std::uint32_t source_id) const noexcept {
        return source_id < slot_by_source_.size() && slot_by_source_[source_id] != no_run;
    }
    /// The index of a source, from its id.
    [[nodiscard]] std::uint32_t slot_of(std::uint32_t source_id) const noexcept { return slot_by_source_[source_id]; }
    [[nodiscard]] ListenedSource& source_of(const Connection& connection) noexcept {
        return sources_[connection.source];
    }
    [[nodiscard]] PsnCounts& counts_of(const Connection& connection) noexcept { return psn_counts_[connection.source]; }
    [[nodiscard]] const PsnCounts& counts_of(std::uint32_t source_id) const noexcept {
        return psn_counts_[slot_by_source_[source_id]];
    }
    [[nodiscard]] Connection& operator[](std::uint32_t slot) noexcept { return connections_[slot]; }
    [[nodiscard]] std::vector<Connection>& all() noexcept { return connections_; }
    [[nodiscard]] TimeNs last_ns(std::uint32_t slot) const noexcept { return peers_[slot].last_ns; }
    [[nodiscard]] wire::RoceTransport transport_of(const Connection& connection) const noexcept {
        return peers_[connection.slot].transport;
    }

    /// The connection that a packet of this source belongs to; null if it is of a new one.
    [[nodiscard]] Connection* find(std::uint32_t source, const wire::RocePacket& packet, TimeNs now) noexcept;
    /// The one that the source's last packet was of.
    [[nodiscard]] Connection& recent(std::uint32_t source) noexcept { return connections_[sources_[source].recent]; }
    [[nodiscard]] bool is_of(const Connection& connection, std::uint32_t source,
                             const wire::RocePacket& packet) const noexcept {
        return peers_[connection.slot].is(source, packet);
    }
    /// A packet of it has come.
    void heard_of(const Connection& connection, TimeNs now) noexcept {
        sources_[connection.source].recent = connection.slot;
        peers_[connection.slot].last_ns = now;
    }
    /// Where a new one of this source finds its place. What is there must end before `connect`.
    [[nodiscard]] Connection& place_for(std::uint32_t source) noexcept;
    void connect(Connection& connection, std::uint32_t source, const wire::RocePacket& packet, TimeNs now) noexcept;
    /// Whether the place is taken by a connection of this source.
    [[nodiscard]] bool is_of(const Connection& connection, std::uint32_t source) const noexcept {
        return peers_[connection.slot].used && peers_[connection.slot].source == source;
    }
    /// It is gone: the next packet is of a new connection. Its runs must have ended.
    void disconnect(Connection& connection) noexcept;
    /// All connections of a source are gone. Whoever comes next goes on with their numbers, by NumberBy::count, and
    /// begins with `first_psn`, where that is known.
    void begin_anew(std::uint32_t source, std::optional<std::uint32_t> first_psn) noexcept;
    /// All are gone, and their numbers with them.
    void disconnect_all() noexcept;

    /// PSNs are counted anew from this one.
    void begin_account(Connection& connection, std::uint32_t psn) noexcept;

    /// Keeps a packet, or counts it where there are no buffers for more.
    void hold(Connection& connection, const HeldPacket& held) noexcept;
    /// What is held comes to nothing.
    void drop_held(Connection& connection) noexcept;
    /// What is held belongs to the caller, in connection.held; returns how many there are.
    [[nodiscard]] std::uint32_t take_held(Connection& connection) noexcept;
    [[nodiscard]] bool any_held() const noexcept { return holding_ > 0; }

private:
    /// What tells connections to one queue pair number apart. Apart from them, to be searched quickly.
    struct Peer {
        std::uint64_t address_pair = 0;
        std::uint32_t source_qp = 0;  ///< UD
        wire::RoceTransport transport = wire::RoceTransport::other;
        bool used = false;
        std::uint32_t source = 0;
        TimeNs last_ns = 0;
        [[nodiscard]] bool is(std::uint32_t of_source, const wire::RocePacket& packet) const noexcept {
            return address_pair == packet.address_pair && source == of_source && source_qp == packet.source_qp &&
                   transport == packet.transport;
        }
    };

    assemble::MessageTable& table_;
    wire::PacketTally& packets_;
    std::vector<ListenedSource> sources_;
    std::vector<PsnCounts> psn_counts_;  ///< by index into sources_
    /// One for each source first, then those that are lent to who needs more.
    std::vector<Connection> connections_;
    std::vector<Peer> peers_;  ///< of connections_
    std::vector<std::uint32_t> slot_by_source_;
    std::uint32_t held_total_ = 0;
    std::uint32_t holding_ = 0;  ///< connections with held packets
};

}  // namespace weir::roce
