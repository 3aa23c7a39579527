// Where an event stands among the intervals in which pedestals are collected, as one number that can be compared and
// shared in an atomic.
//
// Dark frames of interval k make a generation, which is for events of interval k + 2 on. The interval between is the
// time that dark frames have to be closed, collected and put together: interval k is closed by the first event of the
// second half of k + 1. So which generation an event is converted with follows from its number alone, however many
// lcores there are, and live as in a replay, as long as half an interval is enough for each. What is not in time is
// counted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace weir::reduce {

/// An interval of an epoch: later ones are larger. Two below the first one of an epoch are its own as well.
using IntervalPlace = std::int64_t;
inline constexpr IntervalPlace interval_none = std::numeric_limits<std::int64_t>::min();  ///< before all of them

/// The interval of an event, `interval` (> 0) event numbers long. Exact for numbers up to 2^48 intervals.
[[nodiscard]] constexpr IntervalPlace interval_of(std::uint32_t epoch, std::uint64_t number,
                                                  std::uint64_t interval) noexcept {
    constexpr std::uint64_t places = std::uint64_t{1} << 48U;
    const std::uint64_t place = std::min(number / interval, places - 3) + 2;
    return static_cast<IntervalPlace>((std::uint64_t{std::min(epoch, 0x7fffU)} << 48U) + place);
}

/// The last interval that an event finds collected: the one that it is converted with, or an earlier one.
[[nodiscard]] constexpr IntervalPlace needed_by(IntervalPlace place) noexcept {
    return place - 2;
}

/// The last interval that an event closes.
[[nodiscard]] constexpr IntervalPlace closed_by(IntervalPlace place, std::uint64_t number,
                                                std::uint64_t interval) noexcept {
    return place - 2 + (number % interval >= (interval + 1) / 2 ? 1 : 0);
}

/// The first event number of an epoch that a generation made of intervals up to `place` is for.
[[nodiscard]] constexpr std::uint64_t first_number_after(IntervalPlace place, std::uint64_t interval) noexcept {
    constexpr std::uint64_t mask = (std::uint64_t{1} << 48U) - 1;
    return (static_cast<std::uint64_t>(place) & mask) * interval;  // interval_of adds 2
}
[[nodiscard]] constexpr std::uint32_t epoch_of(IntervalPlace place) noexcept {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(place) >> 48U);
}

/// Follows the events that one worker sees, and says which intervals they close. A place more than one further, or more
/// than two back, is believed only when three events in a row say so: one wild number must not end an interval.
class IntervalFollower {
public:
    explicit IntervalFollower(std::uint64_t interval) : interval_(interval) {}

    enum class Step : std::uint8_t { none, on, back };

    /// `on`: closed() has moved on; `back`: it was wrong, and has moved back.
    Step follow(IntervalPlace place, std::uint64_t number) noexcept {
        const IntervalPlace closes = closed_by(place, number, interval_);
        if (closed_ == interval_none) return accept(closes);
        const bool back = closes < closed_ - 3;
        if (!back && closes <= closed_ + 1) {
            doubts_ = 0;
            return closes > closed_ ? accept(closes) : Step::none;
        }
        const bool agrees = doubts_ > 0 && closes >= doubt_ - 1 && closes <= doubt_ + 1;
        doubt_ = closes;
        doubts_ = agrees ? doubts_ + 1 : 1;
        if (doubts_ < 3) return Step::none;
        doubts_ = 0;
        accept(closes);
        return back ? Step::back : Step::on;
    }
    [[nodiscard]] IntervalPlace closed() const noexcept { return closed_; }
    /// Whether a dark frame of this place can be collected now.
    [[nodiscard]] bool collects(IntervalPlace place) const noexcept { return place > closed_ && place <= closed_ + 2; }

private:
    Step accept(IntervalPlace closes) noexcept {
        closed_ = closes;
        return Step::on;
    }

    std::uint64_t interval_;
    IntervalPlace closed_ = interval_none;
    IntervalPlace doubt_ = 0;
    unsigned doubts_ = 0;
};

}  // namespace weir::reduce
