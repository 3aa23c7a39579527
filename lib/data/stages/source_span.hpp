// From when to when a source took part in the events of a run. What an event lacks at either end of that span has
// another cause than what is missing in between: the recording began or ended there, or the source did.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <span>

#include "core/one_writer.hpp"
#include "core/units.hpp"

namespace weir::stages {

/// Of one source. Written by one lcore, read by any thread.
class SourceSpan {
public:
    using TimeNs = core::TimeNs;
    static constexpr TimeNs no_time = std::numeric_limits<TimeNs>::min();

    /// Events without the source, and the packets that these lack of it.
    struct Without {
        std::uint64_t events = 0;
        std::uint64_t packets = 0;
    };
    struct Summary {
        std::uint64_t with = 0;            ///< events that have something of it
        std::uint64_t without = 0;         ///< events that have nothing
        TimeNs oldest_ns = core::never;    ///< when the first event with it began
        TimeNs newest_ns = no_time;        ///< ... and the last one
        std::uint64_t newest_number = 0;   ///< of that event
        TimeNs last_seen_ns = no_time;     ///< its last packet there
        Without before;                    ///< of those that lack it or its first packets: before and in `oldest`
        TimeNs before_until_ns = no_time;  ///< when the last of them began
        Without after;                     ///< of those that began after `newest`
        TimeNs after_from_ns = core::never;
    };

    /// An event that began at `begun_ns` and has something of it, the last of it at `last_ns`. `lacks_first`: so many
    /// of its first packets are missing.
    void add_present(TimeNs begun_ns, std::uint64_t number, TimeNs last_ns, std::uint64_t lacks_first) noexcept {
        core::add(with_, 1);
        if (begun_ns <= get(oldest_ns_)) {
            set(oldest_ns_, begun_ns);
            if (lacks_first > 0) add_before(begun_ns, lacks_first);
        }
        if (begun_ns < get(newest_ns_)) return;
        set(newest_ns_, begun_ns);
        set(newest_number_, number);
        set(last_seen_ns_, last_ns);
        if (get(after_events_) == 0 || get(after_from_ns_) >= begun_ns) return;
        set(after_events_, std::uint64_t{0});
        set(after_packets_, std::uint64_t{0});
        set(after_from_ns_, core::never);
    }
    /// An event that has nothing of it, and lacks `packets`.
    void add_absent(TimeNs begun_ns, std::uint64_t packets) noexcept {
        core::add(without_, 1);
        if (begun_ns <= get(oldest_ns_)) add_before(begun_ns, packets);
        if (begun_ns < get(newest_ns_)) return;
        core::add(after_events_, 1);
        core::add(after_packets_, packets);
        set(after_from_ns_, std::min(get(after_from_ns_), begun_ns));
    }
    [[nodiscard]] Summary summary() const noexcept {
        return {get(with_),
                get(without_),
                get(oldest_ns_),
                get(newest_ns_),
                get(newest_number_),
                get(last_seen_ns_),
                {get(before_events_), get(before_packets_)},
                get(before_until_ns_),
                {get(after_events_), get(after_packets_)},
                get(after_from_ns_)};
    }
    /// What all workers saw of it. One that saw it go missing before another saw it again tells nothing of that end.
    [[nodiscard]] static Summary join(std::span<const Summary> workers) noexcept {
        Summary all;
        for (const Summary& worker : workers) {
            all.with += worker.with;
            all.without += worker.without;
            all.oldest_ns = std::min(all.oldest_ns, worker.oldest_ns);
            if (worker.newest_ns <= all.newest_ns) continue;
            all.newest_ns = worker.newest_ns;
            all.newest_number = worker.newest_number;
            all.last_seen_ns = worker.last_seen_ns;
        }
        for (const Summary& worker : workers) {
            if (worker.before.events > 0 && worker.before_until_ns <= all.oldest_ns) {
                add(all.before, worker.before);
                all.before_until_ns = std::max(all.before_until_ns, worker.before_until_ns);
            }
            if (worker.after.events > 0 && worker.after_from_ns >= all.newest_ns) {
                add(all.after, worker.after);
                all.after_from_ns = std::min(all.after_from_ns, worker.after_from_ns);
            }
        }
        return all;
    }

private:
    template <class T>
    [[nodiscard]] static T get(const std::atomic<T>& of) noexcept {
        return of.load(std::memory_order_relaxed);
    }
    template <class T>
    static void set(std::atomic<T>& to, T value) noexcept {
        to.store(value, std::memory_order_relaxed);
    }
    static void add(Without& to, const Without& more) noexcept {
        to.events += more.events;
        to.packets += more.packets;
    }
    void add_before(TimeNs begun_ns, std::uint64_t packets) noexcept {
        core::add(before_events_, 1);
        core::add(before_packets_, packets);
        set(before_until_ns_, std::max(get(before_until_ns_), begun_ns));
    }

    std::atomic<std::uint64_t> with_{0};
    std::atomic<std::uint64_t> without_{0};
    std::atomic<TimeNs> oldest_ns_{core::never};
    std::atomic<TimeNs> newest_ns_{no_time};
    std::atomic<std::uint64_t> newest_number_{0};
    std::atomic<TimeNs> last_seen_ns_{no_time};
    std::atomic<std::uint64_t> before_events_{0};
    std::atomic<std::uint64_t> before_packets_{0};
    std::atomic<TimeNs> before_until_ns_{no_time};
    std::atomic<std::uint64_t> after_events_{0};
    std::atomic<std::uint64_t> after_packets_{0};
    std::atomic<TimeNs> after_from_ns_{core::never};
};

/// When the events of a run began and ended, and how long a whole one took: nothing is known of what lies outside. Of
/// one worker. Written by one lcore, read by any thread.
class EventSpan {
public:
    struct Summary {
        core::TimeNs first_ns = core::never;
        core::TimeNs last_ns = SourceSpan::no_time;
        core::TimeNs longest_ns = -1;  ///< from the first packet of a complete event to its last; -1: there is none
    };
    void add(core::TimeNs first_ns, core::TimeNs last_ns, bool complete) noexcept {
        if (first_ns < first_ns_.load(std::memory_order_relaxed)) first_ns_.store(first_ns, std::memory_order_relaxed);
        if (last_ns > last_ns_.load(std::memory_order_relaxed)) last_ns_.store(last_ns, std::memory_order_relaxed);
        if (complete && last_ns - first_ns > longest_ns_.load(std::memory_order_relaxed))
            longest_ns_.store(last_ns - first_ns, std::memory_order_relaxed);
    }
    [[nodiscard]] Summary summary() const noexcept {
        return {first_ns_.load(std::memory_order_relaxed), last_ns_.load(std::memory_order_relaxed),
                longest_ns_.load(std::memory_order_relaxed)};
    }

private:
    std::atomic<core::TimeNs> first_ns_{core::never};
    std::atomic<core::TimeNs> last_ns_{SourceSpan::no_time};
    std::atomic<core::TimeNs> longest_ns_{-1};
};

}  // namespace weir::stages
