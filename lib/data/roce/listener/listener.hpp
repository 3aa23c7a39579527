// The RoCEv2 listener: request packets of queue pairs become messages, in whatever order they arrive. It only listens:
// no acknowledgement is ever sent. One source is one queue pair in one direction. Runs of consecutive PSNs grow, join,
// and are a message once they have FIRST and LAST; the messages, references and buffers are borrowed from the
// MessageTable. Facts: InfiniBand Architecture Specification 1.x, chapter 9 (9.7.2 PSNs, 9.8 unreliable connection).
//
// The Listener decides where a PSN belongs, and when something is over. What it needs for that has a reason each:
//   Connections     who sends; restarts are collected there
//   Runs            packets that belong together
//   GroupFinder     what is proven of a message that is not whole
//   MessageNumbers  which number a message has, and when
//   Closing         what becomes of runs that end
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

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "assemble/message_table.hpp"
#include "roce/listener/closing.hpp"
#include "roce/listener/connections.hpp"
#include "roce/listener/message_numbers.hpp"
#include "roce/listener/runs.hpp"
#include "roce/listener/stretch.hpp"
#include "roce/message_source.hpp"
#include "roce/psn_account.hpp"
#include "wire/roce.hpp"

namespace weir::roce {

/// With NumberBy::count, message 0 is the one that begins with `first_psn`. Where that is not known, it is the one with
/// the lowest PSN of which the FIRST packet was seen when `count_hold` messages were whole (or the first one had to
/// end): earlier ones may have been overtaken, unless packets are `in_order`. If every
/// message has the same configured size, a number is PSN arithmetic. If not, a message is numbered when everything
/// before it is, and once something is lost for good all later messages of that source are unbound, until it restarts.
class Listener {
public:
    static constexpr std::uint32_t psn_window_max = 1 << 16;
    static constexpr std::uint32_t more_connections_default = 64;

    using SourceConfig = MessageSource;
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
    static constexpr std::uint32_t restart_packets = Connection::held_max;
    /// The most buffers that are held outside the table: of so many sources at once as restart together.
    [[nodiscard]] static constexpr std::uint32_t held_max(std::size_t sources) noexcept {
        return Connections::held_max(sources);
    }

    /// Throws core::UsageError for NumberBy::format without a format that carries numbers.
    Listener(const Config& config, assemble::MessageTable& table, wire::PacketTally& packets);
    /// What the connections of so many sources take, if all of it is used.
    [[nodiscard]] static std::uint64_t memory_bytes(std::size_t sources, std::uint32_t psn_window) noexcept {
        return Connections::memory_bytes(sources, more_connections_default, psn_window) + sources * sizeof(Stretch);
    }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    /// Most packets of one add_burst.
    static constexpr std::uint32_t burst_max = assemble::MessageTable::burst_max;
    /// SEND or WRITE packets of configured sources that came one after the other, field by field.
    struct Arrivals {
        std::span<const wire::RocePacket> packets;
        const std::uint32_t* sources = nullptr;
        void* const* buffers = nullptr;
        const TimeNs* times = nullptr;
    };
    /// Adds all of them in order. Takes their buffers: each ends in a message or is given back.
    ///
    /// In two passes, as MessageTable::add_burst: the first fetches what the second touches, and the second places the
    /// next packets of messages whose beginning is here: those in a stretch, and others of which little has to be
    /// looked at. Whatever is odd in any respect takes the way of `add`.
    void add_burst(const Arrivals& burst) noexcept;
    /// The same for one packet, by the way that knows every case.
    void add(std::uint32_t source, const wire::RocePacket& packet, void* buffer, TimeNs now) noexcept;
    /// A request of `source` that uses PSNs but carries no data for us: READ (with its length) or atomic.
    void skip(std::uint32_t source, const wire::RocePacket& packet, TimeNs now) noexcept;

    /// A packet of `source` that somebody else makes something of, or nothing: only its PSN is taken note of.
    void note(std::uint32_t source, const wire::RocePacket& packet, TimeNs now) noexcept;

    /// Ends what is due at `now`. `add` and `skip` do so themselves, so that no result depends on how often this is
    /// called; it is for when no packets come.
    void expire(TimeNs now) noexcept;
    /// Only messages: what is held for one that may come ends with the next packet of its connection, or by expire().
    void expire_messages(TimeNs now) noexcept { expire_runs(now); }
    /// End of run: ends everything.
    void finish(TimeNs now) noexcept;
    /// The same packets come once more (a looped capture): ends everything, and forgets connections and
    /// counts.
    void begin_pass(TimeNs now) noexcept;
    /// Ends the message that was opened first. False if there is none.
    bool evict_oldest(TimeNs now) noexcept;
    /// When that was opened; the latest time there is, if there is none.
    [[nodiscard]] TimeNs oldest_ns() const noexcept {
        return runs_.oldest() != no_run ? runs_[runs_.oldest()].first_ns : std::numeric_limits<TimeNs>::max();
    }

    /// The peer of `source` is gone, or begins anew: ends what it has begun, and forgets what it has sent. With
    /// NumberBy::count its next message has the number after the highest so far.
    /// `first_psn`: of the first message of the new connection, where it is known.
    void forget(std::uint32_t source, TimeNs now, std::optional<std::uint32_t> first_psn = {}) noexcept;

    [[nodiscard]] bool listens_to(std::uint32_t source) const noexcept { return connections_.has(source); }
    /// Which PSNs of `source` came; for any thread. While packets come, of any source, up to Stretch::longest behind,
    /// in what was expected and what was seen alike.
    [[nodiscard]] PsnCounts::Values psn_counts(std::uint32_t source) const noexcept {
        return connections_.counts_of(source).values();
    }

    /// Runs at the moment.
    [[nodiscard]] std::uint32_t runs() const noexcept { return runs_.count(); }

private:
    void look_ahead(const Arrivals& burst) noexcept;
    void add_one(std::uint32_t source, const wire::RocePacket& packet, void* buffer, TimeNs now) noexcept;
    void begin_stretch(Stretch& stretch, std::uint32_t source, const wire::RocePacket& packet) noexcept;
    void note_psns(Stretch& stretch) noexcept;
    void note_all_psns() noexcept;
    void close_oldest(TimeNs now) noexcept;
    [[nodiscard]] bool add_regular(std::uint32_t source, const wire::RocePacket& packet, void* buffer,
                                   TimeNs now) noexcept;
    [[nodiscard]] Connection& connection_of(std::uint32_t source, const wire::RocePacket& packet, TimeNs now) noexcept;
    void add_near(Connection& connection, Psn psn, const wire::RocePacket& packet, void* buffer, TimeNs now) noexcept;
    void add_far(Connection& connection, Psn psn, const wire::RocePacket& packet, void* buffer, TimeNs now) noexcept;
    void repeated(Connection& connection, Psn psn, PsnCell cell, const wire::RocePacket& packet, void* buffer,
                  TimeNs now) noexcept;
    [[nodiscard]] wire::Verdict place(Connection& connection, Psn psn, const wire::RocePacket& packet, void* buffer,
                                      TimeNs now) noexcept;
    void refuse(Connection& connection, Psn psn, const wire::RocePacket& packet, wire::Verdict verdict) noexcept;
    void advance(Connection& connection, Psn psn, TimeNs now) noexcept;
    void start_era(Connection& connection, Psn psn, TimeNs now) noexcept;
    void restart(Connection& connection, Psn first, TimeNs now) noexcept;
    void close_beyond_window(Connection& connection, TimeNs now) noexcept;
    void count_used(Connection& connection, const wire::RocePacket& packet) noexcept;
    [[nodiscard]] bool is_due(TimeNs now) const noexcept { return now - oldest_ns() >= timeout_ns_; }
    void expire_runs(TimeNs now) noexcept;
    void expire_held(Connection& connection, TimeNs now) noexcept;

    // What each call needs, and no more of Config: the sources are with their connections.
    std::uint32_t psn_window_;
    std::uint32_t window_;
    TimeNs timeout_ns_;
    assemble::MessageTable& table_;
    Connections connections_;
    Runs runs_;
    MessageNumbers numbers_;
    Closing closing_;
    std::vector<Stretch> stretches_;  ///< of each source
    bool heard_ = false;              ///< packets, since the last expire()
    bool unsettled_ = false;          ///< stretches may have packets that are not noted
};

}  // namespace weir::roce
