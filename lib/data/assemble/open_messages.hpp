// The life of the messages of one rx lcore: how they are opened, announced and found again, and how each comes to its
// one end: delivered, refused, abandoned, timed out; and back to the pool. What speaks for a number, or against it
// (that it has been before, that its source has begun again), is decided here; what is in packets is the business of
// MessageTable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "assemble/counters.hpp"
#include "assemble/descriptor_queues.hpp"
#include "assemble/event_room.hpp"
#include "assemble/message.hpp"
#include "assemble/message_config.hpp"
#include "assemble/message_index.hpp"
#include "assemble/message_list.hpp"
#include "assemble/message_memory.hpp"
#include "assemble/message_pool.hpp"
#include "assemble/number_memory.hpp"
#include "assemble/number_range.hpp"
#include "assemble/origin.hpp"
#include "assemble/overload.hpp"
#include "assemble/pass_numbers.hpp"
#include "assemble/probation.hpp"
#include "assemble/received_ranges.hpp"
#include "assemble/sequence_order.hpp"
#include "assemble/source_numbers.hpp"
#include "wire/fragment.hpp"
#include "wire/packet_counter.hpp"

namespace weir::assemble {

class OpenMessages {
public:
    OpenMessages(const MessageConfig& config, wire::PacketTally& packets, MessageTally& messages, MessageMemory& memory,
                 ReceivedRanges& ranges);
    [[nodiscard]] static std::uint64_t memory_bytes(const MessageConfig& config) noexcept;

    /// What is known of one source.
    struct Source {
        Source(std::uint32_t horizon, unsigned bits, bool touch)
            : numbers(bits), memory(horizon, 0, touch), origins(horizon, touch) {}
        TimeNs due_ns = never;     ///< nothing in the lists is due before
        bool in_sequence = false;  ///< see Fragment::in_sequence
        Probation probation;
        SourceNumbers numbers;
        std::uint32_t epoch = 0;
        TimeNs refused_until_ns;  ///< until then a refused number is refused; later it is just an old one
        NumberMemory memory;
        Origins origins;
        MessageList open;  ///< number known, collecting
    };
    [[nodiscard]] Source& source(std::uint32_t source) noexcept { return sources_[source]; }
    /// Of those that are open or on probation.
    [[nodiscard]] MessageIndex& index() noexcept { return index_; }
    [[nodiscard]] const MessagePool& pool() const noexcept { return pool_; }
    [[nodiscard]] SequenceOrder& order() noexcept { return order_; }

    // A packet's `origin` is that of a message which it begins.

    /// Where a packet for a number that is not open goes if it does not begin a new epoch; nothing for a new number.
    [[nodiscard]] static std::optional<wire::PacketCounter> fate_of(Source& from, std::uint64_t number,
                                                                    bool restarting) noexcept;
    /// The same after a look at the packet: for a number that has been whole it is a duplicate only if it is not fresh,
    /// and came from the same sender with the same header; else the number is used twice.
    [[nodiscard]] static wire::PacketCounter fate_of_packet(wire::PacketCounter fate, const Source& from,
                                                            std::uint64_t number, const wire::Fragment& fragment,
                                                            Origin origin) noexcept;

    // Beginnings: nullptr when there is no slot.

    [[nodiscard]] Message* open(std::uint32_t source, std::uint64_t number, const wire::Fragment& fragment,
                                Origin origin, TimeNs now) noexcept;
    [[nodiscard]] Message* open_probation(std::uint32_t source, std::uint64_t number, wire::PacketCounter fate,
                                          Origin origin, TimeNs now) noexcept;
    [[nodiscard]] Message* open_unbound(std::uint32_t source, TimeNs now) noexcept;
    [[nodiscard]] bool claim_event() noexcept {
        if (event_room_ == nullptr) return true;
        if (!claim_in_hand_) claim_in_hand_ = event_room_->claim();
        return claim_in_hand_;
    }
    void drop_claim() noexcept {
        if (claim_in_hand_) event_room_->give_back();
        claim_in_hand_ = false;
    }

    // Ends.

    /// All of it is here.
    void whole(Message& message, TimeNs now) noexcept;
    void bind_and_deliver(Message& message, std::uint64_t carried, TimeNs now) noexcept;
    void end_event(std::uint64_t number, EventCause cause, TimeNs now) noexcept;
    /// No place for the first packet of a message: the builder refuses the whole event. A refusal that finds no place
    /// either costs nothing but time: the event then waits for its time-out.
    void refuse(std::uint32_t source, std::uint64_t number, TimeNs now) noexcept;
    /// No place for a later packet of it. An event is never half admitted, so what has been taken goes too; the slot
    /// goes to the builder as the answer that it waits for, and comes back by command.
    void refuse_open(Message& message, TimeNs now) noexcept;
    void abandon(Message& message, wire::PacketCounter counter) noexcept;
    /// It was on probation, which came to nothing.
    void cancel(Message& message) noexcept;
    bool cancel_oldest_probation() noexcept;
    void recycle(Message& message) noexcept;

    void expire(TimeNs now) noexcept;
    void expire(Source& from, TimeNs now) noexcept;
    void hold_time(TimeNs time) noexcept { held_ns_ = time; }
    [[nodiscard]] TimeNs due_by(TimeNs now) const noexcept { return std::min(now, held_ns_); }
    void finish(TimeNs now) noexcept;
    void begin_pass(std::uint64_t shift, std::uint32_t epoch, TimeNs now) noexcept;
    [[nodiscard]] const NumberRange& numbers() const noexcept { return pass_numbers_.range(); }
    [[nodiscard]] std::uint32_t newest_epoch() const noexcept;
    void execute(const Command& command, TimeNs now) noexcept;
    [[nodiscard]] DescriptorQueues& pending() noexcept { return pending_; }
    [[nodiscard]] const DescriptorQueues& pending() const noexcept { return pending_; }

private:
    [[nodiscard]] static std::uint32_t horizon_of(const MessageConfig& config, std::uint32_t source) noexcept;
    [[nodiscard]] static unsigned bits_of(const MessageConfig& config, std::uint32_t source) noexcept;
    [[nodiscard]] static PassNumbers pass_numbers_of(const MessageConfig& config);
    [[nodiscard]] static std::size_t pending_of(const MessageConfig& config) noexcept;

    [[nodiscard]] Message* allocate(std::uint32_t source, TimeNs now) noexcept;
    void opened(std::uint32_t source, std::uint64_t number) noexcept;
    void list(Message& message, MessageState state) noexcept;
    void forget_place(Message& message) noexcept;
    void push(Descriptor::Kind kind, const Message& message, Message* handed, TimeNs now) noexcept;
    void hand_over(Descriptor::Kind kind, Message& message, TimeNs now) noexcept;
    void deliver(Message& message, TimeNs now) noexcept;
    void deliver_rest(Message& message, TimeNs now) noexcept;
    void end_silent(Source& from, TimeNs now) noexcept;
    void whole_on_probation(Message& message, TimeNs now) noexcept;
    void restart(std::uint32_t source, TimeNs now) noexcept;
    void cancel_probation(std::uint32_t source) noexcept;
    void make_probation_room(Source& from) noexcept;
    void count(const Message& message, wire::PacketCounter counter) noexcept;
    void release_memory(Message& message) noexcept;

    TimeNs timeout_ns_;
    bool numbers_once_;
    bool waits_;
    std::uint32_t probation_max_;
    std::uint32_t handed_over_ = 0;  ///< messages that the builder has, or that are on their way back
    EventRoom* event_room_;
    wire::PacketTally& packets_;
    MessageTally& messages_;
    MessageMemory& memory_;
    ReceivedRanges& ranges_;
    std::vector<Source> sources_;
    MessagePool pool_;
    MessageIndex index_;
    SequenceOrder order_;
    bool claim_in_hand_ = false;  ///< for the next message
    TimeNs due_ns_ = never;       ///< no source's due_ns is before
    TimeNs held_ns_ = std::numeric_limits<TimeNs>::max();
    PassNumbers pass_numbers_;
    DescriptorQueues pending_;
};

}  // namespace weir::assemble
