// What the two levels of assembly hand to each other: messages made of references to received buffers, the descriptors
// that announce and deliver them, and the commands that come back. No DPDK here: a buffer is an opaque handle.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "assemble/copy_store.hpp"
#include "assemble/event_cause.hpp"
#include "assemble/origin.hpp"
#include "core/units.hpp"
#include "wire/packet_counter.hpp"

namespace weir::assemble {

using core::never;
using core::TimeNs;

/// When something that began at `first_ns` times out.
[[nodiscard]] constexpr TimeNs deadline_of(TimeNs first_ns, TimeNs timeout_ns) noexcept {
    constexpr TimeNs last = std::numeric_limits<TimeNs>::max();
    return first_ns > last - timeout_ns ? last : first_ns + timeout_ns;
}

/// One packet's payload inside a message, or a part of it where a packet came in several buffers. The bytes stay in the
/// received buffer until the event has left.
struct FragmentRef {
    void* buffer = nullptr;  ///< the mbuf (opaque here), given back when the message is recycled; null: copied
    const std::byte* data = nullptr;
    std::uint32_t offset = 0;  ///< in the message
    std::uint32_t bytes = 0;
    TimeNs time_ns = 0;
};
static_assert(sizeof(FragmentRef) == 32);

/// A run of references, chained. 31 references and the link make 1 KiB, which is also where it may lie: no reference is
/// in two cache lines, and a reference's address says which block it is in, and whether it is the last one.
struct alignas(1024) FragmentBlock {
    static constexpr std::uint32_t capacity = 31;
    FragmentBlock* next = nullptr;
    std::uint32_t count = 0;      ///< of references; in a message's last block once the message is sealed
    std::uint32_t continued = 0;  ///< a bit for each reference that is of the same packet as the one before it
    alignas(sizeof(FragmentRef)) std::array<FragmentRef, capacity> refs;

    /// Where `after` points right after a reference of a block: that block.
    [[nodiscard]] static FragmentBlock* before(FragmentRef* after) noexcept {
        auto* const last = reinterpret_cast<std::byte*>(after - 1);
        return reinterpret_cast<FragmentBlock*>(last - reinterpret_cast<std::uintptr_t>(last) % sizeof(FragmentBlock));
    }
    /// No reference of a block can be put there: it is the end of a full block, or nullptr.
    [[nodiscard]] static bool is_end(const FragmentRef* at) noexcept {
        return reinterpret_cast<std::uintptr_t>(at) % sizeof(FragmentBlock) == 0;
    }
};
static_assert(sizeof(FragmentBlock) == 1024);

/// A half-open interval of message bytes.
struct ByteRange {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
};

/// Received ranges beyond the inline ones, sorted; from a small pool because only badly shuffled messages need it.
struct RangeBlock {
    static constexpr std::uint32_t capacity = 1024;
    RangeBlock* next = nullptr;  ///< free list
    std::array<ByteRange, capacity> ranges;
};

enum class MessageState : std::uint8_t {
    free,
    unbound,    ///< collecting, event number not known yet
    open,       ///< collecting, event number known
    probation,  ///< its number has been before: a straggler, or the first of a new epoch
    closed,     ///< handed to the builder; the rx lcore no longer touches it
};

/// What one source sends for one event number, while it is collected and until its event has left. Owned by the rx
/// lcore that opened it until `closed`; then by the builder, the worker, and at last by the rx lcore again, which
/// recycles it.
struct alignas(core::cache_line_bytes) Message {
    static constexpr std::uint32_t inline_ranges = 6;
    static constexpr std::uint32_t slots_max = inline_ranges * 64;
    static constexpr std::uint32_t meta_bytes_max = 64;
    static constexpr std::size_t standing_at = 24;  ///< source, state and what follows it

    // Touched for every packet: this line, and no other; it ends with the first range, or the first 64 slots.
    std::uint64_t number = 0;  ///< extended to 64 bits, so that a wrapping counter never repeats
    std::uint32_t total = 0;   ///< declared bytes; meaningful if total_known
    std::uint32_t received_bytes = 0;
    std::uint32_t packets = 0;
    std::uint32_t slot_bytes = 0;  ///< not 0: packets of this size, and `slots` says which of them are here
    std::uint32_t source = 0;      ///< run-wide source id
    MessageState state = MessageState::free;
    bool total_known = false;
    bool complete = false;
    bool of_other_sender = false;  ///< origin.sender is not 0: none of its packets is regular
    std::uint32_t epoch = 0;
    std::uint16_t range_count = 0;
    bool has_more_ranges = false;     ///< more_ranges is set
    bool has_claim = false;           ///< a place in EventRoom is kept for its event
    FragmentRef* next_ref = nullptr;  ///< in the last block, right after its references; nullptr: there is no block
    TimeNs last_ns = 0;               ///< arrival of the last packet that was placed
    union {
        std::array<ByteRange, inline_ranges> ranges{};  ///< sorted, disjoint, not adjacent
        std::array<std::uint64_t, slots_max / 64> slots;
    };
    RangeBlock* more_ranges = nullptr;  ///< replaces `ranges` once there are too many
    FragmentBlock* first_block = nullptr;
    std::uint8_t* lease = nullptr;  ///< payload lies in memory that is lent until it is recycled; then this becomes 0
    CopyCell* cells = nullptr;      ///< payload that was copied out of its buffers
    TimeNs first_ns = 0;            ///< arrival of the first packet
    Origin origin;                  ///< of the first packet
    std::uint32_t first_sequence = 0;
    TimeNs total_ns = 0;          ///< arrival of the packet that declared `total`
    Message* previous = nullptr;  ///< in the list of its state, by time of opening
    Message* next = nullptr;
    std::uint32_t novelty = 0;  ///< on probation: Source::novelty when it was opened
    wire::PacketCounter fallback =
        wire::PacketCounter::late;  ///< on probation: where its packets go if it comes to nothing
    bool slots_refused = false;     ///< its packets are not all of one size
    bool whole_before = false;      ///< on probation: became whole
    bool in_sequence = false;       ///< `offset` of its references, and its ranges, are SequenceOrder's places
    bool begun = false;             ///< in_sequence: what came before its first packet was something else
    bool ended = false;             ///< in_sequence: and so was what came after its last one
    std::uint8_t meta_bytes = 0;
    std::uint16_t owner = 0;                     ///< index of the rx lcore that recycles it
    std::array<std::byte, meta_bytes_max> meta;  ///< detector header of the first packet that arrived

    [[nodiscard]] bool has_slot(std::uint32_t slot) const noexcept {
        return (slots[slot / 64] >> (slot % 64) & 1U) != 0;
    }
    /// Unless slot_bytes says otherwise.
    [[nodiscard]] const ByteRange* range_data() const noexcept {
        return has_more_ranges ? more_ranges->ranges.data() : ranges.data();
    }
    /// Source, state and what follows it, to be compared at once.
    [[nodiscard]] std::uint64_t standing() const noexcept {
        std::uint64_t standing = 0;
        std::memcpy(&standing, reinterpret_cast<const std::byte*>(this) + standing_at, sizeof standing);
        return standing;
    }
    /// That of a message of `source` which is open, of known size, and from the source's first sender. (What is open is
    /// not complete.)
    [[nodiscard]] static std::uint64_t open_standing(std::uint32_t source) noexcept {
        struct Standing {
            std::uint32_t source;
            MessageState state;
            bool total_known, complete, of_other_sender;
        };
        return std::bit_cast<std::uint64_t>(Standing{source, MessageState::open, true, false, false});
    }
    /// While references are added, only `next_ref` says how many the last block has: its own line is left alone.
    void seal() noexcept {
        if (next_ref == nullptr) return;
        FragmentBlock* const last = FragmentBlock::before(next_ref);
        last->count = static_cast<std::uint32_t>(next_ref - last->refs.data());
    }
};
static_assert(offsetof(Message, source) == Message::standing_at &&
              offsetof(Message, state) == Message::standing_at + 4 &&
              offsetof(Message, of_other_sender) == Message::standing_at + 7);
static_assert(offsetof(Message, slots) + sizeof(std::uint64_t) == core::cache_line_bytes);

/// From an rx lcore to the builder, by value through the ring.
struct Descriptor {
    enum class Kind : std::uint16_t {
        announce,  ///< a message was opened; a `deliver` follows, sooner or later
        deliver,   ///< `message` is closed and now belongs to the builder
        refuse,    ///< no room for the message: the builder refuses the whole event. With a `message` it answers an
                   ///< `announce`; the message is empty and wants to be recycled
        end,       ///< nothing more comes for the event; if it is not complete it is so for `cause`
    };
    Kind kind = Kind::announce;
    EventCause cause = EventCause::complete;
    std::uint32_t source = 0;
    std::uint64_t number = 0;
    std::uint32_t epoch = 0;
    std::uint32_t bytes = 0;  ///< declared bytes, or 0
    TimeNs first_ns = 0;
    TimeNs time_ns = 0;  ///< the rx lcore's time at which this happened
    Message* message = nullptr;
};
static_assert(sizeof(Descriptor) == 48);

/// From the builder to an rx lcore.
struct Command {
    enum class Kind : std::uint32_t {
        close,    ///< the event takes no more packets: deliver what there is of the message, count what still comes as
                  ///< `fate`
        recycle,  ///< the message has been consumed: give its buffers back
    };
    Kind kind = Kind::close;
    std::uint32_t source = 0;
    std::uint64_t number = 0;
    Message* message = nullptr;
    std::uint32_t epoch = 0;
    wire::PacketCounter fate = wire::PacketCounter::late;
};
static_assert(sizeof(Command) == 32);

}  // namespace weir::assemble
