#include "core/disciplined_clock.hpp"

#include <algorithm>
#include <cmath>

namespace weir::core {

namespace {

constexpr TimeNs too_soon_ns = ns_per_ms;
constexpr double sure_part = 1e-5;           // of the time between readings, for one to say something about the rate
constexpr double agree_part = 5e-5;          // rates that are called the same
constexpr double always_allowed_ns = 100e3;  // for a step to be one: more than readings can be apart

double between(std::uint64_t from, std::uint64_t to) noexcept {
    return static_cast<double>(static_cast<std::int64_t>(to - from));
}

}  // namespace

DisciplinedClock::DisciplinedClock(const ClockReading& first, const ClockReading& second) noexcept : last_(second) {
    const double ticks = std::max(1.0, between(first.ticks, second.ticks));
    rate_ = static_cast<double>(second.real_ns - first.real_ns) / ticks;
    accuracy_.ticks_per_s = static_cast<double>(ns_per_s) / rate_;
    accuracy_.error_ns = accuracy_.last_error_ns = second.uncertain_ns;
    publish({second.ticks, second.real_ns, rate_, 0, 0});
}

void DisciplinedClock::correct(const ClockReading& reading) noexcept {
    const double ticks = between(last_.ticks, reading.ticks);
    const auto raw = static_cast<double>(reading.raw_ns - last_.raw_ns);
    if (raw < static_cast<double>(too_soon_ns)) return;
    const auto real = static_cast<double>(reading.real_ns - last_.real_ns);
    const double allowed =
        always_allowed_ns + step_part * raw + static_cast<double>(reading.uncertain_ns + last_.uncertain_ns);
    const TimeNs now = at(reading.ticks);
    if (std::abs(ticks * rate_ - raw) > allowed) {
        // The counter itself is no longer what it was; who must not see time run backwards holds on to what it saw.
        ++accuracy_.jumps;
        if (jumped_ && ticks > 0) rate_ = raw / ticks;  // it runs at another rate from now on
        jumped_ = true;
        last_ = reading;
        publish({reading.ticks, reading.real_ns, rate_, 0, 0});
        return;
    }
    jumped_ = false;
    const TimeNs off = reading.real_ns - now;
    accuracy_.last_error_ns = std::abs(off) + reading.uncertain_ns;
    accuracy_.error_ns = std::max(accuracy_.error_ns, accuracy_.last_error_ns);
    if (std::abs(real - raw) > allowed) ++accuracy_.steps;
    // A rate is believed when two times in a row agree on it: a clock that was set, or a bad reading, says nothing.
    const double trend = (real - raw) / raw;
    const bool sure = static_cast<double>(reading.uncertain_ns + last_.uncertain_ns) < sure_part * raw;
    if (sure && ticks > 0 && std::abs(trend - trend_) < agree_part) rate_ = real / ticks;
    trend_ = trend;
    accuracy_.ticks_per_s = static_cast<double>(ns_per_s) / rate_;
    const double slew =
        std::clamp(static_cast<double>(off) / static_cast<double>(correct_within_ns), -slew_max, slew_max);
    last_ = reading;
    publish({reading.ticks, now, rate_, rate_ * slew, static_cast<double>(correct_within_ns) / rate_});
}

DisciplinedClock::Line DisciplinedClock::line() const noexcept {
    for (;;) {
        const std::uint32_t sequence = sequence_.load(std::memory_order_acquire);
        const Slot& slot = slots_[sequence & 1U];
        const Line line{slot.ticks.load(std::memory_order_acquire), slot.ns.load(std::memory_order_acquire),
                        slot.ns_per_tick.load(std::memory_order_acquire),
                        slot.slew_per_tick.load(std::memory_order_acquire),
                        slot.slew_ticks.load(std::memory_order_acquire)};
        if (sequence_.load(std::memory_order_relaxed) == sequence) return line;
    }
}

void DisciplinedClock::publish(const Line& line) noexcept {
    const std::uint32_t next = sequence_.load(std::memory_order_relaxed) + 1;
    Slot& slot = slots_[next & 1U];
    slot.ticks.store(line.ticks, std::memory_order_release);
    slot.ns.store(line.ns, std::memory_order_release);
    slot.ns_per_tick.store(line.ns_per_tick, std::memory_order_release);
    slot.slew_per_tick.store(line.slew_per_tick, std::memory_order_release);
    slot.slew_ticks.store(line.slew_ticks, std::memory_order_release);
    sequence_.store(next, std::memory_order_release);
}

}  // namespace weir::core
