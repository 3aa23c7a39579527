// Which generation of pedestals an event gets, and that nobody reads one that is being written.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "reduce/pedestal/generations.hpp"
#include "reduce/pedestal/intervals.hpp"

namespace weir::reduce {
namespace {

void publish(Generations& generations, std::uint32_t number, IntervalPlace made_of) {
    generations.begin();
    while (generations.in_use()) std::this_thread::yield();
    const Generations::Planes planes = generations.planes();
    std::ranges::fill(planes.mean, static_cast<float>(number));
    std::ranges::fill(planes.rms, static_cast<float>(number));
    generations.publish(number, made_of);
}

TEST(PedestalIntervals, AGenerationIsForEventsTwoIntervalsLater) {
    constexpr std::uint64_t interval = 100;
    for (const std::uint32_t epoch : {0U, 3U})
        for (std::uint64_t number = 200; number < 1000; ++number) {
            const IntervalPlace place = interval_of(epoch, number, interval);
            const IntervalPlace needed = needed_by(place);
            // Made of numbers below `first`, the first that it is for.
            const std::uint64_t first = first_number_after(needed, interval);
            EXPECT_EQ(first, number / 100 * 100);
            EXPECT_EQ(interval_of(epoch, number - 200, interval), needed);
            EXPECT_EQ(epoch_of(needed), epoch);
            // Who needs an interval has closed it; and it is closed half an interval before.
            const IntervalPlace closed = closed_by(place, number, interval);
            EXPECT_EQ(closed, number % 100 < 50 ? needed : needed + 1);
        }
    EXPECT_LT(interval_of(0, ~std::uint64_t{0}, 1), interval_of(1, 0, 1));
    EXPECT_EQ(closed_by(interval_of(0, 7, 1), 7, 1), interval_of(0, 5, 1));
}

TEST(PedestalIntervals, OneWildNumberClosesNothing) {
    IntervalFollower follower(10);
    const auto follow = [&](std::uint64_t number) { return follower.follow(interval_of(0, number, 10), number); };
    EXPECT_EQ(follow(0), IntervalFollower::Step::on);
    for (std::uint64_t number = 1; number < 100; ++number) (void)follow(number);
    const IntervalPlace closed = follower.closed();
    EXPECT_EQ(follow(std::uint64_t{1} << 40U), IntervalFollower::Step::none);
    EXPECT_FALSE(follower.collects(interval_of(0, std::uint64_t{1} << 40U, 10)));
    EXPECT_EQ(follow(3), IntervalFollower::Step::none);
    EXPECT_EQ(follow(100), IntervalFollower::Step::none);
    EXPECT_EQ(follower.closed(), closed);
    EXPECT_EQ(follow(105), IntervalFollower::Step::on);
    // Three in a row are believed: a gap in the numbers, or a new epoch.
    EXPECT_EQ(follow(5000), IntervalFollower::Step::none);
    EXPECT_EQ(follow(5001), IntervalFollower::Step::none);
    EXPECT_EQ(follow(5002), IntervalFollower::Step::on);
    EXPECT_TRUE(follower.collects(interval_of(0, 5003, 10)));
}

TEST(PedestalIntervals, AWildFirstNumberIsFoundOut) {
    IntervalFollower follower(10);
    (void)follower.follow(interval_of(0, std::uint64_t{1} << 40U, 10), std::uint64_t{1} << 40U);
    for (std::uint64_t number = 0; number < 2; ++number)
        EXPECT_EQ(follower.follow(interval_of(0, number, 10), number), IntervalFollower::Step::none);
    EXPECT_EQ(follower.follow(interval_of(0, 2, 10), 2), IntervalFollower::Step::back);
    EXPECT_TRUE(follower.collects(interval_of(0, 3, 10)));
}

TEST(PedestalGenerations, AnEventGetsTheNewestThatIsNotTooNew) {
    Generations generations(4, 1);
    publish(generations, 0, interval_none);
    EXPECT_EQ(generations.acquire(0, interval_none).generation, 0U);
    publish(generations, 1, 10);
    publish(generations, 2, 12);
    EXPECT_EQ(generations.acquire(0, 9).generation, 0U);
    EXPECT_EQ(generations.acquire(0, 11).generation, 1U);
    EXPECT_EQ(generations.acquire(0, 11).mean[3], 1);
    EXPECT_EQ(generations.acquire(0, 100).generation, 2U);
    generations.release(0);
    publish(generations, 3, 13);
    const Generations::View late = generations.acquire(0, 9);
    EXPECT_TRUE(late.late);
    EXPECT_EQ(late.generation, 1U);
    EXPECT_FALSE(generations.acquire(0, 12).late);
    generations.release(0);
    generations.rebase();
    EXPECT_EQ(generations.acquire(0, 1).generation, 3U);
    generations.release(0);
    publish(generations, 4, 2);
    EXPECT_EQ(generations.acquire(0, 2).generation, 4U);
}

/// Two readers and a writer that changes generations as fast as it can; run by the thread sanitizer as well.
TEST(PedestalGenerations, NobodyReadsWhatIsBeingWritten) {
    constexpr std::size_t pixels = 64;
    Generations generations(pixels, 2);
    publish(generations, 0, interval_none);
    std::atomic<IntervalPlace> newest{0};
    std::atomic<std::uint64_t> torn{0};
    const auto read = [&](std::uint32_t reader) {
        for (;;) {
            const IntervalPlace needed = newest.load(std::memory_order_acquire);
            const Generations::View view = generations.acquire(reader, needed);
            for (std::size_t i = 0; i < pixels; ++i)
                if (view.mean[i] != static_cast<float>(view.generation) || view.rms[i] != view.mean[i]) ++torn;
            generations.release(reader);
            if (needed == 2000) return;
        }
    };
    std::thread one(read, 0);
    std::thread other(read, 1);
    for (std::uint32_t number = 1; number <= 2000; ++number) {
        publish(generations, number, number);
        newest.store(number, std::memory_order_release);
    }
    one.join();
    other.join();
    EXPECT_EQ(torn.load(), 0U);
}

}  // namespace
}  // namespace weir::reduce
