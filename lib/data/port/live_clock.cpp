#include "port/live_clock.hpp"

#include <rte_cycles.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>

#include "core/clock_ns.hpp"
#endif

namespace weir::port {

namespace {

constexpr core::TimeNs good_reading_ns = 10'000;  // better ones come soon, unless the machine is overloaded for long
constexpr core::TimeNs patience_ns = core::ns_per_s;

}  // namespace

core::ClockReading LiveClock::read() noexcept {
    core::ClockReading best;
    core::TimeNs shortest = INT64_MAX;
    constexpr int tries = 5;
    for (int i = 0; i < tries; ++i) {
        const core::TimeNs before = core::clock_ns(CLOCK_MONOTONIC_RAW);
        const std::uint64_t ticks = ::rte_rdtsc_precise();
        const core::TimeNs real = core::clock_ns(CLOCK_REALTIME);
        const core::TimeNs after = core::clock_ns(CLOCK_MONOTONIC_RAW);
        if (after - before >= shortest) continue;
        shortest = after - before;
        best = {ticks, real, before + shortest / 2, shortest};
    }
    return best;
}

bool LiveClock::counter_is_even() noexcept {
#if defined(__x86_64__)
    constexpr unsigned power_leaf = 0x80000007;
    constexpr unsigned invariant_tsc = 1U << 8U;
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return ::__get_cpuid(power_leaf, &eax, &ebx, &ecx, &edx) != 0 && (edx & invariant_tsc) != 0;
#else
    return true;  // the generic timers of other architectures are
#endif
}

LiveClock::LiveClock() {
    if (!counter_is_even()) return;
    const core::ClockReading first = read();
    const timespec nap{0, core::DisciplinedClock::learn_ns};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
    const core::ClockReading second = read();
    clock_ = std::make_unique<core::DisciplinedClock>(first, second);
    looked_ns_ = second.raw_ns;
}

void LiveClock::look() noexcept {
    if (clock_ == nullptr) return;
    const core::TimeNs since = core::clock_ns(CLOCK_MONOTONIC_RAW) - looked_ns_;
    if (since < core::DisciplinedClock::read_every_ns) return;
    const core::ClockReading reading = read();
    if (reading.uncertain_ns > good_reading_ns && since < patience_ns) return;
    looked_ns_ = reading.raw_ns;
    clock_->correct(reading);
}

core::TimeNs LiveClock::now() const noexcept {
    return clock_ != nullptr ? clock_->at(::rte_rdtsc()) : core::clock_ns(CLOCK_REALTIME);
}

LiveClock::Facts LiveClock::facts() const {
    if (clock_ == nullptr) return {"CLOCK_REALTIME", 0, 0, 0, 0};
    const core::DisciplinedClock::Accuracy& accuracy = clock_->accuracy();
    return {"TSC", accuracy.error_ns, accuracy.ticks_per_s, accuracy.steps, accuracy.jumps};
}

}  // namespace weir::port
