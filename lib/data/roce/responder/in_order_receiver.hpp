// The way of a reliable connection's packets into messages. The Responder lets each PSN through once and only in its
// turn, so there is nothing to be sorted and nothing to be remembered of single PSNs: a message is opened at its first
// packet, grows in order, and is delivered at its last. What is only listened to, or is sent without repetition, comes
// in any order and with gaps: that is the Listener's.
//
// A message ends without its last packet when it times out, when its peer is gone or begins anew, and at the end of the
// run. Then it is delivered with what has come of it if its number is known and it can be told where it ends (a WRITE,
// or a configured size), and ends as unbound otherwise. What still comes of it is `late`.
//
// Numbers are given as the Listener does it (MessageSource). With NumberBy::count they are those of the messages in the
// order of their PSNs, or PSN arithmetic where all have one size.
//
// One thing breaks the order. Where nobody said at which PSN the peer begins, the first message that came is taken for
// the first one; if an earlier one turns up that had been lost, the peer begins there after all and sends everything
// again. What has been taken before is then a duplicate. Far before, it is a sender that begins anew.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "assemble/message_table.hpp"
#include "core/units.hpp"
#include "roce/message_header.hpp"
#include "roce/message_source.hpp"
#include "roce/psn.hpp"
#include "roce/psn_account.hpp"
#include "roce/responder/taken_psns.hpp"
#include "wire/roce.hpp"

namespace weir::roce {

using core::TimeNs;

class InOrderReceiver {
public:
    struct Config {
        std::vector<MessageSource> sources;
        std::uint32_t psn_window = 1 << 16;         ///< PSNs that the account of each source remembers (a bit each)
        TimeNs timeout_ns = 500 * core::ns_per_ms;  ///< from a message's first packet
    };

    /// Throws core::UsageError for NumberBy::format without a format that carries numbers.
    InOrderReceiver(const Config& config, assemble::MessageTable& table);
    InOrderReceiver(const InOrderReceiver&) = delete;
    InOrderReceiver& operator=(const InOrderReceiver&) = delete;

    /// What so many sources take.
    [[nodiscard]] static std::uint64_t memory_bytes(std::size_t sources, std::uint32_t psn_window) noexcept {
        return sources * (sizeof(Stream) + sizeof(PsnCounts) + psn_window / 8);
    }

    [[nodiscard]] bool serves(std::uint32_t source) const noexcept {
        return source < slot_by_source_.size() && slot_by_source_[source] != none;
    }
    /// Adds a packet that the Responder has accepted. Takes the buffer: it ends in a message or is given back.
    void add(std::uint32_t source, const wire::RocePacket& packet, void* buffer, TimeNs now) noexcept;
    /// The Responder has accepted a packet of which somebody else makes something: its turn is over.
    void skip(std::uint32_t source, const wire::RocePacket& packet, TimeNs now) noexcept;
    /// A packet of the connection that was not accepted: only its PSN is taken note of.
    void note(std::uint32_t source, const wire::RocePacket& packet) noexcept;

    /// Ends what is due at `now`. `add` and `skip` do so themselves.
    void expire(TimeNs now) noexcept;
    /// End of run: ends everything.
    void finish(TimeNs now) noexcept;
    /// The same packets come once more (a looped capture): ends everything, and forgets connections and counts.
    void begin_pass(TimeNs now) noexcept;
    /// Ends the message that was opened first. False if there is none.
    bool evict_oldest(TimeNs now) noexcept;
    /// When that was opened; `never` if there is none.
    [[nodiscard]] TimeNs oldest_ns() const noexcept { return first_ != none ? streams_[first_].first_ns : never; }
    static constexpr TimeNs never = std::numeric_limits<TimeNs>::max();

    /// The peer of `source` is gone, or begins anew: ends what it has begun. With NumberBy::count its next message has
    /// the number after the highest so far. `first_psn`: of the new connection, where it is known.
    void forget(std::uint32_t source, TimeNs now, std::optional<std::uint32_t> first_psn = {}) noexcept;

    /// Which PSNs of `source` came; for any thread.
    [[nodiscard]] PsnCounts::Values psn_counts(std::uint32_t source) const noexcept {
        return psn_counts_[slot_by_source_[source]].values();
    }
    /// Messages that are being collected.
    [[nodiscard]] std::uint32_t collecting() const noexcept { return collecting_; }

private:
    static constexpr std::uint32_t none = 0xffffffff;

    /// One source, which has one peer at a time.
    struct Stream {
        Stream(const MessageSource& from, std::uint32_t psn_window)
            : config(from), first_psn(from.first_psn), account(psn_window) {}
        MessageSource config;
        std::optional<std::uint32_t> first_psn{};  ///< of the connection
        bool known = false;                        ///< who sends
        bool begun = false;                        ///< a packet has been taken
        Psn next = 0;                              ///< after the last packet taken
        Psn first = 0;                             ///< of the first one
        TakenPsns taken;                           ///< before the peer began earlier: comes again

        assemble::Message* message = nullptr;  ///< that is being collected
        Psn begin = 0;                         ///< its first packet
        TimeNs first_ns = 0;
        std::uint32_t dma_length = 0;  ///< WRITE
        bool is_write = false;
        /// What still comes of a message that ended before its last packet.
        wire::PacketCounter fate = wire::PacketCounter::unbound;
        std::uint32_t previous = none;  ///< of those that collect, in the order in which they began
        std::uint32_t following = none;

        std::uint64_t next_arrival = 0;
        // NumberBy::count
        bool counting = false;    ///< origin is known
        bool count_lost = false;  ///< how many messages there were before the next one
        Psn origin = 0;           ///< start of message 0
        std::uint64_t next_number = 0;
        std::uint64_t count_base = 0;  ///< number of message 0
        std::uint64_t count_end = 0;   ///< after the highest number given so far

        PsnAccount account;
    };

    [[nodiscard]] Stream& stream_of(std::uint32_t source, const wire::RocePacket& packet) noexcept;
    [[nodiscard]] Psn take_turn(Stream& stream, const wire::RocePacket& packet, TimeNs now) noexcept;
    [[nodiscard]] bool begin_earlier(Stream& stream, Psn psn) noexcept;
    void restart(Stream& stream, Psn psn, TimeNs now) noexcept;
    /// Whether one more packet finds its place, in a message of its own if it starts one.
    [[nodiscard]] bool has_place(const wire::RocePacket& packet) const noexcept {
        return table_.has_room(1) && (!packet.starts() || table_.messages_free() > 0);
    }
    void open(Stream& stream, const wire::RocePacket& packet, TimeNs now) noexcept;
    void refuse(Stream& stream, void* buffer) noexcept;
    void complete(Stream& stream, const wire::RocePacket& packet, TimeNs now) noexcept;
    void close(Stream& stream, TimeNs now) noexcept;
    [[nodiscard]] assemble::Message& release(Stream& stream) noexcept;
    [[nodiscard]] std::optional<std::uint64_t> number_of_whole(Stream& stream, const wire::RocePacket& last,
                                                               std::uint32_t packets) noexcept;
    [[nodiscard]] std::optional<std::uint64_t> number_of_partial(Stream& stream, const assemble::Message& message,
                                                                 std::uint32_t total) noexcept;
    static void begin_counting(Stream& stream) noexcept;
    [[nodiscard]] static std::optional<std::uint64_t> counted(Stream& stream, std::uint32_t packets) noexcept;
    static void lose_count(Stream& stream) noexcept;
    static void begin_anew(Stream& stream, std::optional<std::uint32_t> first_psn) noexcept;
    void deliver(Stream& stream, assemble::Message& message, std::uint32_t total, std::uint64_t number,
                 TimeNs now) noexcept;
    [[nodiscard]] PsnCounts& counts_of(const Stream& stream) noexcept {
        return psn_counts_[static_cast<std::size_t>(&stream - streams_.data())];
    }

    TimeNs timeout_ns_;
    std::uint32_t psn_window_;
    assemble::MessageTable& table_;
    std::vector<Stream> streams_;
    std::vector<PsnCounts> psn_counts_;  ///< by index into streams_
    std::vector<std::uint32_t> slot_by_source_;
    std::uint32_t first_ = none;
    std::uint32_t last_ = none;
    std::uint32_t collecting_ = 0;
    MessageHeader header_;
};

}  // namespace weir::roce
