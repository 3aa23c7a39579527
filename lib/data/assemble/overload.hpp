// What happens to new events when there is no more room: the operator's choice, and how full is too full. Decided once
// per event, when its first message is announced, so events are kept or refused as a whole.
#pragma once

#include <algorithm>
#include <cstdint>

#include "assemble/counters.hpp"
#include "wire/packet_counter.hpp"

namespace weir::assemble {

/// At a limit: memory or window for open events, or the queue of closed ones.
enum class Overload : std::uint8_t {
    evict_oldest,  ///< the event opened first leaves incomplete; a new one is refused only where that frees nothing
    refuse_new,    ///< a new event is refused; open ones are left in peace
    prescale,      ///< as refuse_new, and before it comes to that only every Nth event is taken
    wait,          ///< the input waits; at the limit of open events, where that does not help, as evict_oldest
};

[[nodiscard]] constexpr bool evicts(Overload overload) noexcept {
    return overload == Overload::evict_oldest || overload == Overload::wait;
}

/// How full something is.
enum class Fill : std::uint8_t {
    low,     ///< at most half: overload is over
    middle,  ///< overload goes on, but does not begin
    high,    ///< from three quarters: overload begins
    full,    ///< from seven eighths: what is left is for events that are open already
};

[[nodiscard]] constexpr Fill fill_of(std::uint64_t used, std::uint64_t size) noexcept {
    if (8 * used >= 7 * size) return Fill::full;
    if (4 * used >= 3 * size) return Fill::high;
    return 2 * used > size ? Fill::middle : Fill::low;
}

/// Whether packets that end so belong to an event that was refused as a whole.
[[nodiscard]] constexpr bool is_refusal(wire::PacketCounter fate) noexcept {
    return fate == wire::PacketCounter::no_room || fate == wire::PacketCounter::queue_full ||
           fate == wire::PacketCounter::prescaled;
}

/// The counter of messages whose packets end in `fate`; for refusals and what is late.
[[nodiscard]] constexpr MessageCounter message_counter_of(wire::PacketCounter fate) noexcept {
    using wire::PacketCounter;
    switch (fate) {
        case PacketCounter::no_room:
            return MessageCounter::refused_no_room;
        case PacketCounter::queue_full:
            return MessageCounter::refused_queue_full;
        case PacketCounter::prescaled:
            return MessageCounter::refused_prescaled;
        case PacketCounter::unbound:
            return MessageCounter::refused_unbound;
        case PacketCounter::duplicate:
            return MessageCounter::refused_duplicate;
        case PacketCounter::conflict:
            return MessageCounter::refused_conflict;
        default:
            return MessageCounter::refused_late;
    }
}

/// Takes every Nth event while there is overload. Which ones follows from their numbers alone, so all sources and all
/// builders choose the same, and one can tell afterwards which were meant to be kept.
class Prescaler {
public:
    /// `bits`: of the narrowest counter among the sources. What is above them differs between builders.
    Prescaler(std::uint32_t every, unsigned bits) noexcept
        : every_(std::max<std::uint32_t>(every, 1)), mask_(bits >= 64 ? ~0ULL : (std::uint64_t{1} << bits) - 1) {}

    /// Overload begins at Fill::high and lasts until Fill::low.
    void update(Fill fill) noexcept {
        if (!active_ && fill >= Fill::high) {
            active_ = true;
            ++times_;
        } else if (active_ && fill == Fill::low) {
            active_ = false;
        }
    }
    [[nodiscard]] bool active() const noexcept { return active_; }
    [[nodiscard]] bool keeps(std::uint64_t number) const noexcept { return (number & mask_) % every_ == 0; }
    /// How often overload has begun.
    [[nodiscard]] std::uint64_t times() const noexcept { return times_; }

private:
    std::uint32_t every_;
    std::uint64_t mask_;
    bool active_ = false;
    std::uint64_t times_ = 0;
};

}  // namespace weir::assemble
