// When open events time out: a wheel of buckets, so that setting, clearing and asking cost the same however many events
// are open. It knows time only from what it is given.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "assemble/event.hpp"

namespace weir::assemble {

class EventTimer {
public:
    /// `timeout_ns`: no deadline is further ahead than that when it is set.
    explicit EventTimer(TimeNs timeout_ns) noexcept
        // A deadline is at most one time-out ahead of the newest time seen, so half the wheel holds them all.
        : granule_ns_(std::max<TimeNs>(1, timeout_ns / (buckets / 2))) {}

    /// Watches the event's deadline, unless it is over at `now`.
    void set(Event& event, TimeNs now) noexcept {
        event.timer_bucket = Event::no_timer;
        if (event.deadline_ns <= now) return;  // overdue already; the wheel holds one turn ahead and nothing behind
        event.timer_bucket = static_cast<std::uint32_t>((event.deadline_ns / granule_ns_) & (buckets - 1));
        Bucket& bucket = wheel_[event.timer_bucket];
        // Events open in order of time, but for those that learn their number late: the walk is short.
        Event* before = bucket.last;
        while (before != nullptr && before->deadline_ns > event.deadline_ns) before = before->timer_previous;
        event.timer_previous = before;
        event.timer_next = before != nullptr ? before->timer_next : bucket.first;
        (before != nullptr ? before->timer_next : bucket.first) = &event;
        (event.timer_next != nullptr ? event.timer_next->timer_previous : bucket.last) = &event;
        next_ns_ = std::min(next_ns_, event.deadline_ns);
    }
    void clear(Event& event) noexcept {
        if (event.timer_bucket == Event::no_timer) return;
        Bucket& bucket = wheel_[event.timer_bucket];
        (event.timer_previous != nullptr ? event.timer_previous->timer_next : bucket.first) = event.timer_next;
        (event.timer_next != nullptr ? event.timer_next->timer_previous : bucket.last) = event.timer_previous;
        event.timer_previous = event.timer_next = nullptr;
    }
    /// Calls `close` for each event that is due at `now`, in order of deadlines; it has to clear the event.
    template <class Close>
    void advance(TimeNs now, Close&& close) noexcept {
        if (now < next_ns_) return;
        // Everything due lies in the buckets from the earliest deadline to now; one turn of the wheel covers them all.
        const std::int64_t from = next_ns_ / granule_ns_;
        const std::int64_t to = std::min(now / granule_ns_, from + buckets - 1);
        next_ns_ = never;
        for (std::int64_t tick = from; tick <= to; ++tick) {
            const Bucket& bucket = wheel_[static_cast<std::size_t>(tick) % buckets];
            while (bucket.first != nullptr && bucket.first->deadline_ns <= now) close(*bucket.first);
        }
        for (std::int64_t tick = from; tick < from + buckets; ++tick) {
            const Event* event = wheel_[static_cast<std::size_t>(tick) % buckets].first;
            if (event == nullptr) continue;
            next_ns_ = event->deadline_ns;
            break;  // later buckets hold later deadlines
        }
    }

private:
    static constexpr std::uint32_t buckets = 256;
    struct Bucket {  ///< sorted by deadline, then by order of opening
        Event* first = nullptr;
        Event* last = nullptr;
    };
    std::array<Bucket, buckets> wheel_;
    TimeNs granule_ns_;
    TimeNs next_ns_ = never;  ///< no deadline is before it
};

}  // namespace weir::assemble
