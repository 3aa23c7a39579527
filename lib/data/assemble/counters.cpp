#include "assemble/counters.hpp"

namespace weir::assemble {
namespace {

using core::Fate;

constexpr core::CounterFamily messages_refused{"messages_refused", "cause", "Messages that became part of no event."};
constexpr core::CounterFamily events_refused{"events_refused", "cause",
                                             "Events of which something came and that were not begun."};
constexpr core::CounterFamily events_incomplete{"events_incomplete", "cause",
                                                "Events that were closed and are not whole."};
constexpr core::CounterFamily events_not_written{"events_not_written", "cause",
                                                 "Closed events that are not in all sinks that must have them."};
constexpr core::CounterFamily events_dropped{"events_dropped", "cause", "Closed events that no sink was given."};

}  // namespace

constinit const std::array<core::CounterInfo, core::count_of<MessageCounter>> message_counters =
    core::make_counter_table<MessageCounter>({
        {MessageCounter::opened, "opened", "Messages of which at least one packet arrived.", Fate::none, nullptr, true},
        {MessageCounter::delivered, "delivered", "Messages that became part of an event, complete or not.", Fate::kept},
        {MessageCounter::refused_late, "refused.late",
         "Messages for events that had already left. See `dropped.late`: "
         "the sources or the network are further apart in time than `timeout_ms`.",
         Fate::lost, &messages_refused},
        {MessageCounter::refused_no_room, "refused.no_room",
         "Messages for which there was no memory. See `dropped.no_room`: "
         "raise `[events] memory` or find the missing source.",
         Fate::lost, &messages_refused},
        {MessageCounter::refused_queue_full, "refused.queue_full",
         "Messages of events that were refused because closed events waited for a worker or the disk. "
         "See `dropped.queue_full`.",
         Fate::lost, &messages_refused},
        {MessageCounter::refused_prescaled, "refused.prescaled",
         "Messages of events that were left out by `overload = \"prescale:N\"`. See `dropped.prescaled`.", Fate::lost,
         &messages_refused},
        {MessageCounter::refused_unbound, "refused.unbound",
         "Messages whose event number or beginning was never learnt. See `dropped.unbound`: "
         "packets were lost on the way.",
         Fate::lost, &messages_refused},
        {MessageCounter::refused_duplicate, "refused.duplicate",
         "Whole messages that had already arrived from the same source: "
         "a retransmission after its event was delivered, or a mirrored link seen twice. No data is lost.",
         Fate::spared, &messages_refused},
        {MessageCounter::refused_conflict, "refused.conflict",
         "A second, different message of one source for one event. Two boards with the same source, "
         "or a sender that uses one event number twice. The first one is kept.",
         Fate::lost, &messages_refused},
    });
constinit const std::array<core::CounterInfo, core::count_of<EventCounter>> event_counters = core::make_counter_table<
    EventCounter>({
    {EventCounter::opened, "opened", "Events of which at least one message was opened."},
    {EventCounter::refused_no_room, "refused.no_room",
     "Events of which nothing was taken, because there was no memory for them when they began; "
     "they are not among `opened`. Raise `[events] memory` or `window`, or find the source that keeps events open.",
     Fate::refused, &events_refused},
    {EventCounter::refused_queue_full, "refused.queue_full",
     "Events of which nothing was taken, "
     "because closed events waited for a worker or the disk and their queue was full; they are not among `opened`. "
     "The reducer or the disk is slower than the detector.",
     Fate::refused, &events_refused},
    {EventCounter::refused_prescaled, "refused.prescaled",
     "Events of which nothing was taken, because `overload = \"prescale:N\"` left them out while weir was overloaded; "
     "they are not among `opened`. The report's `overload` says how many were kept at that time.",
     Fate::refused, &events_refused},
    {EventCounter::complete, "complete",
     "Events for which every source sent everything. This is what you want to see grow."},
    {EventCounter::incomplete_timeout, "incomplete.timeout",
     "Events that still missed data `timeout_ms` after their first packet, or, where the run ended before that, data of "
     "a source that had gone on to a later event. Packets were lost, or a source does not send: the report's "
     "`sources` shows which one. Look there first, then at the link's loss.",
     Fate::partial, &events_incomplete},
    {EventCounter::incomplete_evicted, "incomplete.evicted",
     "Events closed early because memory or `window` was full. "
     "`timeout_ms` is longer than the memory lasts at this rate: raise `[events] memory`, or shorten `timeout_ms`; "
     "the start of the run prints which limit binds.",
     Fate::partial, &events_incomplete},
    {EventCounter::incomplete_end_of_run, "incomplete.end_of_run",
     "Events that were open when the run ended, and lack nothing of a source that had gone on to a later event. "
     "Those that a running detector was in the middle of sending, or that a capture ends in, are no loss: stop the "
     "detector first to have none.",
     Fate::partial, &events_incomplete},
    {EventCounter::incomplete_no_room, "incomplete.no_room",
     "Events that lost messages because there was no memory for them. Raise `[events] memory`, or find what holds it: "
     "a slow sink or a source that does not send.",
     Fate::partial, &events_incomplete},
    {EventCounter::incomplete_ended, "incomplete.ended",
     "Events whose sources, as many as are waited for, said that they had sent all, with losses on the way: frames that are "
     "written into memory and end with an immediate (`backing = \"memory\"`). Nothing more can come of them, so they "
     "leave at once. Look for the loss on the link, or use a reliable connection.",
     Fate::partial, &events_incomplete},
    {EventCounter::incomplete_node_down, "incomplete.node_down",
     "Events of which a readout node of the cluster had a part, or should have had one, and went away. The builder's "
     "report says which node (`cluster.builder.readouts`): look at its log and at the network between them.",
     Fate::partial, &events_incomplete},
    {EventCounter::vetoed, "vetoed", "Events that a reducer rejected on purpose, as configured.", Fate::spared},
    {EventCounter::dropped_incomplete, "dropped.incomplete",
     "Incomplete events that were thrown away because the configuration says `incomplete = \"drop\"`. "
     "Use \"keep\" to have them in the file with their missing ranges.",
     Fate::lost, &events_dropped},
    {EventCounter::dropped_no_room, "dropped.no_room",
     "Events thrown away because the stages after assembly were full: "
     "the reducers or the disk are slower than the detector. Add work lcores, use a faster or lighter reducer, "
     "or check the disk's write rate.",
     Fate::lost, &events_dropped},
    {EventCounter::dropped_reduce_error, "dropped.reduce_error",
     "Events that a reducer could not make anything of, because a message is not what the configuration says it is; "
     "their packets are `placed`. The report's `reduce` says which reducer and why: "
     "correct the stream's or the reducer's keys.",
     Fate::lost, &events_dropped},
    {EventCounter::dropped_write_error, "dropped.write_error",
     "Events that could not be written: disk full, a file system gone, a quota. "
     "The terminal shows the system's message. Nothing that was already synced is lost; "
     "free space and start a new run.",
     Fate::lost, &events_not_written, true},
    {EventCounter::dropped_not_taken, "dropped.not_taken",
     "Events that a stream did not send, because nobody was there or the consumer was behind; the report's `sinks` says "
     "how many for which cause. Counted here only where no other sink has the events, or the stream was to wait "
     "(`on_full = \"wait\"`) and the run was ended first. Make the consumer faster, give it a larger `queue`, or let a "
     "sink of files have the events too.",
     Fate::lost, &events_not_written, true},
    {EventCounter::written, "written", "Events that are in the sink, or were sent.", Fate::kept, nullptr, true},
});

}  // namespace weir::assemble
