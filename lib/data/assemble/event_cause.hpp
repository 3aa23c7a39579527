// Why an event left its builder.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "assemble/counters.hpp"

namespace weir::assemble {

/// All but `complete` make an event incomplete. These are the numbers of the event file: a new one goes to the end.
enum class EventCause : std::uint8_t {
    complete = 0,
    timeout = 1,
    evicted = 2,
    end_of_run = 3,
    no_room = 4,
    ended = 5,
    node_down = 6,  ///< a node of the cluster that had a part of it went away
};

/// As in the report, in what `weir inspect` and `weir export` print and in Python: why an event is incomplete.
inline constexpr std::array<std::string_view, 7> cause_names{"none",    "timeout", "evicted",  "end_of_run",
                                                             "no_room", "ended",   "node_down"};

[[nodiscard]] constexpr std::string_view name_of(EventCause cause) noexcept {
    return cause_names[static_cast<std::size_t>(cause)];
}

/// Where an event is counted that left for this cause.
[[nodiscard]] constexpr EventCounter counter_of(EventCause cause) noexcept {
    constexpr std::array counters{EventCounter::complete,
                                  EventCounter::incomplete_timeout,
                                  EventCounter::incomplete_evicted,
                                  EventCounter::incomplete_end_of_run,
                                  EventCounter::incomplete_no_room,
                                  EventCounter::incomplete_ended,
                                  EventCounter::incomplete_node_down};
    static_assert(counters.size() == cause_names.size());
    return counters[static_cast<std::size_t>(cause)];
}

}  // namespace weir::assemble
