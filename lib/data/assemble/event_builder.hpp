// All sources of an event meet here: messages become events, and an event leaves exactly once. The builder is the only
// one that admits, refuses, times out and evicts; rx lcores announce what they open and are told what to close. It runs
// on one lcore, does not allocate after construction and knows time only from what it is given. There may be several,
// the shards of one builder: each has the events that assemble::ShardOf gives it, and they share their limits.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "assemble/command_queues.hpp"
#include "assemble/counters.hpp"
#include "assemble/event.hpp"
#include "assemble/event_admission.hpp"
#include "assemble/event_pool.hpp"
#include "assemble/event_room.hpp"
#include "assemble/event_timer.hpp"
#include "assemble/message.hpp"
#include "assemble/number_alignment.hpp"
#include "assemble/number_log.hpp"
#include "assemble/number_memory.hpp"
#include "assemble/overload.hpp"
#include "assemble/shard_board.hpp"
#include "assemble/shard_link.hpp"
#include "core/pointer_table.hpp"
#include "wire/packet_counter.hpp"

namespace weir::assemble {

class EventBuilder {
public:
    struct Config {
        std::uint32_t sources = 1;  ///< run-wide number of sources
        /// How many whole messages make an event complete, if no other message of it has begun and is not whole.
        std::uint32_t sources_needed = 1;
        std::uint32_t open_max = 64;  ///< events open at once, in all shards; at the limit `overload` decides
        std::uint32_t queued_max =
            16;  ///< events handed downstream and not released yet (all shards); then new ones wait or are refused
        TimeNs timeout_ns = 500 * core::ns_per_ms;
        std::uint32_t horizon = 1024;
        bool touch = false;  ///< as in MessageConfig
        /// No event number comes twice, and the end of each is told (Descriptor::Kind::end): nothing is remembered of
        /// numbers, and nothing times out.
        bool ends_told = false;
        bool wait = false;  ///< at queued_max: ask the input to wait, rather than refuse, whatever `overload` says
        Overload overload = Overload::evict_oldest;
        std::uint32_t prescale = 1;        ///< Overload::prescale: of how many events one is kept
        std::vector<std::uint16_t> owner;  ///< per source: the rx lcore that assembles it
        std::vector<std::uint8_t> number_bits;
        std::uint32_t rx_count = 1;
        std::uint32_t messages_max = 64;  ///< of one rx lcore: bounds the commands that can be outstanding
        std::uint32_t shard = 0;          ///< which one this is
        ShardBoard* board = nullptr;      ///< shared by the shards; null: there is only this one
        EventRoom* event_room = nullptr;  ///< where messages may have claimed places for their events
        NumberLog* numbers = nullptr;     ///< told of every event that leaves or is refused; may be null
    };

    EventBuilder(const Config& config, wire::PacketTally& packets, MessageTally& messages, EventTally& events);

    /// What one of this configuration takes, if all of it is used.
    [[nodiscard]] static std::uint64_t memory_bytes(const Config& config) noexcept;

    /// Takes one descriptor, in order of time over all rx lcores. False when it has to wait for a free slot (only with
    /// Config::wait); offer it again then.
    [[nodiscard]] bool offer(const Descriptor& descriptor) noexcept;
    /// Nothing with an earlier time will be offered: events whose time-out has come are closed.
    void advance(TimeNs now) noexcept;
    /// Of what the rx lcores may hold: the fullest of them. Some other builder of the run is overloaded.
    void watch(Fill rx_fill, bool others_overloaded) noexcept;
    /// Buffers are short and nothing that is queued will free some: makes room if the operator allows that, or if the
    /// input waits for it.
    void make_room() noexcept;
    /// Closes the event that was opened first. False when none is open.
    bool evict_oldest() noexcept;
    /// Every rx lcore has delivered all it had: closes what is open. Where a source that has gone on, to a later
    /// message that is whole, lacks something in an event, that has nothing to do with the end. `newest_whole`: of each
    /// shard.
    void finish(std::span<const std::span<const TimeNs>> newest_whole) noexcept;
    /// When the newest message of each source that became whole here began.
    [[nodiscard]] std::span<const TimeNs> newest_whole() const noexcept { return newest_whole_; }

    /// The next closed event, in order of closing, once all of its messages are here; nullptr when there is none.
    [[nodiscard]] Event* pop_closed() noexcept;
    /// An event has been consumed (its messages have been handed back to their owners): its slot is free again.
    void release(Event& event) noexcept;
    /// Drops a popped event here: messages go back to their owners, the slot is free again.
    void discard(Event& event, EventCounter counter) noexcept;

    /// Commands for rx lcore `rx`, in order.
    [[nodiscard]] std::span<const Command> commands(std::uint32_t rx) const noexcept { return commands_.of(rx); }
    void consume_commands(std::uint32_t rx, std::uint32_t count) noexcept { commands_.consume(rx, count); }

    /// Does what other shards have asked for, and tells them how things stand: at the end of each poll.
    void meet_shards() noexcept;
    /// Nothing more will be offered, so no other shard has to wait for what might have been.
    void end_input() noexcept;
    /// The event that makes room is in this shard (as far as is known).
    [[nodiscard]] bool has_oldest() const noexcept { return shards_.has_oldest(); }
    /// Events on their way to the sink, of all shards.
    [[nodiscard]] std::uint32_t queued_everywhere() const noexcept { return queued_ + shards_.others().queued; }

    /// Time as far as it has come: what was due before has been closed.
    [[nodiscard]] TimeNs now() const noexcept { return now_; }
    [[nodiscard]] std::uint32_t open_count() const noexcept { return open_count_; }
    [[nodiscard]] std::uint32_t queued_count() const noexcept { return queued_; }
    [[nodiscard]] std::uint32_t in_use() const noexcept { return pool_.in_use(); }
    [[nodiscard]] std::uint32_t slots() const noexcept { return pool_.size(); }
    [[nodiscard]] std::uint64_t placed_bytes() const noexcept { return placed_bytes_; }
    /// Overload::prescale: this builder has too much; how often that began; events taken since, while it lasted.
    [[nodiscard]] const Prescaler& prescaler() const noexcept { return admission_.prescaler(); }
    [[nodiscard]] std::uint64_t prescale_kept() const noexcept { return admission_.prescale_kept(); }

private:
    [[nodiscard]] static std::uint32_t slots_of(const Config& config) noexcept;
    [[nodiscard]] static std::size_t commands_of(const Config& config) noexcept;
    [[nodiscard]] static EventAdmission::Config admission_of(const Config& config) noexcept;

    /// Events but for closed ones that still wait for messages.
    [[nodiscard]] std::uint32_t held() const noexcept { return pool_.in_use() - awaiting_; }
    [[nodiscard]] ShardBoard::Account account() const noexcept;
    [[nodiscard]] EventAdmission::Standing standing() const noexcept;
    void publish_room() noexcept {
        if (config_.event_room != nullptr) config_.event_room->publish(config_.shard, held());
    }
    void end_claim(Message& message) noexcept;
    void follow_epoch(std::uint32_t epoch) noexcept;
    [[nodiscard]] bool is_remembered(std::uint32_t epoch) const noexcept {
        return epoch + epochs_remembered > newest_epoch_;
    }
    [[nodiscard]] NumberMemory& memory(std::uint32_t epoch) noexcept { return memory_[epoch % epochs_remembered]; }
    struct KeyOf {
        core::NumberKey operator()(const Event& event) const noexcept { return {event.number, event.epoch}; }
    };
    using EventTable = core::PointerTable<Event, KeyOf>;
    [[nodiscard]] Event* find(std::uint64_t number, std::uint32_t epoch) const noexcept {
        return table_.find({number, epoch});
    }
    [[nodiscard]] bool offer_number(const Descriptor& descriptor, std::uint64_t number) noexcept;
    void offer_known(const Descriptor& descriptor, Event& event) noexcept;
    Event& open(const Descriptor& descriptor, std::uint64_t number) noexcept;
    [[nodiscard]] wire::PacketCounter refuse_event(std::uint64_t number, std::uint32_t epoch,
                                                   EventAdmission::Ruling ruling) noexcept;
    void answer(const Descriptor& descriptor, wire::PacketCounter fate) noexcept;
    void attach(Event& event, Message& message) noexcept;
    [[nodiscard]] bool is_complete(const Event& event) const noexcept {
        return event.complete_messages >= config_.sources_needed &&
               (event.unfinished == 0 || event.complete_messages == config_.sources);
    }
    /// As many messages as are waited for have come to their end, some with gaps, and none is being collected.
    [[nodiscard]] bool has_ended(const Event& event) const noexcept {
        return event.ended > 0 && event.unfinished == event.ended &&
               event.complete_messages + event.ended >= config_.sources_needed;
    }
    void refuse_message(Message& message, wire::PacketCounter counter) noexcept;
    void account(Event& event, Message& message) noexcept;
    void close(Event& event, EventCause cause) noexcept;
    void answered(Event& event, std::uint32_t source) noexcept;
    void trim(Message& message, TimeNs deadline_ns) noexcept;
    void command_close(std::uint32_t source, std::uint64_t own_number, std::uint32_t epoch,
                       wire::PacketCounter fate) noexcept;
    void command_recycle(Message& message) noexcept;
    void recycle_messages(Event& event) noexcept;

    Config config_;
    wire::PacketTally& packets_;
    MessageTally& messages_;
    EventTally& events_;
    EventPool pool_;
    std::uint32_t queued_ = 0;
    std::uint32_t open_count_ = 0;
    std::uint32_t awaiting_ = 0;  ///< closed events that still wait for messages
    EventList open_;              ///< by order of opening
    EventList closed_;            ///< by order of closing
    EventTimer timer_;            ///< of those that are open
    EventTable table_;
    std::vector<NumberMemory> memory_;  ///< of the newest epochs, by epoch modulo their count
    std::uint32_t newest_epoch_ = 0;
    NumberAlignment alignment_;
    ShardLink shards_;
    EventAdmission admission_;
    TimeNs now_;
    std::vector<TimeNs> newest_whole_;
    std::uint64_t sequence_ = 0;
    std::uint64_t placed_bytes_ = 0;
    CommandQueues commands_;
};

}  // namespace weir::assemble
