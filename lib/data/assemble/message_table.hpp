// The messages that one rx lcore is collecting: fragments become messages here, in any order, interleaved with other
// messages. Bounded in everything; all memory is taken at construction. One lcore uses it, so nothing in it is atomic.
//
// Two ways in:
//  - `add` for formats in which every packet names its event number and its place (a detector header);
//  - `open_unbound` .. `bind_and_deliver` for transports that learn the number late (an RDMA immediate in the last
//    packet): see roce/, which keeps its own order and only borrows messages, references and buffers from here.
// What leaves is a queue of descriptors for the builder, drained by the caller after each burst.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "assemble/counters.hpp"
#include "assemble/message.hpp"
#include "assemble/message_config.hpp"
#include "assemble/message_memory.hpp"
#include "assemble/number_range.hpp"
#include "assemble/open_messages.hpp"
#include "assemble/origin.hpp"
#include "assemble/overload.hpp"
#include "assemble/received_ranges.hpp"
#include "wire/fragment.hpp"
#include "wire/packet_counter.hpp"

namespace weir::assemble {

/// A part of one packet's payload, in a buffer of its own, after the part before it: a datagram that came in several.
struct Piece {
    void* buffer = nullptr;
    const std::byte* data = nullptr;
    std::uint32_t bytes = 0;
};

class MessageTable {
public:
    using Config = MessageConfig;

    /// What one of this configuration takes, if all of it is used.
    [[nodiscard]] static std::uint64_t memory_bytes(const Config& config) noexcept;

    MessageTable(const Config& config, wire::PacketTally& packets, MessageTally& messages, BufferRelease release);
    ~MessageTable();
    MessageTable(const MessageTable&) = delete;
    MessageTable& operator=(const MessageTable&) = delete;

    /// Most packets of one add_burst.
    static constexpr std::uint32_t burst_max = 64;
    /// Packets that came one after the other, field by field.
    struct Arrivals {
        std::span<const std::uint32_t> sources;
        const wire::Fragment* fragments = nullptr;
        void* const* buffers = nullptr;
        const TimeNs* times = nullptr;
    };
    /// Adds all of them in order. Takes their buffers: each ends in a message, or is given back. Counts the packets.
    ///
    /// In two passes: the first says for each packet which message it probably joins, and fetches what the second
    /// touches. The second places the regular ones: of an open message that they agree with, right after its packets,
    /// or on its grid. Whatever is odd in any respect goes through add_any.
    void add_burst(const Arrivals& burst) noexcept;
    /// The same for one packet.
    void add(std::uint32_t source, const wire::Fragment& fragment, void* buffer, TimeNs now) noexcept {
        add_burst({{&source, 1}, &fragment, &buffer, &now});
    }
    /// The same, by the way that knows every case.
    void add_any(std::uint32_t source, const wire::Fragment& fragment, void* buffer, TimeNs now) noexcept;

    /// What the buffers of add_pieces are: each a packet of a datagram that came in IP fragments, or all of them the
    /// one packet that a device put into several buffers.
    enum class PiecesAre : std::uint8_t { packets, one_packet };
    /// As `add`, for a payload that lies in several buffers: they end together.
    void add_pieces(std::uint32_t source, const wire::Fragment& fragment, std::span<const Piece> pieces, TimeNs now,
                    PiecesAre are = PiecesAre::packets) noexcept;
    /// A heartbeat came, which has a number among the packets of its source (Fragment::in_sequence).
    void note_heartbeat(std::uint32_t source, const wire::Fragment& fragment, TimeNs now) noexcept;
    /// A buffer that is done with and of which nothing is to be counted.
    void give_back(void* buffer) noexcept { memory_.give_back(buffer); }

    /// Counts a packet that ends here and gives its buffer back.
    void reject(void* buffer, wire::PacketCounter counter) noexcept;

    // Late binding. A message between open_unbound and bind_and_deliver / abandon belongs to the caller's bookkeeping.

    /// A message of `source` whose number is not known yet, or nullptr when there is no slot (then reject as no_room).
    Message* open_unbound(std::uint32_t source, TimeNs now) noexcept { return open_.open_unbound(source, now); }
    /// Claims a place for the event of the message that open_unbound opens next. False: there is none. Without an
    /// EventRoom there always is.
    [[nodiscard]] bool claim_event() noexcept { return open_.claim_event(); }
    /// No message was opened with it.
    void drop_claim() noexcept { open_.drop_claim(); }
    /// For messages that were packets somewhere else: it stands for so many of them.
    void set_packets(Message& message, std::uint32_t packets) noexcept {
        packets_.add(wire::PacketCounter::in_flight, packets);
        packets_.subtract(wire::PacketCounter::in_flight, message.packets);
        message.packets = packets;
    }
    /// Appends a packet's payload without looking at ranges; the packet becomes in_flight. False when no reference is
    /// left (the buffer then still belongs to the caller). `offset` may be provisional: set it through `for_each_ref`.
    bool append(Message& message, void* buffer, const std::byte* data, std::uint32_t offset, std::uint32_t bytes,
                TimeNs now) noexcept {
        return memory_.append(message, buffer, data, offset, bytes, now);
    }
    /// The same for a packet in a buffer, where has_room has said yes. The caller counts it as in_flight, with `took`.
    void put(Message& message, void* buffer, const std::byte* data, std::uint32_t offset, std::uint32_t bytes,
             TimeNs now) noexcept {
        memory_.put(message, buffer, data, offset, bytes, now);
    }
    void took(std::uint32_t packets) noexcept { packets_.add(wire::PacketCounter::in_flight, packets); }
    /// The same as `append` for a payload that lies at `data` in memory of the caller's, who keeps it there until the
    /// message is recycled (Message::lease): the buffer goes back at once. There must be room.
    void append_kept(Message& message, void* buffer, const std::byte* data, std::uint32_t offset, std::uint32_t bytes,
                     TimeNs now) noexcept;
    /// Moves everything in `from` after what is in `into` and recycles the empty `from`: two runs were one message.
    void splice(Message& into, Message& from) noexcept;
    /// Adds an interval to the message's received ranges.
    RangeResult add_range(Message& message, std::uint32_t begin, std::uint32_t end) noexcept {
        return ranges_.add_range(message, begin, end);
    }
    /// The number is known (as carried: number_bits wide) and the message ends: complete, or with the gaps that its
    /// ranges show. Offsets, ranges, total and `complete` must be set. A number that has been before ends as duplicate
    /// or late, or opens a new epoch; a second message for a number that is open ends as conflict.
    void bind_and_deliver(Message& message, std::uint64_t number, TimeNs now) noexcept {
        open_.bind_and_deliver(message, number, now);
    }
    /// Nothing more comes for the event: see Descriptor::Kind::end.
    void end_event(std::uint64_t number, EventCause cause, TimeNs now) noexcept { open_.end_event(number, cause, now); }
    /// The message ends without an event: its packets go to `counter` (unbound, late, no_room, ...), buffers go back.
    void abandon(Message& message, wire::PacketCounter counter) noexcept { open_.abandon(message, counter); }

    /// Closes what is due at `now`: messages whose own first packet is a time-out old (the event's deadline cannot be
    /// later), and probation that led to nothing. `add` does so itself for the packet's source, so that no result
    /// depends on how often this is called; it is for when no packets come.
    void expire(TimeNs now) noexcept { open_.expire(now); }
    /// Packets from this time on may still come by another way: until the next call nothing is due later than that, and
    /// no descriptor says that it is later.
    void hold_time(TimeNs time) noexcept { open_.hold_time(time); }
    /// Up to when things are due once a packet of `now` has come.
    [[nodiscard]] TimeNs due_by(TimeNs now) const noexcept { return open_.due_by(now); }
    /// Buffers or messages are short: ends the oldest message on probation. False when there is none, or when waiting
    /// for messages that come back is enough (Config::waits).
    bool cancel_oldest_probation() noexcept { return open_.cancel_oldest_probation(); }
    /// End of run: delivers every open message as it is and ends probation.
    void finish(TimeNs now) noexcept { open_.finish(now); }
    /// The same packets come once more: from here on every number is moved up by `shift`, each source counts anew in
    /// its narrow numbers, and is in `epoch` (not below the one that it is in). What is open stays open; what is on
    /// probation has come to nothing.
    void begin_pass(std::uint64_t shift, std::uint32_t epoch, TimeNs now) noexcept {
        open_.begin_pass(shift, epoch, now);
    }
    /// The numbers that messages opened under, before the first begin_pass.
    [[nodiscard]] const NumberRange& numbers() const noexcept { return open_.numbers(); }
    [[nodiscard]] std::uint32_t newest_epoch() const noexcept { return open_.newest_epoch(); }
    /// What the builder asks for.
    void execute(const Command& command, TimeNs now) noexcept { open_.execute(command, now); }

    /// Descriptors for a shard of the builder, in order. The caller takes a prefix and says how many it took.
    [[nodiscard]] std::span<const Descriptor> pending(std::uint32_t shard = 0) const noexcept {
        return open_.pending().of(shard);
    }
    void consume_pending(std::uint32_t count, std::uint32_t shard = 0) noexcept {
        open_.pending().consume(shard, count);
    }
    /// No shard has any left to take.
    [[nodiscard]] bool all_sent() const noexcept { return open_.pending().empty(); }
    /// Shards that get anything: fewer than configured where numbers are too narrow.
    [[nodiscard]] std::uint32_t shards() const noexcept { return open_.pending().shards(); }
    /// End of a burst: rejected buffers go back to their pool.
    void end_burst() noexcept { memory_.end_burst(); }

    [[nodiscard]] std::uint32_t buffers_held() const noexcept { return memory_.buffers_held(); }
    [[nodiscard]] std::uint32_t cells_held() const noexcept { return memory_.cells_held(); }
    [[nodiscard]] std::uint32_t buffers_max() const noexcept { return config_.buffers_max; }
    /// Whether `packets` more packets find room, whatever they carry.
    [[nodiscard]] bool has_room(std::uint32_t packets) const noexcept { return memory_.has_room(packets); }
    [[nodiscard]] std::uint32_t messages_free() const noexcept { return open_.pool().free_count(); }
    /// How full it is: of what payload takes and of messages, whichever is closer to its limit.
    [[nodiscard]] Fill fill() const noexcept {
        return std::max(memory_.fill(), fill_of(config_.messages_max - messages_free(), config_.messages_max));
    }

    /// Fetches where the message's next reference will be.
    static void prefetch_place(const Message& message) noexcept { __builtin_prefetch(message.next_ref, 1); }
    /// Visits the references of a message in order of arrival.
    template <class Visitor>
    static void for_each_ref(Message& message, Visitor&& visit) {
        message.seal();
        for (FragmentBlock* block = message.first_block; block != nullptr; block = block->next)
            for (std::uint32_t i = 0; i < block->count; ++i) visit(block->refs[i]);
    }

private:
    using Source = OpenMessages::Source;
    /// The message that a packet probably joins, or nullptr; its source, and its number in 64 bits.
    struct Guess {
        Message* message;
        Source* from;
        std::uint64_t number;
    };
    using Guesses = std::array<Guess, burst_max>;
    void look_ahead(const Arrivals& burst, Guesses& guesses) noexcept;
    [[nodiscard]] bool place_regular(const Guess& guess, std::uint32_t source, const wire::Fragment& fragment,
                                     void* buffer, TimeNs now) noexcept;
    [[nodiscard]] Message* find_or_open(std::uint32_t source, const wire::Fragment& fragment, Origin origin, TimeNs now,
                                        wire::PacketCounter& verdict) noexcept;
    [[nodiscard]] wire::PacketCounter check(Message& message, const wire::Fragment& fragment, Origin origin) noexcept;
    [[nodiscard]] static bool is_copy(Message& message, const wire::Fragment& fragment, Origin origin) noexcept;
    [[nodiscard]] wire::PacketCounter admit(std::uint32_t source, const wire::Fragment& fragment, Origin origin,
                                            std::uint32_t buffers, TimeNs now, Message*& message) noexcept;
    [[nodiscard]] static wire::PacketCounter admit_on_probation(Message& message, wire::PacketCounter verdict,
                                                                wire::PacketCounter fate) noexcept;
    void expire_before(std::uint32_t source, TimeNs now) noexcept;
    [[nodiscard]] static std::uint32_t offset_of(Message& message, const wire::Fragment& fragment) noexcept;
    [[nodiscard]] wire::PacketCounter check_in_sequence(Message& message, const wire::Fragment& fragment) noexcept;
    void follow_sequence(std::uint32_t source, const wire::Fragment& fragment, wire::PacketCounter verdict,
                         Message* joined, TimeNs now) noexcept;
    void connect(Message& message, std::uint32_t sequence, TimeNs now) noexcept;
    [[nodiscard]] std::uint32_t take_heartbeats(Message& message, std::uint32_t from, std::uint32_t step) noexcept;
    void meet(std::uint32_t source, std::uint32_t sequence, TimeNs now) noexcept;
    [[nodiscard]] Message* collecting(std::uint32_t source, const SequenceOrder::Owner* owner) noexcept;
    void end_if_proven(Message& message, TimeNs now) noexcept;
    void end_first(std::uint32_t source, TimeNs now) noexcept;
    static void describe(Message& message, const wire::Fragment& fragment, TimeNs now) noexcept;
    void deliver_if_whole(Message& message, TimeNs now) noexcept;
    void commit(Message& message, const wire::Fragment& fragment, void* buffer, TimeNs now) noexcept;

    Config config_;
    std::uint32_t fetched_bytes_max_;  ///< of payload that is fetched before it is placed, to be copied
    wire::PacketTally& packets_;
    MessageTally& messages_;
    MessageMemory memory_;
    ReceivedRanges ranges_;
    OpenMessages open_;
};

}  // namespace weir::assemble
