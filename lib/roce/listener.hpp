// The RoCEv2 listener: request packets of queue pairs become messages, in whatever order they arrive. It only listens:
// no acknowledgement is ever sent. One source is one queue pair in one direction. Runs of consecutive PSNs grow, join,
// and are a message once they have FIRST and LAST; the messages, references and buffers are borrowed from the
// MessageTable. Facts: InfiniBand Architecture Specification 1.x, chapter 9 (9.7.2 PSNs, 9.8 unreliable connection).
//
// What ends without all of its packets is kept as far as PSN arithmetic proves where they belong, and never guessed:
//  - WRITE with its FIRST, and any message where the size is configured: FIRST tells the exact extent;
//  - one missing PSN between a packet that is not LAST and one that is not FIRST, of the same kind: a lost MIDDLE;
//  - one missing PSN after a known message end, before a MIDDLE: a lost FIRST.
// Anything else is abandoned as unbound.
//
// A PSN further away than half the ring ahead, or the whole ring behind, moves nothing: the packet is held, and only
// when a second one comes from the same neighbourhood has the peer restarted. On an unreliable connection, which never
// retransmits, `restart_packets` packets in a row that all have been before, in order and from the start of a message,
// are a restart as well; on a reliable one they are retransmissions, however many.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "assemble/message_table.hpp"
#include "roce/psn_account.hpp"
#include "roce/run.hpp"
#include "wire/format.hpp"
#include "wire/roce.hpp"

namespace weir::roce {

using core::TimeNs;

/// Where the number of a message comes from.
enum class NumberBy : std::uint8_t {
    immediate,  ///< the 32 bits in the LAST packet; a message without is unbound
    format,     ///< the detector header at the start of the message, which is stripped
    count,      ///< messages in PSN order from 0 (see Listener)
    arrival,    ///< messages in closing order from 0
};

/// With NumberBy::count, message 0 is the one that begins with `first_psn`. Where that is not known, it is the one with
/// the lowest PSN of which the FIRST packet was seen when `count_hold` messages were whole (or the first one had to
/// end): earlier ones may have been overtaken, unless packets are `in_order`. If every
/// message has the same configured size, a number is PSN arithmetic. If not, a message is numbered when everything
/// before it is, and once something is lost for good all later messages of that source are unbound, until it restarts.
class Listener {
public:
    static constexpr std::uint32_t psn_window_max = 1 << 16;
    static constexpr std::uint32_t more_connections_default = 64;

    struct SourceConfig {
        std::uint32_t source = 0;  ///< run-wide source id
        NumberBy number_by = NumberBy::immediate;
        std::uint32_t message_bytes = 0;  ///< of every message, if configured; a message of another size is a conflict
        std::uint32_t max_message_bytes = wire::message_bytes_max_default;
        /// NumberBy::count: packets come in the order in which they were sent, as a Responder lets them through, so the
        /// first message that starts is message 0.
        bool in_order = false;
        std::optional<std::uint32_t> first_psn{};   ///< NumberBy::count: of message 0, where it is known (24 bits)
        const wire::FormatEntry* format = nullptr;  ///< NumberBy::format
        wire::FormatContext context{};
    };
    struct Config {
        std::vector<SourceConfig> sources;
        std::uint32_t runs_max = 4096;  ///< runs at once, all sources; each takes a message of the table
        /// PSNs remembered per connection (4 bytes and a bit each), rounded up to a power of two.
        std::uint32_t psn_window = psn_window_max;
        bool touch = false;  ///< make their memory resident at once, rather than when it is used
        /// Connections beyond one per source, all sources together. Where more send, the one that has been silent for
        /// longest is forgotten, as if it had ended.
        std::uint32_t more_connections = more_connections_default;
        /// A run ends when its connection has shown more message ends since it opened (its own included); 0: no limit.
        /// Must be larger than the reordering in messages, or whole messages end incomplete.
        std::uint32_t window = 0;
        TimeNs timeout_ns = 500 * core::ns_per_ms;  ///< from a run's first packet
    };
    static constexpr std::uint32_t restart_packets = 32;
    /// The most buffers that are held outside the table: of so many sources at once as restart together.
    [[nodiscard]] static constexpr std::uint32_t held_max(std::size_t sources) noexcept {
        return static_cast<std::uint32_t>(std::min<std::size_t>(sources, 1024)) * restart_packets;
    }
    static constexpr std::uint32_t count_hold = 32;

    /// Throws core::UsageError for NumberBy::format without a format that carries numbers.
    Listener(const Config& config, assemble::MessageTable& table, core::PacketTally& packets);
    /// What the connections of so many sources take, if all of it is used.
    [[nodiscard]] static std::uint64_t memory_bytes(std::size_t sources, std::uint32_t psn_window) noexcept {
        return (sources + more_connections_default) *
               (sizeof(Connection) + sizeof(Source) + sizeof(Peer) + sizeof(PsnCounts) +
                std::uint64_t{psn_window} * sizeof(PsnCell) + psn_window / 8);
    }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    /// Adds one SEND or WRITE packet of a configured source. Takes the buffer: it ends in a message or is given back.
    void add(std::uint32_t source, const wire::RocePacket& packet, void* buffer, TimeNs now) noexcept;
    /// A request of `source` that uses PSNs but carries no data for us: READ (with its length) or atomic.
    void skip(std::uint32_t source, const wire::RocePacket& packet, TimeNs now) noexcept;

    /// A packet of `source` that somebody else makes something of, or nothing: only its PSN is taken note of.
    void note(std::uint32_t source, const wire::RocePacket& packet, TimeNs now) noexcept;

    /// Ends what is due at `now`. `add` and `skip` do so themselves, so that no result depends on how often this is
    /// called; it is for when no packets come.
    void expire(TimeNs now) noexcept;
    /// End of run: ends everything.
    void finish(TimeNs now) noexcept;
    /// The same packets come once more (a looped capture): ends everything, and forgets connections and
    /// counts.
    void begin_pass(TimeNs now) noexcept;
    /// Ends the message that was opened first. False if there is none.
    bool evict_oldest(TimeNs now) noexcept;

    /// The peer of `source` is gone, or begins anew: ends what it has begun, and forgets what it has sent. With
    /// NumberBy::count its next message has the number after the highest so far.
    /// `first_psn`: of the first message of the new connection, where it is known.
    void forget(std::uint32_t source, TimeNs now, std::optional<std::uint32_t> first_psn = {}) noexcept;

    [[nodiscard]] bool listens_to(std::uint32_t source) const noexcept {
        return source < slot_by_source_.size() && slot_by_source_[source] != no_run;
    }
    /// Which PSNs of `source` came; for any thread.
    [[nodiscard]] PsnCounts::Values psn_counts(std::uint32_t source) const noexcept {
        return psn_counts_[slot_by_source_[source]].values();
    }

    /// Whether a message can be begun.
    [[nodiscard]] bool has_room() const noexcept { return !free_runs_.empty(); }
    /// Runs at the moment.
    [[nodiscard]] std::uint32_t runs() const noexcept { return run_count_; }

private:
    struct Held {
        wire::RocePacket packet;
        void* buffer = nullptr;
        Psn psn = 0;
        TimeNs time_ns = 0;
        core::PacketCounter fate = core::PacketCounter::unbound;  ///< if it comes to nothing
    };
    /// One sender's numbering of packets: an RC or UC connection, or one UD queue pair that sends to ours.
    struct Connection {
        Connection(std::uint32_t psn_window, bool touch) : ring(psn_window, touch), account(psn_window) {}
        const SourceConfig* config = nullptr;
        std::uint32_t source = 0;  ///< index into sources_
        PsnRing ring;
        PsnAccount account;
        RunList<&Run::of_connection> runs;
        bool seen = false;
        bool is_datagrams = false;  ///< UD: every packet is a message
        std::uint32_t pmtu = 0;     ///< last one seen
        bool pmtu_varies = false;   ///< and not the only one, so it proves nothing
        std::uint64_t ends = 0;     ///< LAST and ONLY packets taken
        // count
        bool counting = false;  ///< count_origin is known
        bool count_lost = false;
        std::uint64_t next_number = 0;
        Psn count_origin = 0;     ///< start of message 0
        Psn count_next = 0;       ///< start of message next_number
        std::uint32_t whole = 0;  ///< complete runs that wait for their number
        // Packets that may be the beginning of a restart.
        std::array<Held, restart_packets> held;
        std::uint32_t held_count = 0;
        std::uint32_t packets_since_held = 0;
        bool held_far = false;
    };
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
    struct Source {
        explicit Source(const SourceConfig& from) : config(from), first_psn(from.first_psn) {}
        SourceConfig config;
        std::uint32_t recent = 0;                  ///< connection of the last packet
        std::uint32_t counted = no_run;            ///< the connection whose messages are counted
        std::optional<std::uint32_t> first_psn{};  ///< of its message 0
        std::uint64_t count_base = 0;              ///< number of its message 0
        std::uint64_t count_end = 0;               ///< after the highest number given so far
        std::uint64_t next_arrival = 0;
    };
    /// The runs that one packet joins.
    struct Neighbours {
        std::uint32_t left = no_run;
        std::uint32_t right = no_run;
        wire::Verdict verdict = wire::ok;
    };
    /// What is proven of a message that ends incomplete; its runs are in members_.
    struct Group {
        Psn start = 0;
        Psn end = 0;
        bool start_known = false;
        bool end_known = false;
        bool contradiction = false;
        bool continues_closed = false;  ///< it goes on with a message that has ended before
        std::uint32_t head = no_run;    ///< the run with FIRST
        std::uint32_t tail = no_run;    ///< the run with LAST
        std::uint32_t pmtu = 0;
        bool is_write = false;
    };

    // connections.cpp: who sends, restarts, and what uses PSNs without data.
    [[nodiscard]] Connection& connection_of(Source& source, const wire::RocePacket& packet, TimeNs now) noexcept;
    [[nodiscard]] std::uint32_t connect(std::uint32_t source, const wire::RocePacket& packet, TimeNs now) noexcept;
    [[nodiscard]] bool counts(Connection& connection, TimeNs now) noexcept;
    static void forget_count(Connection& connection) noexcept {
        connection.counting = connection.count_lost = false;
        connection.whole = 0;
        connection.next_number = 0;
    }
    /// The event number of a counted connection's message `local`.
    [[nodiscard]] std::uint64_t counted(const Connection& connection, std::uint64_t local) noexcept {
        Source& source = sources_[connection.source];
        source.count_end = std::max(source.count_end, source.count_base + local + 1);
        return source.count_base + local;
    }
    void count_from(Connection& connection, std::uint32_t first_psn) noexcept;
    void begin_account(Connection& connection, std::uint32_t psn) noexcept;
    void count_used(Connection& connection, const wire::RocePacket& packet) noexcept;
    [[nodiscard]] PsnCounts& counts_of(const Connection& connection) noexcept { return psn_counts_[connection.source]; }
    void end_runs(Connection& connection, TimeNs now) noexcept;
    void expire_runs(TimeNs now) noexcept;
    void expire_held(Connection& connection, TimeNs now) noexcept;

    // listener.cpp: packets come in.
    void add_near(Connection& connection, Psn psn, const wire::RocePacket& packet, void* buffer, TimeNs now) noexcept;
    void add_far(Connection& connection, Psn psn, const wire::RocePacket& packet, void* buffer, TimeNs now) noexcept;
    void repeated(Connection& connection, Psn psn, PsnCell cell, const wire::RocePacket& packet, void* buffer,
                  TimeNs now) noexcept;
    [[nodiscard]] wire::Verdict place(Connection& connection, Psn psn, const wire::RocePacket& packet, void* buffer,
                                      TimeNs now) noexcept;
    [[nodiscard]] Neighbours neighbours(const Connection& connection, Psn psn,
                                        const wire::RocePacket& packet) const noexcept;
    void refuse(Connection& connection, Psn psn, const wire::RocePacket& packet, wire::Verdict verdict) noexcept;
    [[nodiscard]] std::uint32_t open(Connection& connection, Psn psn, const wire::RocePacket& packet, void* buffer,
                                     TimeNs now) noexcept;
    void extend(std::uint32_t run, Psn psn, const wire::RocePacket& packet) noexcept;
    [[nodiscard]] std::uint32_t join(std::uint32_t left, std::uint32_t right) noexcept;
    static void set_offsets(assemble::Message& message, Psn start, std::uint32_t pmtu) noexcept;
    void advance(Connection& connection, Psn psn, TimeNs now) noexcept;
    static void note_pmtu(Connection& connection, std::uint32_t bytes) noexcept {
        connection.pmtu_varies = connection.pmtu_varies || (connection.pmtu != 0 && connection.pmtu != bytes);
        connection.pmtu = bytes;
    }
    void start_era(Connection& connection, Psn psn, TimeNs now) noexcept;
    void restart(Connection& connection, Psn first, TimeNs now) noexcept;
    void close_beyond_window(Connection& connection, TimeNs now) noexcept;
    [[nodiscard]] bool is_run_at(const Connection& connection, PsnCell cell, Psn begin) const noexcept {
        return cell.in_run() && is_mine(connection, cell.run()) && runs_[cell.run()].begin == begin;
    }
    [[nodiscard]] bool is_run_before(const Connection& connection, PsnCell cell, Psn end) const noexcept {
        return cell.in_run() && is_mine(connection, cell.run()) && runs_[cell.run()].end == end;
    }
    [[nodiscard]] bool is_mine(const Connection& connection, std::uint32_t run) const noexcept {
        return runs_[run].message != nullptr && runs_[run].connection == slot_of(connection);
    }
    void mark_ends(Connection& connection, const Run& run) noexcept;
    void release(std::uint32_t run) noexcept;
    void hold(Connection& connection, const Held& held) noexcept;
    void drop_held(Connection& connection) noexcept;
    [[nodiscard]] std::uint32_t slot_of(const Connection& connection) const noexcept {
        return static_cast<std::uint32_t>(&connection - connections_.data());
    }

    // close.cpp: messages leave.
    void completed(std::uint32_t run, TimeNs now) noexcept;
    void number_complete(std::uint32_t run, TimeNs now) noexcept;
    void deliver_complete(std::uint32_t run, std::uint64_t number, TimeNs now) noexcept;
    void start_counting(Connection& connection, TimeNs now) noexcept;
    void count_on(Connection& connection, TimeNs now) noexcept;
    void abandon(std::uint32_t run, core::PacketCounter counter) noexcept;
    void close(std::uint32_t run, TimeNs now) noexcept;
    [[nodiscard]] Group gather(const Connection& connection, std::uint32_t run) noexcept;
    void gather_left(const Connection& connection, std::uint32_t run, Group& group) noexcept;
    void gather_right(const Connection& connection, std::uint32_t run, Group& group) noexcept;
    void gather_extent(const Connection& connection, Group& group) noexcept;
    [[nodiscard]] std::uint64_t extent(const Connection& connection, const Group& group) const noexcept;
    void close_group(Connection& connection, const Group& group, TimeNs now) noexcept;
    void abandon_group(Connection& connection, const Group& group, core::PacketCounter counter) noexcept;
    void deliver_group(Connection& connection, const Group& group, std::uint64_t number, TimeNs now) noexcept;
    [[nodiscard]] std::uint64_t group_total(const Connection& connection, const Group& group) const noexcept;
    [[nodiscard]] bool group_number(Connection& connection, const Group& group, std::uint64_t& number) noexcept;
    [[nodiscard]] assemble::Message& merge_members(Connection& connection, const Group& group) noexcept;
    [[nodiscard]] wire::Verdict strip_header(const Connection& connection, assemble::Message& message,
                                             std::uint64_t total, std::uint64_t& number,
                                             std::uint32_t& header_bytes) noexcept;
    void count_lost_only(Connection& connection, TimeNs now) noexcept;
    void lose_count(Connection& connection) noexcept;
    [[nodiscard]] static bool counts_by_psn(const Connection& connection) noexcept {
        return connection.config->message_bytes != 0 || connection.is_datagrams;
    }
    [[nodiscard]] Psn end_of_write(const Connection& connection, std::uint32_t run, Psn limit) const noexcept;
    [[nodiscard]] bool place_by_count(const Connection& connection, Group& group) noexcept;

    Config config_;
    assemble::MessageTable& table_;
    core::PacketTally& packets_;
    std::vector<Source> sources_;
    std::vector<PsnCounts> psn_counts_;  ///< by index into sources_
    /// One for each source first, then those that are lent to who needs more.
    std::vector<Connection> connections_;
    std::vector<Peer> peers_;  ///< of connections_
    std::vector<std::uint32_t> slot_by_source_;
    std::vector<Run> runs_;
    std::vector<std::uint32_t> free_runs_;
    std::vector<std::uint32_t> members_;  ///< runs of the group being closed
    RunList<&Run::by_age> by_age_;
    std::uint32_t run_count_ = 0;
    std::uint32_t held_total_ = 0;
    std::uint32_t holding_ = 0;  ///< connections with held packets
    std::uint64_t opened_ = 0;
    std::array<std::byte, 1024> header_{};
};

}  // namespace weir::roce
