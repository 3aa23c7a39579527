// All sources of an event meet here: messages become events, and an event leaves exactly once. The builder is the only
// one that admits, refuses, times out and evicts; rx lcores announce what they open and are told what to close. It runs
// on one lcore, does not allocate after construction and knows time only from what it is given. There may be several,
// the shards of one builder: each has the events that assemble::ShardOf gives it, and they share their limits.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "assemble/event_room.hpp"
#include "assemble/message.hpp"
#include "assemble/number_alignment.hpp"
#include "assemble/number_log.hpp"
#include "assemble/number_memory.hpp"
#include "assemble/overload.hpp"
#include "assemble/shard_board.hpp"
#include "core/counters.hpp"
#include "core/flat_table.hpp"

namespace weir::assemble {

enum class EventState : std::uint8_t { free, open, closing, queued };
enum class EventCause : std::uint8_t { complete, timeout, evicted, end_of_run, no_room };

/// The name of a cause, as in the report and the event file.
[[nodiscard]] const char* name_of(EventCause cause) noexcept;

/// An event: one message (or none) per source.
struct Event {
    std::uint64_t number = 0;
    std::uint64_t sequence = 0;  ///< order of leaving its shard, from 0
    std::uint32_t epoch = 0;
    EventState state = EventState::free;
    EventCause cause = EventCause::complete;
    std::uint32_t complete_messages = 0;
    std::uint32_t unfinished = 0;  ///< messages that have begun and not come to their end, or that ended with gaps
    std::uint32_t awaited = 0;     ///< messages announced and not delivered yet, once closing
    TimeNs first_ns = 0;
    TimeNs last_ns = 0;
    TimeNs deadline_ns = 0;             ///< packets from then on are late; once closed also where it ended before
    std::span<Message*> messages;       ///< by source id
    std::span<std::uint8_t> announced;  ///< by source id: a delivery is still to come
    Event* previous = nullptr;          ///< open events, by order of opening; later the queue of closed ones
    Event* next = nullptr;
    Event* timer_previous = nullptr;
    Event* timer_next = nullptr;
    std::uint32_t timer_bucket = 0;  ///< no_timer: in none
};

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
        bool wait = false;  ///< at queued_max: ask the input to wait, rather than refuse
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

    EventBuilder(const Config& config, core::PacketTally& packets, core::MessageTally& messages,
                 core::EventTally& events);

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
    /// Every rx lcore has delivered all it had: closes what is open.
    void finish() noexcept;

    /// The next closed event, in order of closing, once all of its messages are here; nullptr when there is none.
    [[nodiscard]] Event* pop_closed() noexcept;
    /// An event has been consumed (its messages have been handed back to their owners): its slot is free again.
    void release(Event& event) noexcept;
    /// Drops a popped event here: messages go back to their owners, the slot is free again.
    void discard(Event& event, core::EventCounter counter) noexcept;

    /// Commands for rx lcore `rx`, in order.
    [[nodiscard]] std::span<const Command> commands(std::uint32_t rx) const noexcept;
    void consume_commands(std::uint32_t rx, std::uint32_t count) noexcept;

    /// Does what other shards have asked for, and tells them how things stand: at the end of each poll.
    void meet_shards() noexcept;
    /// Nothing more will be offered, so no other shard has to wait for what might have been.
    void end_input() noexcept;
    /// The event that makes room is in this shard (as far as is known).
    [[nodiscard]] bool has_oldest() const noexcept {
        return config_.board == nullptr || config_.board->oldest() == config_.shard;
    }
    /// Events on their way to the sink, of all shards.
    [[nodiscard]] std::uint32_t queued_everywhere() const noexcept {
        return queued_ + (config_.board != nullptr ? config_.board->others(config_.shard).queued : 0);
    }

    /// Time as far as it has come: what was due before has been closed.
    [[nodiscard]] TimeNs now() const noexcept { return now_; }
    [[nodiscard]] std::uint32_t open_count() const noexcept { return open_count_; }
    [[nodiscard]] std::uint32_t queued_count() const noexcept { return queued_; }
    [[nodiscard]] std::uint32_t in_use() const noexcept { return in_use_; }
    [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }
    [[nodiscard]] std::uint64_t placed_bytes() const noexcept { return placed_bytes_; }
    /// Overload::prescale: this builder has too much; how often that began; events taken since, while it lasted.
    [[nodiscard]] const Prescaler& prescaler() const noexcept { return prescaler_; }
    [[nodiscard]] std::uint64_t prescale_kept() const noexcept { return prescale_kept_; }

private:
    static constexpr std::uint32_t timer_buckets = 256;
    static constexpr std::uint32_t no_timer = timer_buckets;
    static constexpr std::uint32_t epochs_remembered = 4;
    enum class Refusal : std::uint8_t { none, wait, no_room, queue_full, prescaled };
    [[nodiscard]] static std::uint32_t slots_of(const Config& config) noexcept;
    [[nodiscard]] static std::size_t commands_of(const Config& config) noexcept;

    void publish_room() noexcept {
        if (config_.event_room != nullptr) config_.event_room->publish(config_.shard, in_use_ - awaiting_);
    }
    void end_claim(Message& message) noexcept;
    void follow_epoch(std::uint32_t epoch) noexcept;
    [[nodiscard]] NumberMemory& memory(std::uint32_t epoch) noexcept { return memory_[epoch % epochs_remembered]; }
    [[nodiscard]] Event* find(std::uint64_t number, std::uint32_t epoch) noexcept;
    [[nodiscard]] ShardBoard::Account others() const noexcept;
    [[nodiscard]] Fill fill(const ShardBoard::Account& others) const noexcept;
    [[nodiscard]] Refusal refusal_of(const Descriptor& descriptor, std::uint64_t number) noexcept;
    [[nodiscard]] core::PacketCounter refuse_event(std::uint64_t number, std::uint32_t epoch, Refusal refusal) noexcept;
    Event& admit(const Descriptor& descriptor, std::uint64_t number) noexcept;
    [[nodiscard]] bool offer_number(const Descriptor& descriptor, std::uint64_t number) noexcept;
    void offer_known(const Descriptor& descriptor, Event& event) noexcept;
    void answer(const Descriptor& descriptor, core::PacketCounter fate) noexcept;
    void attach(Event& event, Message& message) noexcept;
    [[nodiscard]] bool is_complete(const Event& event) const noexcept {
        return event.complete_messages >= config_.sources_needed &&
               (event.unfinished == 0 || event.complete_messages == config_.sources);
    }
    void refuse_message(Message& message, core::PacketCounter counter) noexcept;
    void settle(Event& event, Message& message) noexcept;
    void close(Event& event, EventCause cause) noexcept;
    void answered(Event& event, std::uint32_t source) noexcept;
    void trim(Message& message, TimeNs deadline_ns) noexcept;
    void command_close(std::uint32_t source, std::uint64_t own_number, std::uint32_t epoch,
                       core::PacketCounter fate) noexcept;
    void command_recycle(Message& message) noexcept;
    void push_command(std::uint16_t rx, const Command& command) noexcept;
    void recycle_messages(Event& event) noexcept;
    void make_place() noexcept;
    void publish() noexcept;
    void note_first(std::uint32_t epoch, std::uint64_t number) noexcept;
    [[nodiscard]] bool find_turn(const Event& event, std::uint64_t& turn) noexcept;
    void set_timer(Event& event) noexcept;
    void clear_timer(Event& event) noexcept;

    struct CommandQueue {
        std::vector<Command> commands;
        std::size_t first = 0;
    };

    Config config_;
    core::PacketTally& packets_;
    core::MessageTally& messages_;
    core::EventTally& events_;
    std::uint32_t slots_;
    std::unique_ptr<Event[]> slab_;
    std::vector<Message*> message_slots_;
    std::vector<std::uint8_t> announced_slots_;
    Event* free_ = nullptr;
    std::uint32_t in_use_ = 0;
    std::uint32_t queued_ = 0;
    std::uint32_t open_count_ = 0;
    std::uint32_t awaiting_ = 0;  ///< closed events that still wait for messages
    Event* open_first_ = nullptr;
    Event* open_last_ = nullptr;
    Event* closed_first_ = nullptr;
    Event* closed_last_ = nullptr;
    core::FlatTable<Event*> table_;
    std::vector<NumberMemory> memory_;  ///< of the newest epochs, by epoch modulo their count
    std::uint32_t newest_epoch_ = 0;
    NumberAlignment alignment_;
    /// The first event of an epoch here: what the shards have to agree about before any of the epoch leaves.
    struct First {
        enum class State : std::uint8_t { none, unposted, posted, agreed };
        State state = State::none;
        std::uint32_t epoch = 0;
        std::uint64_t number = 0;
        std::uint64_t turn = 0;  ///< what to add to numbers, once agreed
        TimeNs time_ns = 0;
    };
    std::array<First, epochs_remembered> firsts_;  ///< by epoch modulo their count
    bool holds_back_ = false;                      ///< an event could not leave for want of an agreement
    bool input_ended_ = false;
    struct TimerBucket {
        Event* first = nullptr;
        Event* last = nullptr;
    };
    std::vector<TimerBucket> timer_;  ///< each sorted by deadline, then by order of opening
    TimeNs timer_granule_ns_ = 1;
    TimeNs timer_next_ns_;  ///< no deadline is before it
    TimeNs now_;
    std::uint64_t sequence_ = 0;
    std::uint64_t placed_bytes_ = 0;
    Prescaler prescaler_;
    Fill rx_fill_ = Fill::low;
    bool others_overloaded_ = false;
    std::uint64_t prescale_kept_ = 0;
    std::vector<CommandQueue> commands_;
};

}  // namespace weir::assemble
