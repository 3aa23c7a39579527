// What became of messages and of events. Events go on to rooms after this one, and what ends them there is here, too:
// each event ends once.
#pragma once

#include "core/counters.hpp"

namespace weir::assemble {

/// What became of a message.
enum class MessageCounter : std::uint8_t {
    opened,
    delivered,
    refused_late,
    refused_no_room,
    refused_queue_full,
    refused_prescaled,
    refused_unbound,
    refused_duplicate,
    refused_conflict,
    count_
};

/// What became of an event.
enum class EventCounter : std::uint8_t {
    opened,
    refused_no_room,
    refused_queue_full,
    refused_prescaled,
    complete,
    incomplete_timeout,
    incomplete_evicted,
    incomplete_end_of_run,
    incomplete_no_room,
    incomplete_ended,
    incomplete_node_down,
    vetoed,
    dropped_incomplete,
    dropped_no_room,
    dropped_reduce_error,
    dropped_write_error,
    dropped_not_taken,
    written,
    count_
};

extern const std::array<core::CounterInfo, core::count_of<MessageCounter>> message_counters;
extern const std::array<core::CounterInfo, core::count_of<EventCounter>> event_counters;

using MessageTally = core::Tally<MessageCounter>;
using EventTally = core::Tally<EventCounter>;

}  // namespace weir::assemble
