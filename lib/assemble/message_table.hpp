// The messages that one rx lcore is collecting: fragments become messages here, in any order, interleaved with other
// messages. Bounded in everything; all memory is taken at construction. One lcore uses it, so nothing in it is atomic.
//
// Two ways in:
//  - `add` for formats in which every packet names its event number and its place (a detector header);
//  - `open_unbound` .. `bind_and_deliver` for transports that learn the number late (an RDMA immediate in the last
//  packet):
//    see roce/listener.hpp, which keeps its own order and only borrows messages, references and buffers from here.
// What leaves is a queue of descriptors for the builder, drained by the caller after each burst.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "assemble/descriptor_queues.hpp"
#include "assemble/event_room.hpp"
#include "assemble/message.hpp"
#include "assemble/number_memory.hpp"
#include "assemble/number_range.hpp"
#include "assemble/overload.hpp"
#include "core/counters.hpp"
#include "wire/fragment.hpp"

namespace weir::assemble {

/// Gives received buffers (mbufs) back to their pool, in bulk. Called on the rx lcore, at least once per burst.
using BufferRelease = void (*)(void** buffers, std::uint32_t count);

/// A part of one packet's payload, in a buffer of its own, after the part before it: a datagram that came in several.
struct Piece {
    void* buffer = nullptr;
    const std::byte* data = nullptr;
    std::uint32_t bytes = 0;
};

/// What adding an interval to the received ranges of a message did.
enum class RangeResult : std::uint8_t { added, duplicate, conflict, too_fragmented };

class MessageTable {
public:
    struct Config {
        std::uint16_t owner = 0;           ///< index of this rx lcore, stamped into its messages
        std::uint32_t sources = 1;         ///< run-wide number of sources; source ids are below it
        std::uint32_t messages_max = 64;   ///< messages at once: open, unbound, on probation and not yet recycled
        std::uint32_t buffers_max = 4096;  ///< references (so received buffers) held at once
        // Payload of up to copy_bytes_max bytes is copied, and its buffer given back at once, while at least
        // copy_above_held buffers are held: 0 for always.
        std::uint32_t copy_bytes_max = 0;
        std::uint32_t copy_above_held = 0;
        std::uint32_t copy_cells = 0;
        std::uint32_t copy_cell_bytes = 4096;
        std::uint32_t range_blocks = 16;  ///< messages at once with more separate ranges than fit inline
        std::uint32_t horizon = 1024;     ///< closed event numbers remembered, per source
        std::uint32_t message_bytes_max = 16U << 20;
        TimeNs timeout_ns = 500 * core::ns_per_ms;
        std::vector<std::uint8_t> number_bits{};  ///< per source: width of the event number on the wire, 1..64
        bool follows_numbers = false;             ///< a looped capture: keeps numbers() until begin_pass
        std::uint32_t shards = 1;                 ///< of the builder
        EventRoom* event_room = nullptr;          ///< null: nobody claims places for events
        std::vector<std::uint8_t> own{};          ///< per source: its packets come here; empty: those of all do
        bool keeps = false;                       ///< append_kept is used: messages without buffers or cells
        bool touch = false;                       ///< make the memory resident at once, rather than when it is used
    };

    /// What one of this configuration takes, if all of it is used.
    [[nodiscard]] static std::uint64_t memory_bytes(const Config& config) noexcept;

    MessageTable(const Config& config, core::PacketTally& packets, core::MessageTally& messages, BufferRelease release);
    ~MessageTable();
    MessageTable(const MessageTable&) = delete;
    MessageTable& operator=(const MessageTable&) = delete;

    /// Most packets of one look_ahead.
    static constexpr std::uint32_t look_ahead_max = 64;
    /// With fewer messages open than that, what `add` touches is in the second-level cache anyway.
    static constexpr std::uint32_t look_ahead_open = 512;
    /// Before packets are added: fetches what `add` will touch, for all of them at once, and says which message each
    /// probably joins (or nullptr).
    void look_ahead(std::span<const std::uint32_t> sources, const wire::Fragment* fragments,
                    Message** expected) noexcept;
    /// Adds one packet of `source`. Takes the buffer: it ends in a message, or is given back. Counts the packet.
    /// `expected` only saves a search.
    void add(std::uint32_t source, const wire::Fragment& fragment, void* buffer, TimeNs now,
             Message* expected = nullptr) noexcept;

    /// What the buffers of add_pieces are: each a packet of a datagram that came in IP fragments, or all of them the
    /// one packet that a device put into several buffers.
    enum class PiecesAre : std::uint8_t { packets, one_packet };
    /// As `add`, for a payload that lies in several buffers: they end together.
    void add_pieces(std::uint32_t source, const wire::Fragment& fragment, std::span<const Piece> pieces, TimeNs now,
                    PiecesAre are = PiecesAre::packets) noexcept;
    /// A buffer that is done with and of which nothing is to be counted.
    void give_back(void* buffer) noexcept { release_later(buffer); }

    /// Counts a packet that ends here and gives its buffer back.
    void reject(void* buffer, core::PacketCounter counter) noexcept;

    // Late binding. A message between open_unbound and bind_and_deliver / abandon belongs to the caller's bookkeeping.

    /// A message of `source` whose number is not known yet, or nullptr when there is no slot (then reject as no_room).
    Message* open_unbound(std::uint32_t source, TimeNs now) noexcept;
    /// Claims a place for the event of the message that open_unbound opens next. False: there is none. Without an
    /// EventRoom there always is.
    [[nodiscard]] bool claim_event() noexcept {
        if (config_.event_room == nullptr) return true;
        if (!claim_in_hand_) claim_in_hand_ = config_.event_room->claim();
        return claim_in_hand_;
    }
    /// No message was opened with it.
    void drop_claim() noexcept {
        if (claim_in_hand_) config_.event_room->give_back();
        claim_in_hand_ = false;
    }
    /// Appends a packet's payload without looking at ranges; the packet becomes in_flight. False when no reference is
    /// left (the buffer then still belongs to the caller). `offset` may be provisional: set it through `for_each_ref`.
    bool append(Message& message, void* buffer, const std::byte* data, std::uint32_t offset, std::uint32_t bytes,
                TimeNs now) noexcept;
    /// The same for a payload that lies at `data` in memory of the caller's, who keeps it there until the message is
    /// recycled (Message::lease): the buffer goes back at once. There must be room.
    void append_kept(Message& message, void* buffer, const std::byte* data, std::uint32_t offset, std::uint32_t bytes,
                     TimeNs now) noexcept;
    /// Moves everything in `from` after what is in `into` and recycles the empty `from`: two runs were one message.
    void splice(Message& into, Message& from) noexcept;
    /// Adds an interval to the message's received ranges.
    RangeResult add_range(Message& message, std::uint32_t begin, std::uint32_t end) noexcept;
    /// The number is known (as carried: number_bits wide) and the message ends: complete, or with the gaps that its
    /// ranges show. Offsets, ranges, total and `complete` must be set. A number that has been before ends as duplicate
    /// or late, or opens a new epoch; a second message for a number that is open ends as conflict.
    void bind_and_deliver(Message& message, std::uint64_t number, TimeNs now) noexcept;
    /// The message ends without an event: its packets go to `counter` (unbound, late, no_room, ...), buffers go back.
    void abandon(Message& message, core::PacketCounter counter) noexcept;

    /// Closes what is due at `now`: messages whose own first packet is a time-out old (the event's deadline cannot be
    /// later), and probation that led to nothing. `add` does so itself for the packet's source, so that no result
    /// depends on how often this is called; it is for when no packets come.
    void expire(TimeNs now) noexcept;
    /// Packets from this time on may still come by another way: until the next call nothing is due later than that, and
    /// no descriptor says that it is later.
    void hold_time(TimeNs time) noexcept { held_ns_ = time; }
    /// Up to when things are due once a packet of `now` has come.
    [[nodiscard]] TimeNs due_by(TimeNs now) const noexcept { return std::min(now, held_ns_); }
    /// Buffers are short: ends the oldest message on probation. False when there is none.
    bool cancel_oldest_probation() noexcept;
    /// End of run: delivers every open message as it is and settles probation.
    void finish(TimeNs now) noexcept;
    /// The same packets come once more: from here on every number is moved up by `shift`, each source counts anew in
    /// its narrow numbers, and is in `epoch` (not below the one that it is in). What is open stays open; what is on
    /// probation has come to nothing.
    void begin_pass(std::uint64_t shift, std::uint32_t epoch, TimeNs now) noexcept;
    /// The numbers that messages opened under, before the first begin_pass.
    [[nodiscard]] const NumberRange& numbers() const noexcept { return numbers_; }
    [[nodiscard]] std::uint32_t newest_epoch() const noexcept;
    /// What the builder asks for.
    void execute(const Command& command, TimeNs now) noexcept;

    /// Descriptors for a shard of the builder, in order. The caller takes a prefix and says how many it took.
    [[nodiscard]] std::span<const Descriptor> pending(std::uint32_t shard = 0) const noexcept {
        return pending_.of(shard);
    }
    void consume_pending(std::uint32_t count, std::uint32_t shard = 0) noexcept { pending_.consume(shard, count); }
    /// No shard has any left to take.
    [[nodiscard]] bool all_sent() const noexcept { return pending_.empty(); }
    /// Shards that get anything: fewer than configured where numbers are too narrow.
    [[nodiscard]] std::uint32_t shards() const noexcept { return pending_.shards(); }
    /// End of a burst: rejected buffers go back to their pool.
    void end_burst() noexcept;

    [[nodiscard]] std::uint32_t buffers_held() const noexcept { return buffers_held_; }
    [[nodiscard]] std::uint32_t buffers_max() const noexcept { return config_.buffers_max; }
    /// Whether `packets` more packets find room, whatever they carry.
    [[nodiscard]] bool has_room(std::uint32_t packets) const noexcept {
        return blocks_free_ >= packets && buffers_held_ + packets <= config_.buffers_max;
    }
    [[nodiscard]] std::uint32_t messages_free() const noexcept { return messages_free_; }
    /// How full it is: of buffers and of messages, whichever is closer to its limit.
    [[nodiscard]] Fill fill() const noexcept {
        return std::max(fill_of(buffers_held_, config_.buffers_max),
                        fill_of(config_.messages_max - messages_free_, config_.messages_max));
    }

    /// Visits the references of a message in order of arrival.
    template <class Visitor>
    static void for_each_ref(Message& message, Visitor&& visit) {
        for (FragmentBlock* block = message.first_block; block != nullptr; block = block->next)
            for (std::uint32_t i = 0; i < block->count; ++i) visit(block->refs[i]);
    }

private:
    /// Several whole messages in increasing order, with nothing new in between, are a restart. Three messages are not
    /// enough where a message is one packet: a switch that repeats a few packets would pass. So eight packets as well.
    static constexpr std::uint32_t restart_messages = 3;
    static constexpr std::uint32_t restart_packets = 8;
    /// Messages on probation at once, per source: as many as a restarted source may interleave.
    static constexpr std::uint32_t probation_max = 64;

    struct MessageList {  // intrusive, by time of the first packet
        Message* first = nullptr;
        Message* last = nullptr;
        void insert(Message& message) noexcept;
        void remove(Message& message) noexcept;
    };
    /// What speaks for a restart: an unbroken run of whole messages on probation, of rising numbers. It outlives the
    /// messages, which may time out before a slow source has sent enough of them.
    struct Evidence {
        std::uint32_t messages = 0;
        std::uint32_t packets = 0;
        std::uint64_t first = 0;  ///< number of the first message of the run
        std::uint64_t last = 0;
    };
    struct Source {
        Source(std::uint32_t horizon, unsigned bits) : numbers(bits), memory(horizon) {}
        Message* current = nullptr;  ///< the message of the last packet: in order, the table is not asked
        TimeNs due_ns;               ///< nothing in the lists is due before
        Evidence evidence;
        NumberExtension numbers;
        std::uint64_t shift = 0;   ///< what this pass over a capture adds to them
        std::uint64_t turn = 0;    ///< in numbers_: makes the narrow counter meet those of other sources
        bool followed = false;     ///< turn is known
        std::uint64_t newest = 0;  ///< the number that opened last
        std::uint32_t epoch = 0;
        std::uint32_t probation_count = 0;
        std::uint32_t novelty = 0;  ///< moves with every packet taken for this epoch while there is probation
        TimeNs refused_until_ns;    ///< until then a refused number is refused; later it is just an old one
        NumberMemory memory;
        MessageList open;  ///< number known, collecting
        MessageList probation;
    };

    /// What the packet says, as a number of 64 bits.
    [[nodiscard]] static std::uint64_t number_of(Source& from, std::uint64_t carried) noexcept {
        return from.numbers.extend(carried) + from.shift;
    }
    void opened(std::uint32_t source, std::uint64_t number) noexcept;
    void follow(std::uint32_t source, std::uint64_t number) noexcept;
    /// What makes a number unique in the table.
    [[nodiscard]] static constexpr std::uint64_t scope_of(std::uint32_t source, std::uint32_t epoch) noexcept {
        return (std::uint64_t{source} << 32U) | epoch;
    }
    [[nodiscard]] Message* find(std::uint32_t source, std::uint64_t number, std::uint32_t epoch) noexcept;
    [[nodiscard]] Message* find_open(const Source& from, std::uint32_t source, std::uint64_t number,
                                     Message* expected) noexcept;
    [[nodiscard]] static bool continues(const Message& message, const wire::Fragment& fragment) noexcept;
    [[nodiscard]] Message* find_or_open(std::uint32_t source, const wire::Fragment& fragment, TimeNs now,
                                        Message* expected, core::PacketCounter& verdict) noexcept;
    [[nodiscard]] RangeResult add_place(Message& message, std::uint32_t begin, std::uint32_t end) noexcept;
    [[nodiscard]] static bool use_slots(Message& message, std::uint32_t begin, std::uint32_t end) noexcept;
    static void use_ranges(Message& message) noexcept;
    [[nodiscard]] std::optional<core::PacketCounter> fate_of(Source& from, std::uint64_t number,
                                                             bool restarting) noexcept;
    [[nodiscard]] static std::optional<core::PacketCounter> contradicts(std::optional<core::PacketCounter> fate,
                                                                        const wire::Fragment& fragment) noexcept;
    [[nodiscard]] static bool is_restarting(const Source& from, std::uint64_t number) noexcept;
    [[nodiscard]] core::PacketCounter check(Message& message, const wire::Fragment& fragment) noexcept;
    [[nodiscard]] Message* open_known(std::uint32_t source, std::uint64_t number, const wire::Fragment& fragment,
                                      TimeNs now) noexcept;
    [[nodiscard]] Message* open_probation(std::uint32_t source, std::uint64_t number, core::PacketCounter fate,
                                          TimeNs now) noexcept;
    [[nodiscard]] Message* allocate(std::uint32_t source, TimeNs now) noexcept;
    void list(Message& message, MessageState state) noexcept;
    [[nodiscard]] core::PacketCounter admit(std::uint32_t source, const wire::Fragment& fragment, std::uint32_t buffers,
                                            TimeNs now, Message* expected, Message*& message) noexcept;
    static void describe(Message& message, const wire::Fragment& fragment, TimeNs now) noexcept;
    void deliver_if_whole(Message& message, TimeNs now) noexcept;
    void commit(Message& message, const wire::Fragment& fragment, void* buffer, TimeNs now) noexcept;
    void deliver(Message& message, TimeNs now) noexcept;
    void refuse(std::uint32_t source, std::uint64_t number, TimeNs now) noexcept;
    void refuse_open(Message& message, TimeNs now) noexcept;
    void whole_on_probation(Message& message, TimeNs now) noexcept;
    void restart(std::uint32_t source, TimeNs now) noexcept;
    void cancel_probation(std::uint32_t source) noexcept;
    void cancel(Message& message) noexcept;
    void expire(Source& from, TimeNs now) noexcept;
    void settle(const Message& message, core::PacketCounter counter) noexcept;
    void forget_place(Message& message) noexcept;
    void release_memory(Message& message) noexcept;
    void recycle(Message& message) noexcept;
    void push(Descriptor::Kind kind, const Message& message, Message* handed, TimeNs now) noexcept;
    void release_later(void* buffer) noexcept;
    void join_last(Message& message) noexcept;
    [[nodiscard]] FragmentBlock* take_block() noexcept;
    [[nodiscard]] RangeBlock* take_ranges() noexcept;

    Config config_;
    core::PacketTally& packets_;
    core::MessageTally& messages_;
    BufferRelease release_;
    std::vector<Source> sources_;
    std::unique_ptr<Message[]> slab_;
    struct Freer {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    [[nodiscard]] static std::size_t blocks_of(const Config& config) noexcept;
    [[nodiscard]] static std::uint32_t horizon_of(const Config& config, std::uint32_t source) noexcept;

    std::unique_ptr<FragmentBlock, Freer> block_slab_;
    FragmentBlock* fresh_block_ = nullptr;  ///< blocks from here on have never been used
    std::unique_ptr<RangeBlock, Freer> range_slab_;
    RangeBlock* fresh_range_ = nullptr;  ///< likewise, `ranges_left_` of them
    std::uint32_t ranges_left_ = 0;
    Message* free_messages_ = nullptr;
    FragmentBlock* free_blocks_ = nullptr;
    RangeBlock* free_ranges_ = nullptr;
    std::uint32_t messages_free_ = 0;
    bool claim_in_hand_ = false;  ///< for the next message
    std::uint32_t buffers_held_ = 0;
    std::uint32_t blocks_free_ = 0;
    CopyStore copies_;
    core::FlatTable<Message*> open_;
    TimeNs due_ns_;  ///< no source's due_ns is before
    TimeNs held_ns_ = std::numeric_limits<TimeNs>::max();
    NumberRange numbers_;
    DescriptorQueues pending_;
    std::vector<void*> to_release_;
};

}  // namespace weir::assemble
