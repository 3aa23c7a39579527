// An event, as its builder, a worker and whoever describes it see it; and the lists that a builder keeps events in.
#pragma once

#include <cstdint>
#include <span>

#include "assemble/event_cause.hpp"
#include "assemble/message.hpp"

namespace weir::assemble {

enum class EventState : std::uint8_t { free, open, closing, queued };

/// An event: one message (or none) per source.
struct Event {
    static constexpr std::uint32_t no_timer = ~0U;

    std::uint64_t number = 0;
    std::uint64_t sequence = 0;  ///< order of leaving its shard, from 0
    std::uint32_t epoch = 0;
    EventState state = EventState::free;
    EventCause cause = EventCause::complete;
    std::uint32_t complete_messages = 0;
    std::uint32_t unfinished = 0;  ///< messages that have begun and not come to their end, or that ended with gaps
    std::uint32_t ended = 0;       ///< of `unfinished`: those of which nothing more can come
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
    std::uint32_t timer_bucket = 0;  ///< of EventTimer; no_timer: in none
};

/// Events in the order in which they were put here, chained through `previous` and `next`.
class EventList {
public:
    [[nodiscard]] Event* first() const noexcept { return first_; }
    void push(Event& event) noexcept {
        event.previous = last_;
        event.next = nullptr;
        (last_ != nullptr ? last_->next : first_) = &event;
        last_ = &event;
    }
    void remove(Event& event) noexcept {
        (event.previous != nullptr ? event.previous->next : first_) = event.next;
        (event.next != nullptr ? event.next->previous : last_) = event.previous;
        event.previous = event.next = nullptr;
    }

private:
    Event* first_ = nullptr;
    Event* last_ = nullptr;
};

}  // namespace weir::assemble
