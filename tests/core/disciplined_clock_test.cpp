// The clock against a world that is made up: counters that drift, a system time that is slewed or set, and a control
// thread that comes late.
#include "core/disciplined_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

namespace {

using namespace weir::core;

/// Time passes only when told to.
struct World {
    double ticks_per_s = 2.596e9;
    double real_rate = 1;  ///< of CLOCK_REALTIME against the raw one
    TimeNs read_takes_ns = 0;
    double ticks = 1e15;
    double raw_ns = 5e9;
    double real_ns = 0;
    TimeNs epoch = 1'700'000'000 * ns_per_s;

    void pass(TimeNs ns) {
        ticks += ticks_per_s * 1e-9 * static_cast<double>(ns);
        raw_ns += static_cast<double>(ns);
        real_ns += real_rate * static_cast<double>(ns);
    }
    [[nodiscard]] std::uint64_t counter() const { return static_cast<std::uint64_t>(ticks); }
    [[nodiscard]] TimeNs real() const { return epoch + static_cast<TimeNs>(real_ns); }
    [[nodiscard]] ClockReading read() const { return {counter(), real(), static_cast<TimeNs>(raw_ns), read_takes_ns}; }
};

DisciplinedClock started(World& world) {
    const ClockReading first = world.read();
    world.pass(100 * ns_per_ms);
    return {first, world.read()};
}

TimeNs off(const DisciplinedClock& clock, const World& world) {
    return std::abs(clock.at(world.counter()) - world.real());
}

TEST(DisciplinedClock, LearnsTheRateOfTheCounter) {
    World world;
    const DisciplinedClock clock = started(world);
    EXPECT_NEAR(clock.accuracy().ticks_per_s, 2.596e9, 100);
    world.pass(ns_per_s);
    EXPECT_LE(off(clock, world), 10);
}

TEST(DisciplinedClock, FollowsAClockThatIsSlewedAndSaysHowWell) {
    World world;
    DisciplinedClock clock = started(world);
    for (const double rate : {1.0, 1 + 100e-6, 1 - 480e-6, 1.0}) {
        world.real_rate = rate;
        for (int i = 0; i < 50; ++i) {
            world.pass(100 * ns_per_ms);
            EXPECT_LE(off(clock, world), clock.accuracy().error_ns + 60'000);
            clock.correct(world.read());
        }
        EXPECT_LE(off(clock, world), 1000) << rate;
    }
    EXPECT_EQ(clock.accuracy().steps, 0u);
    EXPECT_EQ(clock.accuracy().jumps, 0u);
    EXPECT_LE(clock.accuracy().error_ns, 200'000);  // 580 ppm of 100 ms, twice, until the rate is believed
    EXPECT_GE(clock.accuracy().error_ns, 50'000);
}

TEST(DisciplinedClock, NeverRunsBackwardsNorJumpsWhenTheSystemTimeIsSet) {
    for (const TimeNs step : {-3600 * ns_per_s, -20 * ns_per_ms, 20 * ns_per_ms, 3600 * ns_per_s}) {
        World world;
        DisciplinedClock clock = started(world);
        world.epoch += step;
        TimeNs before = clock.at(world.counter());
        for (int i = 0; i < 200; ++i) {
            clock.correct(world.read());
            for (int k = 0; k < 10; ++k) {
                world.pass(10 * ns_per_ms);
                const TimeNs now = clock.at(world.counter());
                EXPECT_NEAR(static_cast<double>(now - before), 10e6, 10e6 * 501e-6) << step << ' ' << i;
                before = now;
            }
        }
        EXPECT_EQ(clock.accuracy().steps, 1u);
        EXPECT_NEAR(static_cast<double>(clock.accuracy().error_ns), std::abs(static_cast<double>(step)), 1e6);
        // 20 s at 500 ppm make good 10 ms.
        const double left = std::max(0.0, std::abs(static_cast<double>(step)) - 10e6);
        EXPECT_NEAR(static_cast<double>(off(clock, world)), left, 1e6) << step;
    }
}

TEST(DisciplinedClock, DoesNotOvershootWhenTheNextCorrectionIsLate) {
    World world;
    DisciplinedClock clock = started(world);
    world.pass(100 * ns_per_ms);
    world.epoch += 80'000;  // less than a step
    clock.correct(world.read());
    world.pass(60 * ns_per_s);
    EXPECT_LE(off(clock, world), 1000);
    clock.correct(world.read());
    EXPECT_EQ(clock.accuracy().steps, 0u);
}

TEST(DisciplinedClock, CountsTheTimeThatReadingTakesAsErrorAndLearnsNoRateFromIt) {
    World world;
    DisciplinedClock clock = started(world);
    world.pass(100 * ns_per_ms);
    world.read_takes_ns = 40'000;
    ClockReading late = world.read();
    late.real_ns += 40'000;  // sent to sleep between the two clocks
    clock.correct(late);
    EXPECT_NEAR(clock.accuracy().ticks_per_s, 2.596e9, 100);
    EXPECT_GE(clock.accuracy().last_error_ns, 80'000);
    world.read_takes_ns = 0;
    for (int i = 0; i < 30; ++i) {
        world.pass(100 * ns_per_ms);
        clock.correct(world.read());
    }
    EXPECT_LE(clock.accuracy().last_error_ns, 1000);
}

TEST(DisciplinedClock, TakesUpTheTimeAgainWhenTheCounterJumps) {
    for (const double jump : {-1e13, 1e13}) {
        World world;
        DisciplinedClock clock = started(world);
        world.ticks += jump;
        world.pass(100 * ns_per_ms);
        clock.correct(world.read());
        EXPECT_EQ(clock.accuracy().jumps, 1u);
        EXPECT_LE(off(clock, world), 1);
        world.pass(ns_per_s);
        EXPECT_LE(off(clock, world), 1000);
    }
}

TEST(DisciplinedClock, LearnsAnotherRateOfTheCounter) {
    World world;
    DisciplinedClock clock = started(world);
    world.ticks_per_s = 1e9;
    for (int i = 0; i < 4; ++i) {
        world.pass(100 * ns_per_ms);
        clock.correct(world.read());
    }
    EXPECT_NEAR(clock.accuracy().ticks_per_s, 1e9, 100);
    EXPECT_LE(off(clock, world), 1000);
}

TEST(DisciplinedClock, ConvertsStampsFromBeforeTheLastReading) {
    World world;
    DisciplinedClock clock = started(world);
    const std::uint64_t then = world.counter();
    const TimeNs real = world.real();
    world.pass(50 * ns_per_ms);
    clock.correct(world.read());
    EXPECT_LE(std::abs(clock.at(then) - real), 1000);
}

TEST(DisciplinedClock, GivesReadersWholeLinesWhileItIsCorrected) {
    World world;
    DisciplinedClock clock = started(world);
    std::atomic<bool> stop{false};
    std::uint64_t torn = 0;
    std::uint64_t read = 0;
    std::thread reader([&] {
        while (!stop.load(std::memory_order_relaxed) || read == 0) {
            const DisciplinedClock::Line line = clock.line();
            // In this world the counter began at 1e15 when the time was the epoch: each line must say so of its own
            // point.
            const double passed = (static_cast<double>(line.ticks) - 1e15) / world.ticks_per_s;
            torn += std::abs(passed - static_cast<double>(line.ns - world.epoch) * 1e-9) > 1e-3;
            ++read;
        }
    });
    for (int i = 0; i < 20'000; ++i) {
        world.pass(2 * ns_per_ms);
        clock.correct(world.read());
    }
    stop.store(true);
    reader.join();
    EXPECT_EQ(torn, 0u);
    EXPECT_EQ(clock.accuracy().jumps, 0u);
}

TEST(DisciplinedClock, LeavesOutReadingsThatComeTooSoon) {
    World world;
    DisciplinedClock clock = started(world);
    world.pass(1000);
    world.epoch += ns_per_s;
    clock.correct(world.read());
    EXPECT_EQ(clock.accuracy().steps, 0u);
}

}  // namespace
